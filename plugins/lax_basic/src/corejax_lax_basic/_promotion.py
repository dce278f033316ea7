"""NumPy's meaning of several operands: one dtype by the promotion lattice, one shape by broadcasting.

Python scalars stay Python scalars until the common dtype is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, Tracer, as_array, dtypes, get_aval
from corejax_lax_basic._base.constants import asarray
from corejax_lax_basic.conversion.convert import convert_element_type_p
from corejax_lax_basic.shape.broadcasting import broadcast_shapes, broadcast_to

PYTHON_SCALARS = frozenset({bool, int, float, complex})


def is_array(x: Any) -> bool:
    """Whether a value is an array or a tracer."""
    return type(x) is Array or isinstance(x, Tracer)


def operand(x: Any) -> Any:
    """What an operator takes as it is: an array, a tracer or a Python scalar; NotImplemented for anything else.

    Raises:
        TypeError: a NumPy array of a dtype that is not supported.
    """
    if type(x) in PYTHON_SCALARS or type(x) is Array or isinstance(x, Tracer):
        return x
    if isinstance(x, np.ndarray | np.generic) or hasattr(type(x), "__corejax_array__"):
        return asarray(x)
    if isinstance(x, int | float | complex):  # a subclass, an IntEnum say
        return next(kind(x) for kind in (bool, int, float, complex) if isinstance(x, kind))
    return NotImplemented


_makers: dict[tuple[np.dtype[Any], bool], Callable[[Any], Array]] = {}


def scalar_maker(dtype: np.dtype[Any], weak: bool = False) -> Callable[[Any], Array]:
    """A function from Python scalars to rank-0 arrays of one type.

    An integer that does not fit raises OverflowError; a float that does not becomes infinite.
    """
    found = _makers.get((dtype, weak))
    if found is not None:
        return found
    aval = ShapedArray((), dtype, weak)
    limit = float(dtypes.finfo(dtype).max) if dtypes.is_float(dtype) else 0.0

    def make(value: Any) -> Array:
        return Array(np.array(value, dtype), aval)

    def make_float(value: Any) -> Array:
        if type(value) is not complex and -limit <= value <= limit:
            return Array(np.array(value, dtype), aval)
        return make_silently(value)

    def make_silently(value: Any) -> Array:
        with np.errstate(all="ignore"):
            return Array(np.array(value, dtype), aval)

    kind = make_float if dtypes.is_float(dtype) else make_silently if dtypes.is_complex(dtype) else make
    return _makers.setdefault((dtype, weak), kind)


def make_scalar(value: Any, dtype: np.dtype[Any], weak: bool = False) -> Array:
    """A Python scalar as a rank-0 array.

    Raises:
        OverflowError: an integer that the dtype does not hold.
    """
    return scalar_maker(dtype, weak)(value)


def convert(x: Any, dtype: np.dtype[Any], weak: bool = False) -> Any:
    """`x` in a dtype; `weak` is wanted of what has to be converted, an array of the dtype stays as it is."""
    if type(x) in PYTHON_SCALARS:
        return scalar_maker(dtype, weak)(x)
    if get_aval(x).dtype == dtype:
        return as_array(x)
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak)


def promote_dtypes(*operands: Any, inexact: bool = False) -> list[Any]:
    """Operands in the dtype that the promotion lattice gives them; Python scalars become arrays.

    Args:
        operands: arrays, tracers and Python scalars.
        inexact: whether integers and booleans become floating.

    Raises:
        TypePromotionError: there is no implicit promotion.
    """
    first = getattr(operands[0], "aval", None)
    if first is not None and (not inexact or dtypes.is_inexact(first.dtype)):
        dtype = first.dtype
        if all(getattr(getattr(x, "aval", None), "dtype", None) is dtype for x in operands):
            return list(operands)  # nothing to decide
    dtype, weak = dtypes.result_type(*operands, return_weak_type_flag=True)
    if inexact:
        dtype = dtypes.inexact_dtype_of(dtype)
    return [convert(x, dtype, weak) for x in operands]


def broadcast_together(name: str, operands: list[Any]) -> list[Any]:
    """Arrays in one shape; those of rank 0 stay as they are, since elementwise primitives mix them with any shape.

    Args:
        name: the operation, for the message.
        operands: the arrays.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    shapes = [x.aval.shape for x in operands]
    if len({s for s in shapes if s}) <= 1:
        return operands
    try:
        shape = broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(x.aval.str_short() for x in operands)
        raise ValueError(f"{name}: operands {shown} have shapes that do not broadcast together") from None
    return [broadcast_to(x, shape) if x.aval.shape else x for x in operands]


def promote(name: str, *operands: Any, inexact: bool = False) -> list[Any]:
    """Operands in one dtype and one shape (or of rank 0), for the operation `name`.

    Raises:
        TypePromotionError: there is no implicit promotion.
        ValueError: the shapes do not broadcast together.
    """
    return broadcast_together(name, promote_dtypes(*operands, inexact=inexact))
