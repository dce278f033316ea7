"""The functions of `corejax.numpy` that are ufuncs, with fast implementations of their methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes, remembered
from corejax_lax_basic import lax
from corejax_numpy import elementwise, reductions, smooth
from corejax_numpy._one_by_one import at_one_by_one
from corejax_numpy.arguments import array_argument, canonical_axes, canonical_axis, canonical_dtype, like, to_bool
from corejax_numpy.elementwise import where as choose
from corejax_numpy.manipulation import expand_dims
from corejax_numpy.ufuncs import ufunc

Function = Callable[..., Any]

# -- reductions, accumulations, updates -----------------------------------------------------------------------------


def _bitwise(fold: Function, neutral: int) -> Function:
    """Return a reduction that combines the bits of integers and booleans."""

    def reduce(a: Any, *, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        a = a if dtype is None else lax.convert_element_type(a, canonical_dtype(dtype))
        if where is not None:
            start = like(a, _all_bits(a.dtype) if neutral else 0)
            a = choose(array_argument("where", where), a, start)
        axes = canonical_axes(axis, a.ndim)
        out = fold(a, axes)
        if initial is not None:
            combine = {lax.reduce_and: lax.bitwise_and, lax.reduce_or: lax.bitwise_or}.get(fold, lax.bitwise_xor)
            out = combine(out, lax.convert_element_type(array_argument("initial", initial), a.dtype))
        return expand_dims(out, axes) if keepdims else out

    return reduce


def _all_bits(dtype: Any) -> Any:
    if dtypes.is_bool(dtype):
        return True
    return int(dtypes.iinfo(dtype).max) if dtypes.is_unsigned(dtype) else -1


def _logical(fold: Function, neutral: int) -> Function:
    """Return a reduction of truth values: an element is true if it differs from zero."""
    bitwise = _bitwise(fold, neutral)

    def reduce(a: Any, *, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        start = None if initial is None else to_bool(array_argument("initial", initial))
        out = bitwise(to_bool(a), axis=axis, dtype=None, keepdims=keepdims, initial=start, where=where)
        return out if dtype is None else lax.convert_element_type(out, canonical_dtype(dtype))

    return reduce


def _extreme(fold: Function) -> Function:
    def reduce(a: Any, *, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        a = a if dtype is None else lax.convert_element_type(a, canonical_dtype(dtype))
        return fold(a, axis=axis, keepdims=keepdims, initial=initial, where=where)

    return reduce


# Accumulations name their functions, so that the functions' modules are imported when something is first accumulated.


def _running(fold: str) -> Function:
    def accumulate(a: Any, *, axis: int, dtype: Any) -> Any:
        a = a if dtype is None else lax.convert_element_type(a, canonical_dtype(dtype))
        return getattr(lax, fold)(a, canonical_axis(axis, a.ndim))

    return accumulate


def _cumulative(name: str) -> Function:
    def accumulate(a: Any, *, axis: int, dtype: Any) -> Any:
        from corejax_numpy import cumulative

        return getattr(cumulative, name)(a, axis=axis, dtype=dtype)

    return accumulate


def _update(method: str) -> Function:
    """Return an `at` that uses `x.at[...]`, which updates all indices in one scatter.

    Booleans take the slow path: adding booleans is `or`, which no scatter computes.
    """

    def at(a: Any, indices: Any, b: Any) -> Any:
        if dtypes.is_bool(a.dtype):
            return at_one_by_one(globals()[method], a, indices, b)
        return getattr(a.at[indices], method)(b)

    return at


# -- the table -----------------------------------------------------------------------------------------------------


def _define(function: Function, nin: int = 2, identity: Any = None, **shortcuts: Any) -> ufunc:
    defined = ufunc(function, nin, 1, identity=identity, call=function, **shortcuts)
    vars(defined)["__module__"] = __name__
    return defined


# fmt: off
_sums: dict[str, Any]     = {"reduce": reductions.sum, "accumulate": _cumulative("cumsum")}
_products: dict[str, Any] = {"reduce": reductions.prod, "accumulate": _cumulative("cumprod")}
add         = _define(elementwise.add,      identity=0, at=_update("add"), **_sums)
subtract    = _define(elementwise.subtract, at=_update("subtract"))
multiply    = _define(elementwise.multiply, identity=1, at=_update("multiply"), **_products)
negative    = _define(elementwise.negative, nin=1)
maximum     = _define(elementwise.maximum, reduce=_extreme(reductions.max), accumulate=_running("cummax"))
minimum     = _define(elementwise.minimum, reduce=_extreme(reductions.min), accumulate=_running("cummin"))
bitwise_and = _define(elementwise.bitwise_and, identity=-1, reduce=_bitwise(lax.reduce_and, 1))
bitwise_or  = _define(elementwise.bitwise_or,  identity=0,  reduce=_bitwise(lax.reduce_or, 0))
bitwise_xor = _define(elementwise.bitwise_xor, identity=0,  reduce=_bitwise(lax.reduce_xor, 0))
logical_and = _define(elementwise.logical_and, identity=True,  reduce=_logical(lax.reduce_and, 1))
logical_or  = _define(elementwise.logical_or,  identity=False, reduce=_logical(lax.reduce_or, 0))
logical_xor = _define(elementwise.logical_xor, identity=False, reduce=_logical(lax.reduce_xor, 0))
logaddexp   = _define(remembered(smooth.logaddexp, numbers=True),  identity=-math.inf)
logaddexp2  = _define(remembered(smooth.logaddexp2, numbers=True), identity=-math.inf)
# fmt: on
