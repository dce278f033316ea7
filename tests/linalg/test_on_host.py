"""Eager `solve`, `inv` and `det` of one matrix: LAPACK directly, with results, types and errors of the operations."""

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend.messages import observe
from corejax_linalg.numpy_linalg import equations, numbers
from tests.linalg.matrices import random


def assert_alike(got, wanted, dtype):
    assert got.aval is wanted.aval
    error = 1e-3 if np.dtype(dtype).name in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(got, wanted, rtol=error, atol=error)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_what_the_operations_give(n, dtype):
    a = jnp.asarray(random(n, n, dtype=dtype) + 2 * np.eye(n, dtype=dtype))
    for shape in ((n,), (n, 1), (n, 5)):
        b = jnp.asarray(random(*shape, dtype=dtype))
        assert_alike(jnp.linalg.solve(a, b), equations._solution(a, b), dtype)
    assert_alike(jnp.linalg.inv(a), equations._inverse(a), dtype)
    assert_alike(jnp.linalg.det(a), numbers._determinant(a), dtype)
    np.testing.assert_allclose(jnp.linalg.det(a), np.linalg.det(np.asarray(a, np.complex128)), rtol=1e-4)


def test_odd_and_even_exchanges():
    for order in ([1, 0, 2, 3], [1, 0, 3, 2], [1, 2, 3, 0]):
        a = np.eye(4, dtype=np.float32)[order]
        assert float(jnp.linalg.det(jnp.asarray(a))) == round(np.linalg.det(a))


def test_singular_matrices():
    a, b = jnp.ones((4, 4)), jnp.ones(4)
    assert not np.isfinite(jnp.linalg.inv(a)).any() and not np.isfinite(jnp.linalg.solve(a, b)).any()
    assert float(jnp.linalg.det(a)) == 0
    with corejax.config.override(linalg_errors=True), pytest.raises(np.linalg.LinAlgError, match="singular"):
        jnp.linalg.solve(a, b)


def test_operands_that_are_not_for_it():
    a = jnp.asarray(random(3, 3, dtype="float32"))
    stack = jnp.linalg.inv(jnp.stack([a, a]))
    np.testing.assert_allclose(stack[1], jnp.linalg.inv(a), rtol=1e-3, atol=1e-4)
    assert jnp.linalg.solve(a, jnp.arange(3)).dtype == np.float32
    assert jnp.linalg.solve(a, np.ones(3)).dtype == np.float64
    assert jnp.linalg.inv(jnp.zeros((0, 0))).shape == (0, 0) and float(jnp.linalg.det(jnp.zeros((0, 0)))) == 1
    for wrong in (jnp.ones((3, 2)), jnp.ones(3)):
        for function in (jnp.linalg.inv, jnp.linalg.det, lambda x: jnp.linalg.solve(x, jnp.ones(3))):
            with pytest.raises(ValueError, match="takes"):
                function(wrong)


def test_transformed_calls_and_watchers_see_the_operations():
    a = jnp.asarray(random(4, 4, dtype="float64") + 3 * np.eye(4))
    b = jnp.asarray(random(4, dtype="float64"))
    gradient = corejax.grad(lambda a: jnp.sum(jnp.linalg.solve(a, b)) + jnp.linalg.det(a))(a)
    step = 1e-6 * random(4, 4, dtype="float64")
    change = [np.sum(np.linalg.solve(m, b)) + np.linalg.det(m) for m in (np.asarray(a) + step, np.asarray(a) - step)]
    np.testing.assert_allclose(np.sum(np.asarray(gradient) * step), (change[0] - change[1]) / 2, rtol=1e-5)
    np.testing.assert_allclose(corejax.jit(jnp.linalg.inv)(a), jnp.linalg.inv(a), rtol=1e-9)
    seen = []
    with observe.watching(lambda step, begins: seen.append(step.primitive.name)):
        jnp.linalg.inv(a)
    assert {"lu", "triangular_solve"} <= set(seen)


def test_operands_stay_as_they_are():
    given = random(5, 5, dtype="float32")
    a, b = jnp.asarray(given), jnp.asarray(given[0])
    jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a)
    np.testing.assert_array_equal(a, given)
    np.testing.assert_array_equal(b, given[0])
