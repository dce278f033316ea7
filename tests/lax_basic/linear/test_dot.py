"""dot_general and the products said in terms of it: against jax and NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.dtypes import TypePromotionError
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

BOTH = (0, 1)


def general(lhs_contract: Any, rhs_contract: Any, lhs_batch: Any = (), rhs_batch: Any = ()) -> Any:
    numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    return lambda lax, x, y: lax.dot_general(x, y, numbers)


CASES = [
    Case("matrices", general((1,), (0,)), [data(2, 3), data(3, 4)], BOTH),
    Case("matrix and vector", general((1,), (0,)), [data(2, 3), data(3)], BOTH),
    Case("vector and matrix", general((0,), (0,)), [data(3), data(3, 4)], BOTH),
    Case("vectors", general((0,), (0,)), [data(3), data(3, seed=1)], BOTH),
    Case("outer", general((), ()), [data(2, 3), data(4)], BOTH),
    Case("scalars", general((), ()), [data(), data(seed=1)], BOTH),
    Case("transposed", general((0,), (1,)), [data(3, 2), data(4, 3)], BOTH),
    Case("batch", general((2,), (1,), (0,), (0,)), [data(2, 3, 4), data(2, 4, 2)], BOTH),
    Case("batch in the middle", general((0,), (2,), (1,), (0,)), [data(4, 2, 3), data(2, 1, 4)], BOTH),
    Case("two batches crossed", general((1,), (2,), (0, 2), (1, 0)), [data(2, 3, 4), data(4, 2, 3)], BOTH),
    Case("two contractions crossed", general((0, 2), (2, 1)), [data(2, 3, 4), data(5, 4, 2)], BOTH),
    Case("all contracted", general((0, 1), (1, 0)), [data(2, 3), data(3, 2)], BOTH),
    Case("nothing summed", general((1,), (0,)), [data(2, 0), data(0, 3)], BOTH),
    Case("no rows", general((1,), (0,)), [data(0, 3), data(3, 2)], BOTH),
    Case("complex", general((1,), (0,)), [data(2, 3, dtype="c8"), data(3, 2, dtype="c8")], BOTH),
    Case("dot", lambda lax, x, y: lax.dot(x, y), [data(2, 3), data(3)], BOTH),
    Case("batch_matmul", lambda lax, x, y: lax.batch_matmul(x, y), [data(2, 3, 4), data(2, 4, 1)], BOTH),
    Case(
        "precision",
        lambda lax, x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), "highest"),
        [data(2, 3), data(3, 2)],
        BOTH,
    ),
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


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("numbers", [(((1,), (0,)), ((), ())), (((1,), (1,)), ((0,), (0,)))], ids=["plain", "batched"])
def test_dtypes(dtype: Any, numbers: Any) -> None:
    jax = pytest.importorskip("jax")
    x, y = data(3, 3, dtype=dtype), data(3, 3, dtype=dtype, seed=1)
    expected = jax.lax.dot_general(x, y, numbers)
    assert_same(lax.dot_general(x, y, numbers), expected)
    assert_same(corejax.jit(lambda x, y: lax.dot_general(x, y, numbers))(x, y), expected)


@pytest.mark.parametrize(
    ("dtype", "preferred"),
    [(np.int8, np.int32), (ml_dtypes.bfloat16, np.float32), (np.float32, np.float64), (np.float32, ml_dtypes.bfloat16)],
)
def test_preferred_element_type(dtype: Any, preferred: Any) -> None:
    """Sums are of the preferred type, and derivatives come back in the operands'."""
    x, y = data(20, 30, dtype=dtype), data(30, 20, dtype=dtype, seed=1)
    f = lambda x, y: lax.dot(x, y, preferred_element_type=preferred)
    expected = (x.astype(np.float64) @ y.astype(np.float64)).astype(preferred)
    assert_same(f(x, y), expected)
    if dtype is not np.int8:
        ct = data(20, 20, dtype=preferred, seed=2)
        for bar, primal in zip(corejax.vjp(f, x, y)[1](ct), (x, y), strict=True):
            assert bar.aval.shape == primal.shape
            assert bar.aval.dtype == primal.dtype


def test_integers_wrap_and_long_sums_of_narrow_floats_stay_accurate() -> None:
    x = np.full((1, 300), 100, np.int8)
    assert_same(lax.dot(x, x.T), (x.astype(np.int64) @ x.T.astype(np.int64)).astype(np.int8))
    ones = np.ones((1, 1000), ml_dtypes.bfloat16)
    assert float(lax.dot(ones, ones.T)[0, 0]) == 1000.0


@pytest.mark.parametrize(
    ("kinds", "preferred"),
    [
        (("int8", "int8"), "int8"),
        (("int8", "int8"), "int32"),
        (("int8", "int8"), "uint64"),
        (("uint8", "uint8"), "uint8"),
        (("int8", "uint8"), "int32"),
        (("int16", "int8"), "int16"),
        (("int32", "int32"), "int64"),
    ],
)
@pytest.mark.parametrize("terms", [60, 2000])
def test_many_products_of_integers_are_exact_and_wrap(kinds, preferred, terms) -> None:
    random = np.random.default_rng(0)
    limits = [np.iinfo(kind) for kind in kinds]
    shapes = (50, terms), (terms, 40)
    x, y = (
        random.integers(info.min, int(info.max) + 1, shape, kind)
        for info, shape, kind in zip(limits, shapes, kinds, strict=True)
    )
    out = lax.dot(x, y, preferred_element_type=preferred)
    assert_same(out, (x.astype(np.int64) @ y.astype(np.int64)).astype(preferred))


SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((5, 2, 3), (3, 4))]
STACKED = [
    ((3,), (5, 3, 2)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
]


@pytest.mark.parametrize(("a", "b"), [*SHAPES, *STACKED, ((0, 3), (3, 2)), ((2, 0), (0, 3))])
def test_matmul_is_numpys(a: Any, b: Any) -> None:
    x, y = data(*a), data(*b, seed=1)
    assert_same(as_array(x) @ as_array(y), x @ y)
    assert_same(x @ as_array(y), x @ y)
    assert_same(as_array(x) @ y, x @ y)
    mapped = corejax.vmap(lambda x, y: x @ y)(np.stack([x, 2 * x]), np.stack([y, y]))
    assert_same(mapped, np.stack([x @ y, 2 * x @ y]))


@pytest.mark.parametrize(("a", "b"), [*SHAPES, ((2, 3), (5, 3, 4)), ((), (2, 3)), ((2,), ()), ((6, 2, 3), (5, 3, 4))])
def test_dot_method_is_numpys(a: Any, b: Any) -> None:
    x, y = data(*a), data(*b, seed=1)
    assert_same(as_array(x).dot(y), np.dot(x, y))


def test_products_promote() -> None:
    assert (as_array(data(2, 3, dtype=np.int8)) @ data(3, 2)).dtype == np.float32
    assert as_array(data(2, 3, dtype=np.int8)).dot(data(3, dtype=np.int32)).dtype == np.int32


def test_jaxpr_text_is_the_seeds() -> None:
    text = str(corejax.make_jaxpr(lambda x, y: (x + 1).dot(y + 1))(data(3, 4), data(4)))
    assert text == (
        "{ lambda ; a:f32[3,4] b:f32[4]. let\n"
        "    c:f32[3,4] = add a 1.0:f32[]\n"
        "    d:f32[4] = add b 1.0:f32[]\n"
        "    e:f32[3] = dot_general[\n"
        "      dimension_numbers=(([1], [0]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] c d\n"
        "  in (e,) }"
    )


ERRORS = [
    (
        lambda x: general((1,), (0,))(lax, x, x),
        TypeError,
        r"contracting axes \(1,\) of lhs f32\[2,3\] have sizes \(3,\), .*\(2,\)",
    ),
    (lambda x: general((), (), (0,), (1,))(lax, x, x), TypeError, "batch axes"),
    (lambda x: general((2,), (0,))(lax, x, x), TypeError, r"lhs is f32\[2,3\]; not all of contracting axes \(2,\)"),
    (lambda x: general((0, 0), (0, 0))(lax, x, x), TypeError, "of lhs name an axis twice"),
    (lambda x: lax.dot_general(x, x, ((1,), (1,))), TypeError, r"dot_general: dimension_numbers must be .* got \(\(1,"),
    (lambda x: lax.dot(x, x[0], precision="best"), ValueError, "precision must be None, one of 'default'.* got 'best'"),
    (lambda x: lax.dot(x, x), TypeError, "not vectors or matrices that can be multiplied"),
    (lambda x: lax.batch_matmul(x, x[0]), TypeError, "the same rank"),
    (lambda x: x @ x, TypeError, r"last axis of f32\[2,3\] has size 3, axis 0 of f32\[2,3\] has size 2"),
    (lambda x: x @ 2.0, ValueError, r"use \* to multiply"),
    (lambda x: x.dot("a"), TypeError, "dot takes arrays"),
    (lambda x: x.dot(x), TypeError, "have to be equal"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f), corejax.grad(f)):
        with pytest.raises(error, match=text):
            transformed(as_array(data(2, 3)))


def test_a_real_result_of_complex_operands_is_refused() -> None:
    z = np.ones((2, 2), np.complex64)
    with pytest.raises(TypeError, match=r"preferred_element_type float32 drops the imaginary parts .* c64\[2,2\]"):
        lax.dot_general(z, z, (((1,), (0,)), ((), ())), preferred_element_type=np.float32)


@pytest.mark.parametrize("preferred", ["int32", "bool", "uint8"])
def test_an_integer_type_of_sums_is_refused_for_fractions(preferred):
    x = np.ones((2, 2), np.float32)
    with pytest.raises(TypeError, match=f"preferred_element_type {preferred} drops the fractions"):
        lax.dot(x, x, preferred_element_type=preferred)


@pytest.mark.sampled
@pytest.mark.parametrize("preferred", ["float32", "float16", "bfloat16", "float64", None])
@pytest.mark.parametrize("rhs", ["float4_e2m1fn", "float8_e8m0fnu", "int4", "bfloat16"])
@pytest.mark.parametrize("lhs", ["float4_e2m1fn", "float8_e8m0fnu", "uint2"])
def test_the_narrowest_types_are_multiplied_compiled_as_run(lhs: str, rhs: str, preferred: str | None) -> None:
    """XLA refuses some of these, and adds others up in two bits: 1 + 1 + 4 is 8."""
    x, y = np.array([[1, 1, 2], [1, 1, 1]]).astype(lhs), np.array([[1, 2], [1, 1], [2, 1]]).astype(rhs)

    def product(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=preferred)

    try:
        run = product(x, y)
    except TypePromotionError:
        with pytest.raises(TypePromotionError):
            corejax.jit(product)(x, y)
        return
    compiled = corejax.jit(product)(x, y)
    assert compiled.dtype == run.dtype
    np.testing.assert_array_equal(np.asarray(compiled, np.float32), np.asarray(run, np.float32))
    if preferred in ("float32", "float64"):
        np.testing.assert_array_equal(np.asarray(run), x.astype(preferred) @ y.astype(preferred))
