"""Check the results of impl rules against the types that abstract evaluation inferred; errors name the rule.

Python numbers and NumPy scalars are converted to arrays, and bytes to integers of fewer than eight bits. All other
results must have the inferred type already.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from corejax import dtypes
from corejax.arrays.array import Array
from corejax.core.avals import ShapedArray, get_aval, ndarray_aval
from corejax.core.primitive import Primitive
from corejax.core.trace import Tracer, escaped, state
from corejax.messages.marks import mark
from corejax.messages.source_info import needed
from corejax.rules import impl_rules
from corejax.rules.run_rule import mismatch, shown

_BYTES = frozenset({np.dtype(np.int8), np.dtype(np.uint8)})
_PYTHON_NUMBERS = {bool: "b", int: "iuVfc", float: "Vfc", complex: "c"}  # type -> kinds of dtypes that can hold it


def _from_python(x: object, aval: ShapedArray) -> np.ndarray:
    """Convert a result that is not a NumPy array; Python numbers get the inferred dtype if it can hold them."""
    if type(x) in _PYTHON_NUMBERS and aval.dtype.kind in _PYTHON_NUMBERS[type(x)]:
        with contextlib.suppress(OverflowError, ValueError):
            return np.asarray(x, aval.dtype)
    return np.array(x)


def as_promised(primitive: Primitive, given: object, aval: ShapedArray) -> np.ndarray:
    """Return a result of an impl rule as a NumPy array of the type `aval`.

    Raises:
        TypeError: it is of another type; the message names the primitive and the user's line.
    """
    out: Any = given
    if isinstance(out, np.generic):  # ufuncs return scalars for arrays of rank 0
        out = np.asarray(out)
    elif type(out) is not np.ndarray:
        if isinstance(given, Tracer):
            raise escaped(given, f"the impl rule of primitive {primitive.name!r}")
        out = given._fetch() if type(given) is Array else _from_python(given, aval)
    if out.shape == aval.shape:
        if out.dtype == aval.dtype:
            return out if out.dtype is aval.dtype else np.array(out, aval.dtype)
        if out.dtype in _BYTES and aval.dtype in dtypes.SMALL_INTS:
            return np.array(out, aval.dtype)  # NumPy computes with bytes instead; their lowest bits are right
    got = f"{out.dtype.name}[{','.join(map(str, out.shape))}]"
    if out.dtype == object or out.dtype.kind in "US" or type(given) in _PYTHON_NUMBERS:
        got = "None" if given is None else f"{given!r} of type {type(given).__name__}"
    raise _type_mismatch(primitive, got, aval.str_short(short_dtypes=False))


def check_count(primitive: Primitive, outs: object, count: int) -> None:
    """Raise TypeError unless the impl rule of a primitive with several results returned `count` of them."""
    if not isinstance(outs, tuple | list) or len(outs) != count:
        got = f"{len(outs)} results" if isinstance(outs, tuple | list) else f"one value of type {type(outs).__name__}"
        raise _type_mismatch(primitive, got, f"a list of {count}")


def _type_mismatch(primitive: Primitive, got: str, wanted: str) -> TypeError:
    line = needed(". It was needed at", state.source)
    error = TypeError(
        f"primitive {primitive.name!r}: its impl rule returned {got}, but its abstract-eval rule promises {wanted}; "
        f"one of the two (from {primitive.provenance.owner}) is wrong{line}. "
        f"To check the rules: corejax verify {primitive.name}"
    )
    mark(error, primitive, "impl")
    return error


def types_of(primitive: Primitive, out: Any) -> tuple[ShapedArray, ...]:
    """Return the types of an impl rule's results, for primitives without an abstract-eval rule.

    Raises:
        TypeError: the result is not an array, or, for a primitive with several results, not a sequence of arrays.
    """
    if isinstance(out, list | tuple) is not primitive.multiple_results:
        wanted = "a list of arrays" if primitive.multiple_results else "an array"
        raise mismatch(impl_rules, primitive, f"{shown(out)} instead of {wanted}")
    outs = out if primitive.multiple_results else [out]
    try:  # `get_aval` would narrow the dtypes of NumPy arrays under `config.x64_compat`, as for arguments
        avals = [ndarray_aval(o) if isinstance(o, np.ndarray | np.generic) else get_aval(o) for o in outs]
    except TypeError:
        raise mismatch(impl_rules, primitive, f"{shown(out)} instead of arrays") from None
    return tuple(aval.strip_weak_type() for aval in avals)
