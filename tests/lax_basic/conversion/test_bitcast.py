"""bitcast_convert_type and reduce_precision, against JAX: every pair of dtypes, batching, derivatives, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import dtypes
from tests.lax_basic.support import jax
from tests.recorded import Recorded

__all__ = ["jax"]

RECORDED = Recorded("reduced_precision")

NAMES = (
    "int2", "uint2", "int4", "uint4", "float4_e2m1fn", "int8", "uint8", "float8_e4m3fn", "float8_e5m2", "int16",
    "bfloat16", "float16", "int32", "float32", "int64", "float64",
)  # fmt: skip


def operand(source: Any, target: Any) -> np.ndarray:
    """All bits set at random, of a shape that fits."""
    ratio = max(1, dtypes.itemsize_bits(target) // dtypes.itemsize_bits(source))
    raw = np.random.default_rng(0).integers(0, 256, (3, ratio, max(1, dtypes.itemsize_bits(source) // 8)), np.uint8)
    if dtypes.itemsize_bits(source) < 8:
        raw &= np.uint8(2 ** dtypes.itemsize_bits(source) - 1)
    found = np.ascontiguousarray(raw).view(source)[..., 0]
    return found if ratio > 1 else found[:, 0]


def raw(x: Any) -> np.ndarray:
    x = np.ascontiguousarray(x)
    octets = x.reshape(-1).view(np.uint8)
    return octets & np.uint8(2 ** dtypes.itemsize_bits(x.dtype) - 1) if dtypes.itemsize_bits(x.dtype) < 8 else octets


def without_nans(x: np.ndarray) -> np.ndarray:
    """The bits of NaN are not kept by every conversion on the way."""
    return np.where(np.isnan(x.astype(np.float64)), np.zeros((), x.dtype), x) if dtypes.is_float(x.dtype) else x


@pytest.mark.parametrize("target", NAMES)
def test_every_pair_as_jax(target: str, jax: Any) -> None:
    target = dtypes.dtype(target)
    given = [without_nans(operand(dtypes.dtype(source), target)) for source in NAMES]
    run = [lax.bitcast_convert_type(x, target) for x in given]
    expected = jax.jit(lambda xs: [jax.lax.bitcast_convert_type(x, target) for x in xs])(given)
    for x, a, b in zip(given, run, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), x.dtype
        np.testing.assert_array_equal(raw(a), raw(np.asarray(b)), err_msg=f"{x.dtype} to {target}")


def test_compiled() -> None:
    for source, target in (("float32", "int16"), ("int4", "int8"), ("int8", "uint4"), ("bfloat16", "int32")):
        x = operand(dtypes.dtype(source), dtypes.dtype(target))
        run = lax.bitcast_convert_type(x, target)
        compiled = corejax.jit(lambda x, target=target: lax.bitcast_convert_type(x, target))(x)
        assert run.aval is compiled.aval
        np.testing.assert_array_equal(raw(run), raw(compiled))


def test_empty_arrays_scalars_and_weak_types() -> None:
    assert lax.bitcast_convert_type(jnp.zeros((0, 2), "int16"), "int32").shape == (0,)
    assert lax.bitcast_convert_type(jnp.zeros((0,), "int32"), "int8").shape == (0, 4)
    assert lax.bitcast_convert_type(jnp.asarray(1.0), "int32") == 0x3F800000
    assert not lax.bitcast_convert_type(jnp.asarray(1.0), "float32").weak_type
    assert lax.bitcast_convert_type(jnp.ones(2, bool), bool).dtype == bool


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap_with_the_batch_last(axis: int) -> None:
    """The batching axis is not the one that makes up wider elements."""
    x = np.arange(24, dtype=np.int16).reshape(2, 3, 4)[..., :2] if axis < 2 else np.arange(12, dtype=np.int16)
    x = x if axis < 2 else np.moveaxis(x.reshape(3, 2, 2), 0, -1)
    got = corejax.vmap(lambda v: lax.bitcast_convert_type(v, "int32"), in_axes=axis)(x)
    rows = [lax.bitcast_convert_type(np.take(x, i, axis), "int32") for i in range(x.shape[axis])]
    np.testing.assert_array_equal(got, np.stack(rows))


def test_bitcast_errors() -> None:
    with pytest.raises(
        ValueError, match=r"float32 has 32 bits and int8 8: the last axis has to be of size 4, .*\(3,\)"
    ):
        lax.bitcast_convert_type(jnp.zeros(3, "int8"), "float32")
    with pytest.raises(ValueError, match=r"of size 2, got an operand of shape \(\)"):
        lax.bitcast_convert_type(np.int16(3), "float32")
    with pytest.raises(TypeError, match="integers and floating-point numbers, got bool and int8"):
        lax.bitcast_convert_type(jnp.ones(3, bool), "int8")
    with pytest.raises(TypeError, match=r"complex64 and float32; .*lax\.real"):
        lax.bitcast_convert_type(jnp.ones(3, "complex64"), "float32")


FORMATS = [(e, m) for e in (1, 2, 3, 5, 8, 11) for m in (0, 1, 2, 7, 10, 23)]


@pytest.mark.numbers
@pytest.mark.parametrize("name", ["float8_e5m2", "bfloat16", "float32"])
@np.errstate(all="ignore")
def test_reduced_precision_as_jax(name: str, request: pytest.FixtureRequest) -> None:
    dtype = dtypes.dtype(name)
    words = np.dtype(f"u{dtype.itemsize}")
    bits = np.random.default_rng(0).integers(0, np.iinfo(words).max, 2000, words, endpoint=True)[:400]
    x = np.concatenate([bits.view(dtype), np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, 1.5, -2.75], dtype)])
    if name in ("bfloat16", "float32", "float64"):  # compiled, subnormal numbers count as zero
        x = x[~(np.abs(x.astype(np.float64)) < float(dtypes.finfo(dtype).tiny))]

    def ask() -> Any:
        request.getfixturevalue("optimised_oracle")
        jax = request.getfixturevalue("jax")
        outs = jax.jit(lambda x: [jax.lax.reduce_precision(x, e, m) for e, m in FORMATS])(x)
        return [np.stack([np.asarray(out).view(words) for out in outs])]

    (expected,) = RECORDED.of(name, ask)
    for (e, m), out in zip(FORMATS, expected.view(dtype), strict=True):
        got = np.asarray(lax.reduce_precision(x, e, m)).astype(np.float64)
        np.testing.assert_array_equal(got, out.astype(np.float64), err_msg=f"{e}, {m}")


def test_tangents_are_rounded_too() -> None:
    def f(x: Any) -> Any:
        return lax.reduce_precision(x, exponent_bits=5, mantissa_bits=2)

    assert corejax.jvp(f, (1.1,), (1.1,)) == (1.0, 1.0)
    assert corejax.jit(corejax.grad(lambda x: 1.1 * f(x)))(3.0) == 1.0
    np.testing.assert_array_equal(corejax.vmap(f)(jnp.asarray([1.1, 5.1])), [1.0, 5.0])


def test_reduce_precision_errors() -> None:
    with pytest.raises(TypeError, match="reduce_precision does not accept dtype int32"):
        lax.reduce_precision(jnp.arange(3), 5, 3)
    with pytest.raises(TypeError, match=r"`mantissa_bits` has to be an integer, got 2\.5"):
        lax.reduce_precision(1.0, 5, 2.5)
    with pytest.raises(ValueError, match="`exponent_bits` has to be at least 1, got 0"):
        lax.reduce_precision(1.0, 0, 3)
    with pytest.raises(ValueError, match="`mantissa_bits` has to be at least 0, got -1"):
        lax.reduce_precision(1.0, 5, -1)
