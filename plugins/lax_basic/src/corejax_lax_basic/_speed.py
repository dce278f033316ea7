"""Measurements: the operations and sizes for which one way to compute is faster than another.

Rows and rules state mathematics and look up here what is fast. An operation is large from `LARGE` elements on; a
program of one equation may then be compiled for it (the flag `large` of impl rules). The tables list the dtypes for
which NumPy was slower than that program for a million elements, including the time to copy them. Operations that only
read and write memory are not listed, because NumPy is as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corejax.extend import dtypes

HALVES = ("bfloat16", "float16")  # NumPy converts each element of these
SINGLES = (*HALVES, "float32")
REALS = (*SINGLES, "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")

# -- sizes, in elements ------------------------------------------------------------------------------------------------

LARGE = 1 << 18  # from here on a compiled program is faster, including its dispatch
MANY_HALVES = 1 << 15  # from here on for float16 if NumPy rounds each step, for one operation that is rounded once
MANY_COMPLEX = 1 << 12  # from here on for complex functions that take NumPy 100 ns an element
MANY_SPECIAL = 1 << 13  # from here on for special functions that take SciPy several times as long

# Elementwise operations
SMALL_SELECT = 4096  # up to here it is faster to write over one case: `np.where` takes three times as long
SMALL_CONVERSION = 4096  # up to here NumPy's comparisons take less time than its reductions
MANY_POWERS = 256  # from here on float32 to powers above `HIGH` is computed in float64:
HIGH = 16  # NumPy takes fifty times as long for results that float32 does not hold

# Shape
SMALL_COPY = 4096  # up to here a copy costs less than a view that is not contiguous

# Reductions
ROW_SUMS = 1 << 14  # from here on sums by blocks of a row are faster
ROW_BLOCK = 1024  # elements of a row that vector instructions sum
SHORT_ROW = 256  # up to here rows are summed faster in any dtype, longer ones in floating-point dtypes only
LONG_INDEX_AXIS = 32  # from here on an index is found faster on the CPU in two steps: the extremum, then its position

# Products, windows, order
FEW_PRODUCTS = 1 << 16  # below this NumPy multiplies integers, from here on BLAS multiplies them as floats
DOT_SECOND = 1 << 12  # elements of the second operand from which on XLA is faster, unless it has only a few columns
DOT_ROWS, DOT_PRODUCTS = 64, 1 << 26  # rows and columns, and products, from which on a product is large as well
CONV_PRODUCTS = 1 << 18  # up to so many products NumPy is faster than a compiled program
CONV_CHUNK = 1 << 21  # elements of windows that are copied at a time
FEW_IN_WINDOW = 12  # up to here the elements of a window are combined one by one
COMPILED_WINDOW = 32  # up to here a compiled program is faster: its time is proportional to the size of a window
SMALL_SORT = 512  # below this NumPy's own stable sort is faster
LONG_TOP_K = 4096  # from this size of an axis on, a partition finds the k largest elements before they are sorted

# -- vectorised loops of NumPy -----------------------------------------------------------------------------------------

_CODES = {"float16": "ee", "float32": "ff", "float64": "dd"}  # NumPy's codes of the types of a loop


def _optimized_loops() -> dict[str, Any]:
    try:
        return np.lib.introspect.opt_func_info()
    except AttributeError:  # before NumPy 2.2
        return {}


_loops = _optimized_loops()


def _unless_vectorized(ufunc: np.ufunc, *names: str) -> tuple[str, ...]:
    """Return the dtypes for which NumPy has no vectorised loop on this processor.

    With such a loop (AVX-512, say) NumPy is several times faster than without, and faster than the compiled program.
    """
    loops = _loops.get(ufunc.__name__, {})
    current = {name: loops.get(_CODES[name], {}).get("current", "baseline") for name in names}
    return tuple(name for name in names if current[name].startswith("baseline"))


# -- operations --------------------------------------------------------------------------------------------------------

# Special functions that take SciPy longer than a compiled program.
_SLOW_SINGLES = (
    *("bessel_i0e", "digamma", "igamma", "igamma_grad_a", "igammac", "lgamma", "polygamma", "random_gamma_grad"),
    *("regularized_incomplete_beta", "zeta"),
)
_SLOW_REALS = ("bessel_i1e", "erf", "erf_inv", "erfc")

# For elementwise and cumulative primitives that are not listed, NumPy is slower only with `HALVES`.
_ELEMENTWISE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("abs", "cbrt", "is_finite", "neg"), ()),
    "acosh": (*SINGLES, *COMPLEX),
    **dict.fromkeys(("acos", "asin"), COMPLEX),
    "asinh": (*HALVES, *_unless_vectorized(np.arcsinh, "float32", "float64"), *COMPLEX),
    "atan": (*HALVES, *_unless_vectorized(np.arctan, "float32"), *COMPLEX),
    "atanh": (*SINGLES, *COMPLEX),
    **dict.fromkeys(_SLOW_SINGLES, SINGLES),
    **dict.fromkeys(_SLOW_REALS, REALS),
    **dict.fromkeys(("cos", "pow", "rsqrt"), ("float16", *COMPLEX)),
    "cosh": (*SINGLES, *_unless_vectorized(np.cosh, "float64"), *COMPLEX),
    **dict.fromkeys(("cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"), ("float16",)),
    "div": (*HALVES, *COMPLEX, *INTEGERS),
    **dict.fromkeys(("exp", "logistic", "sign", "sqrt", "tanh"), (*REALS, *COMPLEX)),
    "exp2": (*HALVES, *_unless_vectorized(np.exp2, "float32"), *COMPLEX),
    "expm1": (*HALVES, *_unless_vectorized(np.expm1, "float32", "float64"), *COMPLEX),
    "log": (*SINGLES, *_unless_vectorized(np.log, "float64"), *COMPLEX),
    "log1p": (*HALVES, *_unless_vectorized(np.log1p, "float32"), *COMPLEX),
    **dict.fromkeys(("max", "min", "tan"), (*HALVES, *COMPLEX)),
    "nextafter": REALS,
    "rem": ("float16", *INTEGERS),
    "select_n": ("bool", *REALS, *COMPLEX, *INTEGERS),
    "sin": (*HALVES, "float64", *COMPLEX),
    "sinh": (*HALVES, *_unless_vectorized(np.sinh, "float32", "float64")),
}

# Sizes from which on NumPy is slower, by dtype, if they are not `LARGE`.
_SPECIAL = dict.fromkeys(REALS, MANY_SPECIAL)
_SLOW_COMPLEX = dict.fromkeys(COMPLEX, MANY_COMPLEX)
_SLOW_HALVES = {"float16": MANY_HALVES}
_SIZES: dict[str, Mapping[str, int]] = {
    **dict.fromkeys(("acos", "acosh", "asin", "asinh"), _SLOW_COMPLEX),
    **dict.fromkeys((*_SLOW_SINGLES, *_SLOW_REALS), _SPECIAL),
    # Rounded once, so that NumPy and the program compute the same float16; XLA computes others step by step.
    **dict.fromkeys(
        (
            *("add", "ceil", "clamp", "div", "eq", "floor", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "rem"),
            *("round", "sign", "sqrt", "square", "sub"),
        ),
        _SLOW_HALVES,
    ),
    # A vectorised loop for float32 is slower only from twice as many elements on.
    "log": {} if "float32" in _unless_vectorized(np.log, "float32") else {"float32": 2 * LARGE},
}

# Primitives with possibly small results, and dtypes of the first operand.
_BY_OPERAND: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("argmax", "argmin"), ("float16",)),
    "reduce_prod": SINGLES,
}

# Elementwise primitives that take less time than reading their result from memory.
CHEAP = {
    *("add", "and", "ceil", "complex", "div", "eq", "floor", "ge", "gt", "imag", "is_finite", "le", "lt", "max", "min"),
    *("mul", "ne", "neg", "not", "or", "real", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign"),
    *("square", "sub", "xor"),
}


def elementwise(name: str) -> dict[str, int]:
    """Return the flag `large` of an elementwise primitive: the least number of elements that is large, by dtype."""
    sizes = _SIZES.get(name, {})
    return {dtype: sizes.get(dtype, LARGE) for dtype in _ELEMENTWISE.get(name, HALVES)}


def by_operand(name: str) -> Callable[..., bool]:
    """Return the flag `large` of a primitive with possibly small results: a predicate of the first operand's dtype."""
    slow = frozenset(map(dtypes.dtype, _BY_OPERAND.get(name, HALVES)))
    return lambda avals, **params: avals[0].dtype in slow
