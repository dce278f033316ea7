"""Whether negative starts of dynamic slices count from the end: against jax."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax import lax

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)

CASES = [
    lambda m, i: m.dynamic_slice(X, (i, i), (1, 2), allow_negative_indices=False),
    lambda m, i: m.dynamic_slice(X, (i, i), (1, 2), allow_negative_indices=[True, False]),
    lambda m, i: m.dynamic_slice_in_dim(X, i, 2, 1, allow_negative_indices=False),
    lambda m, i: m.dynamic_index_in_dim(X, i, 1, False, allow_negative_indices=False),
    lambda m, i: m.dynamic_update_slice(X, X[:1, :2], (i, i), allow_negative_indices=(False, True)),
    lambda m, i: m.dynamic_update_slice_in_dim(X, X[:1], i, 0, allow_negative_indices=False),
    lambda m, i: m.dynamic_update_index_in_dim(X, X[0], i, 0, allow_negative_indices=False),
]


@pytest.mark.parametrize("f", CASES)
def test_starts_are_jaxs(f) -> None:
    jax = pytest.importorskip("jax")
    for start in (np.array(-1, np.int32), np.array(-2, np.int32), np.array(1, np.int8)):
        expected = f(jax.lax, start)
        np.testing.assert_array_equal(f(lax, start), expected)
        np.testing.assert_array_equal(corejax.jit(lambda i: f(lax, i))(start), expected)


def test_nothing_is_computed_for_starts_that_are_not_negative() -> None:
    program = corejax.make_jaxpr(lambda i: lax.dynamic_slice(X, (i, i), (1, 1), allow_negative_indices=False))(1)
    assert [eqn.primitive.name for eqn in program.jaxpr.eqns] == ["dynamic_slice"]
    with pytest.raises(ValueError, match="start -1 of an axis of size 3 is negative"):
        lax.dynamic_slice(X, (-1, 0), (1, 1), allow_negative_indices=False)
    with pytest.raises(TypeError, match="allow_negative_indices must have an entry for each axis"):
        lax.dynamic_slice(X, (0, 0), (1, 1), allow_negative_indices=[True])


def test_an_update_of_too_few_dimensions() -> None:
    x = np.zeros((2, 3, 4), np.float32)
    wanted = r"dynamic_update_index_in_dim: an operand of 3 dimensions takes an update of 2 or 3, got f32\[\]"
    with pytest.raises(TypeError, match=wanted):
        lax.dynamic_update_index_in_dim(x, 7.0, 1, 2)
    with pytest.raises(TypeError, match=r"got f32\[1,2,3,4\]"):
        lax.dynamic_update_index_in_dim(x, x[None], 1, 2)
    assert lax.dynamic_update_index_in_dim(x, x[:, :, 0] + 1, 1, 2).sum() == 6
