"""Operations on many floats of 16 and fewer bits give what operations on few give."""

from __future__ import annotations

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax import lax
from corejax.extend import dtypes
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS

pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's own of signalling NaNs
FLOATS = sorted(NARROW_FLOATS, key=str)
ROUNDED = ["sqrt", "floor", "ceil", "is_finite"]
NEARLY = ["tanh", "exp", "log", "log1p", "expm1", "sin", "cbrt", "atan"]
OF_TWO = ["add", "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "lt", "le", "gt", "ge"]


def _all_numbers(dtype: np.dtype) -> np.ndarray:
    """All bits that there are, several times: many elements."""
    bits = 1 << dtypes.finfo(dtype).bits
    numbers = np.arange(bits, dtype=f"u{dtype.itemsize}").view(dtype)
    return np.tile(numbers, max(1, 8192 // bits))


def _few_by_few(function, *operands):
    parts = [function(*(jnp.asarray(x[i : i + 512]) for x in operands)) for i in range(0, len(operands[0]), 512)]
    return np.concatenate([np.asarray(part) for part in parts])


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    """The same bits, up to those of NaN."""
    assert x.dtype == y.dtype
    nan = np.isnan(x) if dtypes.is_inexact(x.dtype) else np.zeros(x.shape, bool)
    return x[~nan].tobytes() == y[~nan].tobytes() and bool(np.isnan(y[nan].astype(np.complex64)).all())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_many_are_rounded_as_few_are(dtype):
    x = _all_numbers(dtype)
    y = np.random.default_rng(0).permutation(x)
    for name in ROUNDED:
        function = getattr(lax, name)
        assert _same(np.asarray(function(jnp.asarray(x))), _few_by_few(function, x)), name
    for name in OF_TWO:
        function = getattr(lax, name)
        assert _same(np.asarray(function(jnp.asarray(x), jnp.asarray(y))), _few_by_few(function, x, y)), name
    clamped = lambda x, y: lax.clamp(y, x, y)
    assert _same(np.asarray(clamped(jnp.asarray(x), jnp.asarray(y))), _few_by_few(clamped, x, y))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
def test_functions_of_many_are_those_of_few_up_to_the_last_bit(dtype):
    x = _all_numbers(dtypes.dtype(dtype))
    for name in NEARLY:
        function = getattr(lax, name)
        many, few = np.asarray(function(jnp.asarray(x))), _few_by_few(function, x)
        np.testing.assert_array_equal(np.isnan(many), np.isnan(few), err_msg=name)
        apart = np.abs(many.view(f"i{x.itemsize}").astype(int) - few.view(f"i{x.itemsize}").astype(int))
        assert apart[~np.isnan(many)].max() <= 1, name


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("new", ["bool", "int8", "uint32", "float32", "complex64", "float16", "bfloat16"])
def test_many_are_converted_as_few_are(dtype, new):
    x = _all_numbers(dtype)
    convert = lambda x: lax.convert_element_type(x, new)
    assert _same(np.asarray(convert(jnp.asarray(x))), _few_by_few(convert, x))


@pytest.mark.parametrize("shape, to", [((2048,), (4, 2048)), ((2048, 1), (2048, 4)), ((1, 2048, 1), (3, 2048, 2))])
def test_many_numbers_that_are_repeated(shape, to):
    x = np.linspace(-2, 2, 2048).astype(dtypes.bfloat16).reshape(shape)
    np.testing.assert_array_equal(jnp.sin(jnp.broadcast_to(x, to)), np.broadcast_to(jnp.sin(x), to))
