"""The text of values in jaxprs: literals, constants and parameters."""

from __future__ import annotations

import base64
import dataclasses
import enum
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax import dtypes
from corejax.arrays.array import host_value
from corejax.base.provenance import Provenance
from corejax.base.seams import Slot
from corejax.base.tables import Entry, Table
from corejax.core.avals import Refinement, ShapedArray, numbers_of
from corejax.core.trace import Tracer
from corejax.core.value_types import Packed
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal

__corejax_registers_for_caller__ = True

_EXACT_LENGTH = 8  # the length up to which the exact text of a float of few bits is used: 448.0, not 450.0
_LIST_LIMIT = 256  # the number of elements up to which a constant is printed as a nested list

Scalar = Any  # a NumPy scalar; NumPy's annotations do not distinguish scalars from arrays


def _duplicate_message(name: str, earlier: Entry, later: Entry) -> str:
    known, cls = earlier.value, later.value
    return (
        f"parameter type {name!r} is {known.__module__}.{known.__qualname__}, from {earlier.provenance}; "
        f"{cls.__module__}.{cls.__qualname__}, from {later.provenance}, needs another name"
    )


param_types: Table[str, Callable[..., Any]] = Table(
    "parameter type", {"slice": slice, "frozenset": frozenset}, refusal=_duplicate_message
)
_T = TypeVar("_T", bound=Callable[..., Any])

refinement_reader: Slot[Callable[[str, Sequence[Any]], Refinement]] = Slot("the reader of refinements of types")
"""`(text, earlier) -> refinement`: the inverse of `Refinement.text`. Refinements that were read earlier may supply
parts that the text omits. Raises ValueError if it is not the text of a refinement."""


def register_param_type(cls: _T) -> _T:
    """Register a class of parameter values, or a constructor, for the parser of programs; may be used as a decorator.

    Enums (printed `Mode.CLIP`), named tuples and dataclasses (printed `Numbers(lhs=(0, 1), rhs=(1, 0))`) are printed
    without registration, but only registered classes can be parsed. Other classes define a method `__param_text__`. It
    returns a constructor (the class, or a function, registered as well) and its positional arguments.

    Raises:
        DuplicateRegistrationError: another class of that name is registered.
    """
    registered = param_types.get(cls.__name__)
    identity = (cls.__module__, cls.__qualname__)
    is_same = registered is not None and (registered.__module__, registered.__qualname__) == identity
    origin = param_types.provenance(cls.__name__) if is_same else Provenance.of_caller()
    param_types.register(cls.__name__, cls, provenance=origin)
    return cls


def type_text(aval: ShapedArray, long: bool = False) -> str:
    """Return a type as text: `f32[3,4]`, or `float32[3,4]` if `long`; a prefix `~` marks a weak type."""
    return ("~" if aval.weak_type else "") + aval.str_short(short_dtypes=not long)


# -- scalars ----------------------------------------------------------------------


def scalar_text(value: Scalar) -> str:
    """Return the text of a NumPy scalar, from which the parser, given the dtype, restores the same bits."""
    if dtypes.is_bool(value.dtype):
        return str(bool(value))
    if dtypes.is_integer(value.dtype):
        return str(int(value))
    return _complex_text(value.real, value.imag) if dtypes.is_complex(value.dtype) else _real_text(value)


def _complex_text(real: Scalar, imag: Scalar) -> str:
    first, second = (_real_text(part).removesuffix(".0") for part in (real, imag))
    return f"({first}{'' if second.startswith('-') else '+'}{second}j)"


def _real_text(value: Scalar) -> str:
    number = float(value)
    if number != number:
        return _nan_text(value)
    if value.dtype.kind == "f":
        text = str(value)  # the shortest text that distinguishes the number from its neighbours
        return text if float(text) == number or type(value)(float(text)) == value else repr(number)
    if len(repr(number)) <= _EXACT_LENGTH:
        return repr(number)
    shorter = (float(f"{number:.{digits}g}") for digits in range(1, 10))  # ml_dtypes' str has six digits
    return repr(next((short for short in shorter if type(value)(short) == value), number))


