"""reshape, transpose, squeeze, rev, concatenate, pad, iota: against jax and NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.extend import as_array
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

BF16 = np.dtype(ml_dtypes.bfloat16)
CASES = [
    Case("reshape", lambda lax, x: lax.reshape(x, (4, 3)), [data(3, 4)]),
    Case("reshape to scalar", lambda lax, x: lax.reshape(x, ()), [data(1, 1)]),
    Case("reshape of scalar", lambda lax, x: lax.reshape(x, (1, 1)), [data()]),
    Case("reshape nothing", lambda lax, x: lax.reshape(x, (4, 0, 2)), [data(0, 3)]),
    Case("reshape read in another order", lambda lax, x: lax.reshape(x, (6,), (1, 0)), [data(2, 3)]),
    Case("collapse", lambda lax, x: lax.collapse(x, 1, 3), [data(2, 3, 2, 1)]),
    Case("transpose", lambda lax, x: lax.transpose(x, (2, 0, 1)), [data(2, 3, 4)]),
    Case("transpose nothing", lambda lax, x: lax.transpose(x, (1, 0)), [data(0, 3)]),
    Case("squeeze", lambda lax, x: lax.squeeze(x, (0, 2)), [data(1, 3, 1)]),
    Case("squeeze negative", lambda lax, x: lax.squeeze(x, (-1,)), [data(1, 3, 1)]),
    Case("rev", lambda lax, x: lax.rev(x, (0, 2)), [data(2, 3, 4)]),
    Case("rev none", lambda lax, x: lax.rev(x, ()), [data(2)]),
    Case("concatenate", lambda lax, x, y: lax.concatenate([x, y], 1), [data(2, 3), data(2, 1, seed=1)], diff=(0, 1)),
    Case("concatenate constant", lambda lax, x, y: lax.concatenate([y, x, y], 0), [data(2), data(3)]),
    Case("concatenate nothing", lambda lax, x, y: lax.concatenate([x, y], 0), [data(0, 2), data(1, 2)], diff=(0, 1)),
    Case("concatenate itself", lambda lax, x: lax.concatenate([x, x, x], 0), [data(2, 2)]),
    Case("pad", lambda lax, x, v: lax.pad(x, v, ((1, 2, 0), (0, 1, 0))), [data(2, 3), data()], diff=(0, 1)),
    Case("pad inside", lambda lax, x, v: lax.pad(x, v, ((0, 0, 2), (1, 0, 1))), [data(2, 3), data()], diff=(0, 1)),
    Case("pad negative", lambda lax, x, v: lax.pad(x, v, ((-1, 0, 0), (1, -2, 0))), [data(3, 4), data()], diff=(0, 1)),
    Case("crop inside", lambda lax, x, v: lax.pad(x, v, ((-3, -2, 1), (-1, 2, 2))), [data(5, 3), data()], diff=(0, 1)),
    Case("crop all but padding", lambda lax, x, v: lax.pad(x, v, ((-4, 3, 1),)), [data(2), data()], diff=(0, 1)),
    Case("crop everything", lambda lax, x, v: lax.pad(x, v, ((-2, -1, 0),)), [data(3), data()], diff=(0, 1)),
    Case("pad nothing", lambda lax, x, v: lax.pad(x, v, ((1, 2, 3),)), [data(0), data()], diff=(0, 1)),
    Case("pad a scalar", lambda lax, x, v: lax.pad(x, v, ()), [data(), data()]),
    Case("pad with a constant", lambda lax, x: lax.pad(x, np.float32(7), ((1, 1, 0),)), [data(3)]),
]


@parametrize(CASES)
def test_values(case: Case) -> None:
    check_values(case)


@parametrize(CASES)
def test_compiled(case: Case) -> None:
    check_compiled(case)


@parametrize(CASES)
def test_vmap(case: Case) -> None:
    check_vmap(case)


@parametrize(CASES)
def test_derivatives(case: Case) -> None:
    check_derivatives(case)


FUNCTIONS = {
    "reshape": (lambda x: lax.reshape(x, (4, 3)), lambda x: x.reshape(4, 3)),
    "transpose": (lambda x: lax.transpose(x, (1, 0)), lambda x: x.T),
    "squeeze": (lambda x: lax.squeeze(x[:1], (0,)), lambda x: x[0]),
    "rev": (lambda x: lax.rev(x, (0,)), lambda x: x[::-1]),
    "concatenate": (lambda x: lax.concatenate([x, x], 0), lambda x: np.concatenate([x, x])),
    "pad": (
        lambda x: lax.pad(x, x[0, 0], ((1, 0, 0), (0, 0, 0))),
        lambda x: np.pad(x, ((1, 0), (0, 0)), constant_values=x[0, 0]),
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes(name: str, dtype: Any) -> None:
    ours, numpys = FUNCTIONS[name]
    x = data(3, 4, dtype=dtype)
    assert_same(ours(as_array(x)), numpys(x))
    assert_same(corejax.jit(ours)(x), numpys(x))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.float32, np.complex64, BF16], ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((4,), 0), ((2, 3), 1), ((2, 0), 0), ((0,), 0)])
def test_iota(dtype: Any, shape: Any, axis: int) -> None:
    jax = pytest.importorskip("jax")
    expected = jax.lax.broadcasted_iota(dtype, shape, axis)
    assert_same(lax.broadcasted_iota(dtype, shape, axis), expected)
    assert_same(corejax.jit(lambda: lax.broadcasted_iota(dtype, shape, axis))(), expected)


def test_iota_is_the_same_for_a_whole_batch() -> None:
    out = corejax.vmap(lambda x: x + lax.iota(np.float32, 3))(np.zeros((2, 3), np.float32))
    assert_same(out, np.tile(np.arange(3, dtype=np.float32), (2, 1)))


@pytest.mark.parametrize("value", [2.5, np.int8(3), True, 1 + 2j])
def test_full(value: Any) -> None:
    jax = pytest.importorskip("jax")
    ours, theirs = lax.full((2, 3), value), jax.lax.full((2, 3), value)
    assert_same(ours, theirs)
    assert ours.weak_type == theirs.weak_type
    assert_same(lax.full((2,), value, np.complex64), jax.lax.full((2,), value, np.complex64))
    assert_same(lax.full_like(data(2, dtype=np.int8), 3), np.full(2, 3, np.int8))


def test_nothing_is_bound_for_identities() -> None:
    x = as_array(data(2, 3))
    same = (lax.reshape(x, (2, 3)), lax.transpose(x, (0, 1)), lax.squeeze(x, ()), lax.concatenate([x], 0))
    assert all(y is x for y in same)


def test_jaxpr_text() -> None:
    text = str(
        corejax.make_jaxpr(lambda x: lax.pad(lax.transpose(x, (1, 0)).reshape(-1), 0.0, ((1, 2, 0),)))(data(2, 3))
    )
    assert text == (
        "{ lambda ; a:f32[2,3]. let\n"
        "    b:f32[3,2] = transpose[permutation=(1, 0)] a\n"
        "    c:f32[6] = reshape[new_sizes=(6,)] b\n"
        "    d:f32[9] = pad[padding_config=((1, 2, 0),)] c 0.0:f32[]\n"
        "  in (d,) }"
    )


ERRORS = [
    (lambda x: lax.reshape(x, (5,)), TypeError, r"reshape: operand f32\[2,3\] has 6 elements, new_sizes \(5,\) has 5"),
    (lambda x: lax.reshape(x, (-1, 4)), TypeError, r"6 elements, which do not fill shape \(-1, 4\)"),
    (lambda x: lax.reshape(x, (-1, -1)), ValueError, "at most one size may be -1"),
    (lambda x: lax.reshape(x, (-2, -3)), TypeError, "must be nonnegative"),
    (lambda x: lax.reshape(x, "ab"), TypeError, "1D sequences of concrete values of integer type"),
    (
        lambda x: lax.transpose(x, (0, 0)),
        TypeError,
        r"\(0, 0\) is not a permutation of the 2 axes of operand f32\[2,3\]",
    ),
    (lambda x: lax.squeeze(x, (1,)), ValueError, r"axis 1 of operand f32\[2,3\] has size 3"),
    (lambda x: lax.squeeze(x, (2,)), ValueError, "out of bounds"),
    (lambda x: lax.rev(x, (1, 1)), ValueError, "twice"),
    (lambda x: lax.rev(x, (2,)), ValueError, r"not all axes of operand f32\[2,3\]"),
    (lambda x: lax.concatenate([], 0), ValueError, "at least one"),
    (lambda x: lax.concatenate([x, x[:, :1]], 0), TypeError, r"operand 0 is f32\[2,3\], operand 1 is f32\[2,1\]"),
    (lambda x: lax.concatenate([x, x.astype(int)], 0), TypeError, r"the same dtype; .* operand 1 is i32\[2,3\]"),
    (lambda x: lax.concatenate([x, x], 2), TypeError, "dimension 2 is not an axis"),
    (
        lambda x: lax.pad(x, np.int32(0), ((0, 0, 0),) * 2),
        TypeError,
        r"f32\[2,3\] and padding value i32\[\] differ in dtype",
    ),
    (lambda x: lax.pad(x, x, ((0, 0, 0),) * 2), ValueError, r"padding_value must be a scalar, got f32\[2,3\]"),
    (lambda x: lax.pad(x, 0.0, ((0, 0, 0),)), ValueError, "has 2 axes, padding_config .* has 1"),
    (lambda x: lax.pad(x, 0.0, ((0, 0, -1),) * 2), ValueError, "interior padding .* must be nonnegative"),
    (lambda x: lax.pad(x, 0.0, ((-3, 0, 0),) * 2), ValueError, "drops more"),
    (lambda x: lax.iota(bool, 3), TypeError, "the dtype must be numeric"),
    (lambda x: lax.full((2,), x), TypeError, r"the fill value must be a scalar, got f32\[2,3\]"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f), corejax.grad(f)):
        with pytest.raises(error, match=text):
            transformed(as_array(data(2, 3)))
