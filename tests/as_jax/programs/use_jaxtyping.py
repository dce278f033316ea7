"""Types of arrays, checked at run time."""

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, PyTree, jaxtyped


@jax.jit
@jaxtyped(typechecker=beartype)
def product(x: Float[Array, "a b"], y: Float[Array, "b c"]) -> Float[Array, "a c"]:
    return x @ y


assert product(jnp.ones((2, 3)), jnp.ones((3, 4))).shape == (2, 4)
try:
    product(jnp.ones((2, 3)), jnp.ones((2, 3)))
except Exception as error:
    assert "Float" in str(error)
else:
    raise AssertionError
assert isinstance({"a": 1}, PyTree[int])
