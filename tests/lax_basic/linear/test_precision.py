"""Precision of products: every spelling, algorithms, mixed dtypes, the setting; against jax."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import lax
from tests.lax_basic.structural_checks import assert_same, data

HIGH = lax.Precision.HIGH
SPELLINGS = [
    (None, None),
    ("highest", (lax.Precision.HIGHEST,) * 2),
    ("float32", (lax.Precision.HIGHEST,) * 2),
    ("tensorfloat32", (HIGH, HIGH)),
    ("fastest", (lax.Precision.DEFAULT,) * 2),
    (HIGH, (HIGH, HIGH)),
    (("high", "default"), (HIGH, lax.Precision.DEFAULT)),
    ([HIGH, lax.Precision.HIGHEST], (HIGH, lax.Precision.HIGHEST)),
    ("F32_F32_F32", lax.DotAlgorithmPreset.F32_F32_F32),
    (lax.DotAlgorithmPreset.BF16_BF16_F32, lax.DotAlgorithmPreset.BF16_BF16_F32),
    (
        lax.DotAlgorithm(np.float16, "float16", np.float32),
        lax.DotAlgorithm(*map(np.dtype, ("float16", "float16", "float32"))),
    ),
]


def params(f: Any, *args: Any) -> Any:
    return corejax.make_jaxpr(f)(*args).jaxpr.eqns[0].params


@pytest.mark.parametrize(("given", "canonical"), SPELLINGS, ids=str)
def test_spellings(given: Any, canonical: Any) -> None:
    x, y = data(2, 3), data(3, 4)
    f = lambda x, y: lax.dot(x, y, precision=given)
    assert params(f, x, y).get("precision") == canonical
    assert_same(corejax.jit(f)(x, y), x @ y, 1e-2)
    assert_same(f(x, y), x @ y, 1e-2)
    text = str(corejax.make_jaxpr(f)(x, y))
    assert str(corejax.ir.parse_jaxpr(text)) == text
    ct = corejax.jit(corejax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1)))(x, y)
    assert_same(ct[0], np.ones((2, 4), np.float32) @ y.T, 1e-2)


@pytest.mark.parametrize("numbers", [((1,), (0,)), ((0,), (1,)), ((0,), (0,)), ((1,), (1,))], ids=str)
def test_precisions_stay_with_operands_in_gradients(numbers: Any) -> None:
    x, y = data(3, 3), data(3, 3, seed=1)
    f = lambda x, y: lax.dot_general(x, y, (numbers, ((), ())), (HIGH, "default")).sum()
    program = corejax.make_jaxpr(corejax.grad(f, argnums=(0, 1)))(x, y).jaxpr
    names = {v: HIGH if v is program.invars[0] else lax.Precision.DEFAULT for v in program.invars}
    products = [eqn for eqn in program.eqns if eqn.primitive is lax.dot_general_p]
    assert len(products) == 3
    for eqn in products[1:]:  # a cotangent takes the place of one operand
        [(i, kept)] = [(i, names[v]) for i, v in enumerate(eqn.invars) if v in names]
        other = lax.Precision.DEFAULT if kept is HIGH else HIGH
        assert eqn.params["precision"][i] is kept and eqn.params["precision"][1 - i] is other


def test_gradients_of_dense_layers_have_no_transposition() -> None:
    f = lambda x, w: (x @ w).sum()
    program = corejax.make_jaxpr(corejax.grad(f, argnums=(0, 1)))(data(2, 3), data(3, 4)).jaxpr
    assert "transpose" not in [eqn.primitive.name for eqn in program.eqns]


def test_enumerations_are_jaxs() -> None:
    jax = pytest.importorskip("jax")
    for name in ("Precision", "DotAlgorithmPreset"):
        ours, theirs = getattr(lax, name), getattr(jax.lax, name)
        assert list(ours.__members__) == list(theirs.__members__)
        for a, b in zip(ours, theirs, strict=True):
            assert (repr(a), str(a)) == (repr(b), str(b))
    for a, b in zip(lax.DotAlgorithmPreset, jax.lax.DotAlgorithmPreset, strict=True):
        assert a.accumulation_type == (None if b.accumulation_type is None else np.dtype(b.accumulation_type))
        theirs = b.supported_lhs_types
        assert a.supported_lhs_types == (None if theirs is None else tuple(map(np.dtype, theirs)))
    assert lax.Precision("highest") is lax.Precision(None).HIGHEST
    assert lax.DotAlgorithm._fields == jax.lax.DotAlgorithm._fields
    with pytest.raises(ValueError, match="is not a valid Precision"):
        lax.Precision("best")


def test_the_names_in_stablehlo() -> None:
    x = data(2, 2, dtype=np.float16)
    for precision in ("F16_F16_F32", lax.DotAlgorithm(np.float16, np.float16, np.float32)):
        text = corejax.jit(lambda x, precision=precision: lax.dot(x, x, precision=precision)).lower(x).as_text()
        assert "lhs_precision_type = f16, rhs_precision_type = f16, accumulation_type = f32" in text or (
            precision == "F16_F16_F32" and "dot_algorithm" not in text  # which XLA does not have on CPUs
        )
    text = corejax.jit(lambda x: lax.dot(x, x, precision=("highest", "high"))).lower(data(2, 2)).as_text()
    assert "[HIGHEST, HIGH]" in text


def test_the_setting_is_what_products_without_precision_have() -> None:
    x = data(2, 2)
    f = corejax.jit(lambda x: x @ x)
    assert "HIGHEST" not in f.lower(x).as_text()
    with corejax.default_matmul_precision("highest"):
        assert "HIGHEST" in f.lower(x).as_text(), "compiled programs depend on it"
        for g in (lambda x: lax.dot(x, x), lambda x: x @ x, lambda x: corejax.numpy.einsum("ij,jk", x, x)):
            assert params(g, x)["precision"] == (lax.Precision.HIGHEST,) * 2
        assert params(lambda x: lax.dot(x, x, precision="default"), x)["precision"][0] == lax.Precision.DEFAULT
    assert "precision" not in params(lambda x: lax.dot(x, x), x)
    assert corejax.config.default_matmul_precision is None
    with pytest.raises(ValueError, match="got 'best'"):
        corejax.default_matmul_precision("best")


def test_the_setting_accepts_names_of_precisions_only() -> None:
    with pytest.raises(ValueError, match=r"setting default_matmul_precision: .*got 'best'"):
        corejax.config.update("default_matmul_precision", "best")
    assert corejax.config.default_matmul_precision is None
    with corejax.config.override(default_matmul_precision="BF16_BF16_F32"):
        pass


MIXED = [
    (np.float32, np.int32),
    (np.int8, np.int32),
    (np.uint8, np.int8),
    (ml_dtypes.bfloat16, np.float16),
    (np.float32, np.complex64),
    (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    (ml_dtypes.float8_e5m2, np.float32),
    (bool, np.float32),
]


@pytest.mark.parametrize(("a", "b"), MIXED, ids=lambda t: t.__name__)
def test_mixed_dtypes(a: Any, b: Any) -> None:
    """The result has the dtype that it has in jax, and gradients those of their operands."""
    jax = pytest.importorskip("jax")
    x, y = np.abs(data(2, 3)).astype(a), np.abs(data(3, 2, seed=1)).astype(b)
    expected = jax.lax.dot(x, y)
    for f in (lax.dot, corejax.jit(lax.dot)):
        assert_same(f(x, y), expected, 0.2 if np.dtype(a).itemsize == np.dtype(b).itemsize == 1 else 1e-2)
    tangent = np.ones_like(x) if np.dtype(a).kind not in "biu" else None
    if tangent is not None:
        out, pull = corejax.vjp(lambda x: lax.dot(x, y), x)
        assert pull(corejax.numpy.ones_like(out))[0].dtype == x.dtype


def test_integers_make_floats_where_asked_and_never_narrower_integers() -> None:
    x = data(2, 2, dtype=np.int8)
    for f in (lax.dot, corejax.jit(lax.dot, static_argnames=("preferred_element_type",))):
        assert_same(f(x, x, preferred_element_type=np.float32), (x.astype("f4") @ x.astype("f4")))
    with pytest.raises(TypeError, match="preferred_element_type int8 is narrower than the products of lhs i32"):
        lax.dot(x.astype("i4"), x.astype("i4"), preferred_element_type=np.int8)


def test_dot_takes_dimension_numbers() -> None:
    x, y = data(2, 3, 4), data(2, 4, 5)
    numbers = (((2,), (1,)), ((0,), (0,)))
    assert_same(lax.dot(x, y, dimension_numbers=numbers), x @ y)