def _nan_text(value: Scalar) -> str:
    plain, bits = np.full((), np.nan, value.dtype), value.tobytes()
    if bits == plain.tobytes():
        return "nan"
    return "-nan" if bits == np.negative(plain).tobytes() else f"nan(0x{int.from_bytes(bits, sys.byteorder):x})"


def literal_scalar(literal: Literal) -> Scalar:
    """Return the value of a literal as a NumPy scalar of the dtype of its aval."""
    value, dtype = literal.val, literal.aval.dtype
    if isinstance(value, np.generic) and value.dtype == dtype:
        return value
    return np.asarray(host_value(value), dtype=dtype)[()]


# -- constants --------------------------------------------------------------------


def const_text(const: object) -> str:
    """Return a constant's value as a nested list or, if it is large, as `full(0.0)` or `base64('...')` of its bytes.

    A value of a value type is a list of its parts in parentheses.
    """
    if isinstance(const, Tracer):
        return opaque_text(const)
    if type(const) is Packed:
        return f"({', '.join(map(const_text, const.parts))})"
    array = np.asarray(host_value(const))
    if array.dtype.names is not None:
        array = numbers_of(array)
    if array.size <= _LIST_LIMIT:
        return _nested_list(array)
    raw = array.tobytes()
    if raw == raw[: array.itemsize] * array.size:
        return f"full({scalar_text(array.flat[0])})"
    return f"base64({base64.b64encode(raw).decode()!r})"


def _nested_list(array: np.ndarray) -> str:
    if array.ndim == 0:
        return scalar_text(array[()])
    return f"[{', '.join(_nested_list(np.asarray(item)) for item in array)}]"


# -- parameters -------------------------------------------------------------------


def opaque_text(value: object) -> str:
    """Return the placeholder for an object without a text; it has no address, so that printing is reproducible."""
    name = getattr(value, "__name__", None)
    return f"<opaque {name if isinstance(name, str) else type(value).__name__}>"


def has_programs(value: Any) -> bool:
    """Whether a parameter's value is a program, or a tuple or list that contains one."""
    if type(value) in (tuple, list):
        return any(map(has_programs, value))
    return isinstance(value, ClosedJaxpr | Jaxpr)


def value_text(value: Any, long: bool = False, depth: int = 0) -> str:
    """Return the text of a parameter's value without programs, on one line.

    Tuples nested two levels deep print in brackets, as in `(([1], [0]), ([], []))`; both forms parse to a tuple.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return repr(value)
    if kind is float:
        return _real_text(np.float64(value))
    if kind is complex:
        return _complex_text(np.float64(value.real), np.float64(value.imag))
    if isinstance(value, enum.Enum):
        return (
            f"{kind.__name__}.{value.name}" if value.name in kind.__members__ else f"{kind.__name__}({value.value!r})"
        )
    if isinstance(value, ShapedArray):
        return type_text(value, long)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, np.generic):
        return _typed_scalar_text(value, long)
    return _composite_text(value, long, depth)


def _typed_scalar_text(value: Scalar, long: bool) -> str:
    try:
        short = dtypes.short_name(value.dtype)
    except TypeError:  # the scalar is a string or a date
        return opaque_text(value)
    return f"{scalar_text(value)}:{value.dtype.name if long else short}[]"


def _composite_text(value: Any, long: bool, depth: int) -> str:
    name = type(value).__name__
    if type(value) in (tuple, list):
        texts = [value_text(item, long, depth + 1) for item in value]
        if type(value) is list or depth >= 2:
            return f"[{', '.join(texts)}]"
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
    if hasattr(value, "__param_text__") and not isinstance(value, type):
        constructor, parts = value.__param_text__()
        return f"{constructor.__name__}({', '.join(value_text(part, long) for part in parts)})"
    if isinstance(value, slice):
        return f"slice({', '.join(value_text(part, long) for part in (value.start, value.stop, value.step))})"
    if isinstance(value, frozenset):
        return f"frozenset([{', '.join(sorted(value_text(item, long) for item in value))}])"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = tuple(zip(value._fields, value, strict=True))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = tuple((f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init)
    else:
        return opaque_text(value)
    return f"{name}({', '.join(f'{key}={value_text(item, long)}' for key, item in fields)})"
