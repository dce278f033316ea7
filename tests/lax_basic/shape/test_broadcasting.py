"""broadcast_in_dim and what is said in terms of it, against jax and NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
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

CASES = [
    Case("scalar", lambda lax, x: lax.broadcast_in_dim(x, (2, 3), ()), [data()]),
    Case("row", lambda lax, x: lax.broadcast_in_dim(x, (2, 3), (1,)), [data(3)]),
    Case("column", lambda lax, x: lax.broadcast_in_dim(x, (3, 2), (0,)), [data(3)]),
    Case("unit axes", lambda lax, x: lax.broadcast_in_dim(x, (4, 2, 5), (0, 2)), [data(1, 5)]),
    Case("unit stays unit", lambda lax, x: lax.broadcast_in_dim(x, (4, 1, 3), (1, 2)), [data(1, 1)]),
    Case("to nothing", lambda lax, x: lax.broadcast_in_dim(x, (0, 3), (1,)), [data(3)]),
    Case("of nothing", lambda lax, x: lax.broadcast_in_dim(x, (2, 0), (1,)), [data(0)]),
    Case("unit to nothing", lambda lax, x: lax.broadcast_in_dim(x, (0,), (0,)), [data(1)]),
    Case("complex", lambda lax, x: lax.broadcast_in_dim(x, (2, 3), (1,)), [data(3, dtype=np.complex64)]),
    Case("broadcast", lambda lax, x: lax.broadcast(x, (2, 1)), [data(3, 2)]),
    Case("expand one", lambda lax, x: lax.expand_dims(x, (1,)), [data(3, 2)]),
    Case("expand two", lambda lax, x: lax.expand_dims(x, (0, -1)), [data(3, 2)]),
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


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any) -> None:
    x = data(3, dtype=dtype)
    assert_same(lax.broadcast_in_dim(x, (2, 3), (1,)), np.broadcast_to(x, (2, 3)))


SHAPES = [(), (1,), (3,), (2, 1), (1, 3), (2, 3), (0,), (4, 1, 1), (2, 0, 3)]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, SHAPES)))
def test_broadcast_shapes_is_numpys(a: Any, b: Any) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
            lax.broadcast_shapes(a, b)
    else:
        assert lax.broadcast_shapes(a, b) == expected


@pytest.mark.parametrize("f", [jnp.broadcast_arrays, jnp.polyval, jnp.logspace])
def test_the_function_is_named_if_shapes_do_not_broadcast(f: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{f.__name__}: Incompatible shapes for broadcasting"):
        f(np.ones((3, 4), np.float32), np.ones(7, np.float32))


def test_nothing_is_bound_for_the_identity() -> None:
    x = as_array(data(2, 3))
    assert lax.broadcast_in_dim(x, (2, 3), (0, 1)) is x
    assert lax.expand_dims(x, ()) is x


def test_eager_results_share_memory() -> None:
    out = lax.broadcast_in_dim(np.float32(1.0), (1000, 1000), ())
    assert np.asarray(out).strides == (0, 0)


def test_jaxpr_text() -> None:
    text = str(corejax.make_jaxpr(lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)))(data(3)))
    assert text == (
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[2,3] = broadcast_in_dim[\n"
        "      broadcast_dimensions=(1,)\n"
        "      shape=(2, 3)\n"
        "    ] a\n"
        "  in (b,) }"
    )


ERRORS = [
    (lambda x: lax.broadcast_in_dim(x, (2, 3), ()), TypeError, r"f32\[3\].*must have length equal to operand ndim 1"),
    (lambda x: lax.broadcast_in_dim(x, (2, 4), (1,)), ValueError, r"axis 0 of the operand has size 3.* nor 4"),
    (lambda x: lax.broadcast_in_dim(x, (2, 3), (2,)), TypeError, "must be a subset of output dimensions"),
    (lambda x: lax.broadcast_in_dim(lax.expand_dims(x, 0), (3, 3), (1, 1)), TypeError, "must not contain duplicates"),
    (lambda x: lax.broadcast_in_dim(x, (2.0, 3), (1,)), TypeError, r"1D sequences of concrete values"),
    (lambda x: lax.broadcast_in_dim(x, (-1, 3), (1,)), ValueError, "not negative"),
    (lambda x: lax.expand_dims(x, (0, 0)), ValueError, "duplicate value in 'axes'"),
    (lambda x: lax.expand_dims(x, 5), ValueError, "out of bounds"),
    (lambda x: lax.broadcast_in_dim("a", (2,), ()), TypeError, "is not an array"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f), corejax.grad(f)):
        with pytest.raises(error, match=text):
            transformed(data(3))


def test_zeros_are_lazy_and_staged_as_a_literal() -> None:
    """Cotangents that are zero: a view of one element, and under staging a broadcast literal."""
    f = lambda x: corejax.grad(lambda y: x.sum())(x)
    assert_same(f(data(3)), np.zeros(3, np.float32))
    text = str(corejax.make_jaxpr(f)(data(3)))
    assert "broadcast_in_dim" in text
    assert "0.0:f32[]" in text


def test_axes_in_any_order() -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    wanted = np.broadcast_to(x.transpose(2, 1, 0)[:, None], (4, 5, 3, 2))
    np.testing.assert_array_equal(lax.broadcast_in_dim(x, (4, 5, 3, 2), (3, 2, 0)), wanted)
