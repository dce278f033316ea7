"""Array-like types with rules of their own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import quax
from quax.examples import lora

linear = eqx.nn.Linear(10, 12, key=jax.random.PRNGKey(0))
adapted = lora.loraify(linear, rank=2, key=jax.random.PRNGKey(1))
out = jax.jit(quax.quaxify(lambda m, x: m(x)))(adapted, jnp.ones(10))
assert jnp.allclose(out, linear(jnp.ones(10)), atol=1e-4)


class Meters(quax.ArrayValue):
    value: jax.Array

    def aval(self):
        return jax.core.ShapedArray(self.value.shape, self.value.dtype)

    def materialise(self):
        return self.value


@quax.register(jax.lax.add_p)
def _(x: Meters, y: Meters):
    return Meters(x.value + y.value)


total = quax.quaxify(lambda x, y: x + y)(Meters(jnp.ones(2)), Meters(jnp.ones(2)))
assert isinstance(total, Meters) and total.value.tolist() == [2.0, 2.0]


@jax.custom_jvp
def doubled(x):
    return 2 * x


doubled.defjvp(lambda primals, tangents: (doubled(*primals), 3 * tangents[0]))
value, grad = jax.value_and_grad(lambda x: quax.quaxify(lambda y: doubled(y).sum())(x))(jnp.ones(2))
assert value == 4.0 and grad.tolist() == [3.0, 3.0]
