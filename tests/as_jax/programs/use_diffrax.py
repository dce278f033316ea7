"""Solve a differential equation and differentiate the solution."""

import diffrax
import jax
import jax.numpy as jnp


def end(rate):
    term = diffrax.ODETerm(lambda t, y, args: -rate * y)
    steps = diffrax.PIDController(rtol=1e-5, atol=1e-5)
    save = diffrax.SaveAt(ts=jnp.linspace(0, 1, 5))
    solution = diffrax.diffeqsolve(
        term, diffrax.Tsit5(), 0.0, 1.0, 0.1, jnp.float32(1.0), stepsize_controller=steps, saveat=save
    )
    return solution.ys[-1]


value, grad = jax.jit(jax.value_and_grad(end))(2.0)
assert abs(value - jnp.exp(-2.0)) < 1e-3 and abs(grad + jnp.exp(-2.0)) < 1e-3
noise = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (), jax.random.key(0))
terms = diffrax.MultiTerm(
    diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.ones(()), noise)
)
assert jnp.isfinite(diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.05, jnp.float32(1.0)).ys[-1])
