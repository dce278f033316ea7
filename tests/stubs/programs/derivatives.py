"""Nests of vmap, jacfwd, jacrev, hessian, jvp and vjp, and custom derivatives."""

import functools

import corejax
import corejax.numpy as jnp
from corejax import Array, lax


def energy(x: Array, scale: float = 1.0) -> Array:
    return scale * jnp.sum(jnp.cos(x) * x**2)


@functools.partial(corejax.custom_vjp, nondiff_argnums=(0, 2))
def root(f, guess: Array, steps: int) -> Array:
    def body(_: int, x: Array) -> Array:
        return x - f(x) / corejax.grad(f)(x)

    return lax.fori_loop(0, steps, body, guess)


def root_fwd(f, guess: Array, steps: int) -> tuple[Array, Array]:
    x = root(f, guess, steps)
    return x, x


def root_bwd(f, steps: int, residual: Array, cotangent: Array) -> tuple[Array]:
    return (jnp.zeros_like(residual) * cotangent,)


root.defvjp(root_fwd, root_bwd)


@corejax.custom_jvp
def safe_sqrt(x: Array) -> Array:
    return jnp.sqrt(jnp.maximum(x, 0.0))


@safe_sqrt.defjvp
def safe_sqrt_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    y = safe_sqrt(x)
    return y, jnp.where(x > 0, t / (2 * y), 0.0)


def flow(y: Array, params: tuple[Array, Array]) -> Array:
    weights, bias = params
    return jnp.tanh(weights @ y + bias)


x = jnp.linspace(0.0, 1.0, 3)
batch = jnp.stack([x, 2 * x])
hessians = corejax.vmap(corejax.hessian(energy), in_axes=(0, None))(batch, 2.0)
mixed = corejax.jacfwd(corejax.jacrev(energy, argnums=0), argnums=1)(x, 2.0)
third = corejax.jacfwd(corejax.hessian(energy))(x)
jitted = corejax.jit(corejax.vmap(corejax.grad(energy)))(batch)
out, tangent = corejax.jvp(energy, (x,), (jnp.ones(3),))
value, pullback = corejax.vjp(functools.partial(energy, scale=3.0), x)
(cotangent,) = pullback(jnp.ones_like(value))
value, linear = corejax.linearize(energy, x)
hvp = corejax.jvp(corejax.grad(energy), (x,), (x,))[1]
jacobian = corejax.jacrev(flow, argnums=1)(x, (jnp.eye(3), x))
product = corejax.vmap(corejax.vmap(jnp.dot, (None, 0)), (0, None))(batch, batch)
weights, bias = jacobian
print(hessians.shape, mixed.shape, third.shape, jitted.sum(), out + tangent, cotangent[0], linear(x), hvp.T)
print(weights.shape, bias.shape, product, corejax.grad(safe_sqrt)(jnp.ones(())))
print(root(lambda v: v**2 - 2, jnp.array(1.0), 5))
