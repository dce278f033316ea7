"""`split`, `unstack`, `stack`, `tile`: against jax, run, compiled, batched and differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax
from tests.lax_basic.structural_checks import (
    DTYPES,
    Case,
    assert_same,
    check_compiled,
    check_derivatives,
    check_values,
    check_vmap,
    data,
    parametrize,
)

CASES = [
    Case("split", lambda lax, x: lax.split(x, (2, 0, 3))[2], [data(5)]),
    Case("split along an axis", lambda lax, x: lax.split(x, [1, 2], axis=-1)[1], [data(2, 3)]),
    Case("split, both used", lambda lax, x: lax.split(x, (1, 1), 1)[0] * lax.split(x, (1, 1), 1)[1], [data(3, 2)]),
    Case("unstack", lambda lax, x: lax.unstack(x)[1], [data(3)]),
    Case("unstack along an axis", lambda lax, x: lax.unstack(x, axis=-1)[0] * lax.unstack(x, -1)[2], [data(2, 3)]),
    Case("stack", lambda lax, x, y: lax.stack([x, y]), [data(3), data(3, seed=1)], (0, 1)),
    Case("stack along an axis", lambda lax, x, y: lax.stack((x, y, x), axis=-1), [data(2, 3), data(2, 3)], (0, 1)),
    Case("stack scalars", lambda lax, x, y: lax.stack([x, y]), [data(), data(seed=1)], (0, 1)),
    Case("tile", lambda lax, x: lax.tile(x, (2, 3)), [data(3, 2)]),
    Case("tile a vector", lambda lax, x: lax.tile(x, [2]), [data(3)]),
    Case("tile none", lambda lax, x: lax.tile(x, (0, 1)), [data(2, 3)]),
    Case("tile a scalar", lambda lax, x: lax.tile(x, ()), [data()]),
]


@parametrize(CASES)
def test_values(case: Case) -> None:
    check_values(case)


@parametrize(CASES)
def test_vmap(case: Case) -> None:
    check_vmap(case)


@parametrize(
    [c for c in CASES if c.name in ("split, both used", "unstack along an axis", "stack along an axis", "tile")]
)
def test_derivatives(case: Case) -> None:
    check_compiled(case)
    check_derivatives(case)


def test_dtypes() -> None:
    for dtype in DTYPES:
        x = data(4, 3, dtype=dtype)
        assert_same(lax.stack(lax.unstack(x, 1), 1), x)
        assert_same(lax.tile(x, (2, 1)), np.tile(x, (2, 1)))
        assert_same(lax.split(x, (1, 3))[1], x[1:])


def test_derivatives_of_parts_are_sums_of_parts() -> None:
    """Parts that are not used are zeros of the cotangent; a program says so in few equations."""
    x = data(6)
    f = lambda x: (lax.split(x, (1, 2, 3))[1] ** 2).sum()
    assert_same(corejax.grad(f)(x), np.where([0, 1, 1, 0, 0, 0], 2 * x, 0).astype(np.float32))
    assert_same(corejax.jit(corejax.vmap(corejax.hessian(f)))(x[None])[0], np.diag([0, 2, 2, 0, 0, 0]).astype("f4"))
    g = lambda x: lax.unstack(x)[4] * 3
    assert_same(corejax.jit(corejax.grad(g))(x), np.eye(6, dtype=np.float32)[4] * 3)


ERRORS = [
    (lambda x: lax.split(x, (1, 2)), ValueError, r"split: Sum of sizes 3 .* axis 0 of f32\[2,3\].* sizes \(1, 2\)"),
    (lambda x: lax.split(x, (3, -1)), ValueError, "must be nonnegative"),
    (lambda x: lax.split(x, (1.0, 1.0)), TypeError, "float"),
    (lambda x: lax.split(x, (2,), 2), ValueError, "split: axis 2 is out of bounds"),
    (lambda x: lax.unstack(x, 2), ValueError, "unstack: axis 2 is out of bounds"),
    (lambda x: lax.unstack(x[0, 0]), ValueError, "out of bounds for an array of 0 dimensions"),
    (lambda x: lax.stack([]), ValueError, "at least one operand"),
    (lambda x: lax.stack([x, x[0]]), TypeError, r"operand 0 is f32\[2,3\], operand 1 is f32\[3\]"),
    (lambda x: lax.stack([x, x > 0]), TypeError, "the same shape and dtype"),
    (lambda x: lax.stack([x], 4), ValueError, "stack: axis 4 is out of bounds"),
    (lambda x: lax.tile(x, (2,)), TypeError, r"tile: reps must have an entry for each axis of f32\[2,3\], got \(2,\)"),
    (lambda x: lax.tile(x, (2, -1)), ValueError, "reps must be nonnegative"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        f(corejax.numpy.asarray(data(2, 3)))
