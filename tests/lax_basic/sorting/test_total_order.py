"""Comparisons in the total order: against jax, in every dtype."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax import lax
from tests.lax_basic.sorting.test_sort import FLOATS, INTEGERS, of_dtype


def test_every_pair_is_ordered_as_in_jax() -> None:
    jax = pytest.importorskip("jax")
    xs = [of_dtype(t) for t in (*FLOATS, *INTEGERS)]

    def compared(api, x):
        shape = (x.size, x.size)
        x, y = np.broadcast_to(x[:, None], shape), np.broadcast_to(x, shape)
        return [getattr(api, name).bind(x, y) for name in ("eq_to_p", "lt_to_p", "le_to_p")]

    with jax.enable_x64(True):
        theirs = jax.jit(lambda: [compared(jax.lax, x) for x in xs])()
    compiled = corejax.jit(lambda: [compared(lax, x) for x in xs])()
    for x, wanted, fast in zip(xs, theirs, compiled, strict=True):
        np.testing.assert_array_equal(compared(lax, x), wanted, err_msg=str(x.dtype))
        np.testing.assert_array_equal(fast, wanted, err_msg=str(x.dtype))


def test_scalars_mix_with_arrays_and_complex_numbers_are_refused() -> None:
    x = np.array([np.nan, 0.0], np.float32)
    np.testing.assert_array_equal(corejax.vmap(lax.lt_to_p.bind, in_axes=(0, None))(x, np.float32(0)), [False, False])
    np.testing.assert_array_equal(lax.lt_to_p.bind(np.float32(-0.0), x), [True, True])
    with pytest.raises(TypeError, match="lt_to does not accept dtype complex64"):
        lax.lt_to_p.bind(x.astype("c8"), x.astype("c8"))
