"""Windows: values as NumPy's, types as jax's."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled_together

NAMES = ["bartlett", "blackman", "hamming", "hanning"]


@pytest.mark.parametrize("size", [-1, 0, 1, 2, 5, 20])
def test_values_and_types(size: int) -> None:
    for name in NAMES:
        if size < 0:
            assert getattr(jnp, name)(size).shape == (0,)
        else:
            check(lambda xp: getattr(xp, name)(size), rtol=1e-5)  # noqa: B023


@pytest.mark.parametrize("beta", [0, 5.0, -14])
def test_kaiser(beta: float) -> None:
    if not hasattr(corejax.lax, "bessel_i0e"):
        pytest.skip("needs Bessel's functions")
    for size in (0, 1, 2, 9):
        check(lambda xp: xp.kaiser(size, beta), rtol=1e-5)  # noqa: B023
    assert np.isfinite(jnp.kaiser(5, 1000.0)).all()  # NumPy's overflows
    with pytest.raises(ValueError, match="kaiser: beta is a scalar"):
        jnp.kaiser(5, np.ones(2))


def test_compiled_and_bad_input() -> None:
    check_compiled_together([lambda xp, name=name: getattr(xp, name)(7) for name in NAMES], rtol=1e-5)
    for name in NAMES:
        with pytest.raises(TypeError, match=f"{name}: the number of points is an integer, got 2.5"):
            getattr(jnp, name)(2.5)
        with pytest.raises(TypeError, match=name):
            corejax.jit(getattr(jnp, name))(3)
    assert np.isfinite(jnp.blackman(3)).all()
