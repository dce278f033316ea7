"""Running sums and products: values as NumPy's, dtypes as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import assert_close, check, check_types
from tests.numpy_api.test_elementwise import DTYPES, sample

NAMES = ["cumsum", "cumprod"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*NAMES, "cumulative_sum", "cumulative_prod"])
def test_dtypes(name: str, dtype: str) -> None:
    x = sample(dtype, (5,))
    if name == "cumulative_prod" and dtype in ("int8", "uint8"):  # as the standard has it; jax keeps the dtype
        ours = jnp.cumulative_prod(x)
        assert ours.dtype == jnp.prod(x).dtype
    else:
        (ours,) = check_types(lambda xp, x: getattr(xp, name)(x), x)
    wide = x.astype(np.float64) if "float" in dtype else x
    numpy = getattr(np, name.replace("ulative_", ""))
    assert_close(ours, numpy(wide, dtype=ours.dtype if wide is x else None), 2e-2 if "16" in dtype else None)


@pytest.mark.parametrize("dtype", [None, "float32", "int8"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, -3])
@pytest.mark.parametrize("name", NAMES)
def test_axes(name: str, axis: Any, dtype: Any) -> None:
    check(lambda xp, x: getattr(xp, name)(x, axis=axis, dtype=dtype), sample("int32", (2, 3, 4)))
    x = jnp.asarray(sample("float32", (2, 3, 4)))
    np.testing.assert_array_equal(getattr(x, name)(axis), getattr(jnp, name)(x, axis))


@pytest.mark.parametrize("shape, axis", [((3,), None), ((2, 3), 1), ((2, 3), -2), ((0, 2), 0)])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_initial(name: str, shape: Any, axis: Any) -> None:
    check(
        lambda xp, x: getattr(xp, name)(x, axis=axis, include_initial=True),
        sample("float32", shape),
    )


def test_of_no_elements_and_scalars() -> None:
    for name in NAMES:
        check(lambda xp, name=name: getattr(xp, name)(xp.zeros((0, 3)), axis=0))
        check(lambda xp, name=name: getattr(xp, name)(2.5))


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="cumsum: axis"):
        jnp.cumsum(np.ones((2, 3), np.float32), axis=2)
    with pytest.raises(ValueError, match="cumulative_sum: give the axis of an array that has 2"):
        jnp.cumulative_sum(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="cumulative_prod: the array must have at least one axis"):
        jnp.cumulative_prod(2.0)


def test_gradient_through_zeros() -> None:
    x = np.array([2.0, 0.0, 3.0], np.float32)
    np.testing.assert_allclose(corejax.grad(lambda x: jnp.cumprod(x).sum())(x), [1 + 0 + 0, 2 + 2 * 3, 0])
