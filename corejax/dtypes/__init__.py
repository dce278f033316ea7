"""Element types: NumPy's and ml_dtypes' dtypes by name, default widths, kinds (`is_integer` ...) and limits.

Also dtypes whose elements are not numbers. How dtypes promote (`result_type` ...) comes with corejax-lax-basic.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import ml_dtypes
import numpy as np

from corejax.base.plugin_access import plugin_access, required
from corejax.base.texts import no_such_name
from corejax.messages import source_info
from corejax.settings.config import config

DType = np.dtype[Any]

# Names by kind. Types that this ml_dtypes release does not have are left out below.
_NAMES = {
    "b": "bool",
    "u": "uint1 uint2 uint4 uint8 uint16 uint32 uint64",
    "i": "int1 int2 int4 int8 int16 int32 int64",
    "f": (
        "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
        "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu bfloat16 float16 float32 float64"
    ),
    "c": "complex64 complex128",
}


def _shortened(name: str) -> str:
    for word, letter in (("uint", "u"), ("int", "i"), ("float", "f"), ("complex", "c")):
        name = name.replace(word, letter)
    return name


def _by_name(name: str) -> DType | None:
    scalar_type = np.bool_ if name == "bool" else getattr(ml_dtypes, name, None) or getattr(np, name, None)
    return None if scalar_type is None else np.dtype(scalar_type)


SHORT_NAMES: dict[DType, str] = {}
KINDS: dict[DType, str] = {}
for _kind, _names in _NAMES.items():
    for _name in _names.split():
        if (_dtype := _by_name(_name)) is not None:
            SHORT_NAMES[_dtype] = _shortened(_name)
            KINDS[_dtype] = _kind
FROM_SHORT_NAMES = {short: d for d, short in SHORT_NAMES.items()}
LONG_NAMES = {d.name: d for d in KINDS}  # without NumPy's aliases, such as "int"

bfloat16 = ml_dtypes.bfloat16
float0 = np.dtype([("float0", np.void, 0)])  # of tangents that say nothing, of integers
bool_ = np.dtype(np.bool_)
SMALL_FLOATS = frozenset(d for d, kind in KINDS.items() if kind == "f" and d.itemsize == 1)
SMALL_INTS = frozenset(d for d, s in SHORT_NAMES.items() if s in ("i1", "i2", "i4", "u1", "u2", "u4"))
WIDE = frozenset(np.dtype(t) for t in (np.int64, np.uint64, np.float64, np.complex128))

# Kinds of weakly typed values, and their dtypes by width.
DEFAULTS: dict[str, dict[int, DType]] = {
    "b": {32: bool_, 64: bool_},
    "i": {32: np.dtype(np.int32), 64: np.dtype(np.int64)},
    "u": {32: np.dtype(np.uint32), 64: np.dtype(np.uint64)},
    "f": {32: np.dtype(np.float32), 64: np.dtype(np.float64)},
    "c": {32: np.dtype(np.complex64), 64: np.dtype(np.complex128)},
}
SCALAR_KINDS: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}


def default_int_dtype(bits: int | None = None) -> DType:
    """Dtype of a Python `int`: int32 or int64, by `bits` or else by the setting."""
    return DEFAULTS["i"][bits or config.default_dtype_bits]


def default_float_dtype(bits: int | None = None) -> DType:
    """Dtype of a Python `float`: float32 or float64, by `bits` or else by the setting."""
    return DEFAULTS["f"][bits or config.default_dtype_bits]


def scalar_dtype(python_type: type) -> DType:
    """Dtype of a Python scalar of this type, at the default width.

    Raises:
        TypeError: not one of `bool`, `int`, `float`, `complex`.
    """
    try:
        return DEFAULTS[SCALAR_KINDS[python_type]][config.default_dtype_bits]
    except KeyError:
        raise TypeError(f"{python_type!r} is not bool, int, float or complex") from None


def _supported(d: DType, given: Any) -> DType:
    if d in KINDS:
        return d
    if not d.isnative and d.newbyteorder("=") in KINDS:
        native = d.newbyteorder("=").name
        raise TypeError(f"dtype {d.str!r} has foreign byte order; convert with x.astype({native!r})")
    raise TypeError(f"dtype {d.name!r} is not supported: expected booleans or numbers, got {given!r}")


def dtype(x: Any) -> DType:
    """The dtype that `x` names or has.

    Args:
        x: a dtype; a name (`"float32"`, `"bfloat16"`); a NumPy, ml_dtypes or Python scalar type; or a value:
            an array, anything with a `dtype`, or a Python scalar. Python's scalars have the default width.

    Raises:
        TypeError: `x` is none of these, or its dtype is not a boolean or a number in native byte order.
    """
    if isinstance(x, np.dtype) and x in KINDS:
        return x
    if isinstance(x, type):
        if x in SCALAR_KINDS:
            return scalar_dtype(x)
        if issubclass(x, np.generic):
            return _supported(np.dtype(x), x)
    if isinstance(x, str):
        try:
            named = np.dtype(x)
        except TypeError:
            hint = f"; did you mean {from_short_name(x).name!r}?" if x in FROM_SHORT_NAMES else ""
            raise TypeError(f"{x!r} does not name a dtype{hint}") from None
        return _supported(named, x)
    found = x if isinstance(x, np.dtype) else getattr(x, "dtype", None)
    if isinstance(found, np.dtype):
        return _supported(found, x)
    kind = _scalar_kind(x)
    if kind is None:
        raise TypeError(f"{x!r} of type {type(x).__name__} neither names a dtype nor has one")
    return DEFAULTS[kind][config.default_dtype_bits]


def _scalar_kind(x: Any) -> str | None:
    """Kind of a Python scalar (a subclass such as an IntEnum included), or None."""
    kind = SCALAR_KINDS.get(type(x))
    if kind is None and not isinstance(x, np.generic):
        kind = next((k for t, k in SCALAR_KINDS.items() if isinstance(x, t)), None)
    return kind


def _explicit(d: Any) -> DType:
    if isinstance(d, type | np.dtype) or (_scalar_kind(d) is None and not hasattr(d, "shape")):
        try:
            return dtype(d)
        except TypeError as error:
            raise TypeError(f"{source_info.by_caller()}{error}") from None
    shown = f"{type(d).__name__} of shape {d.shape}" if hasattr(d, "shape") else f"{d!r} of type {type(d).__name__}"
    advice = "; the sizes of a shape are one argument, as in (2, 3)" if isinstance(d, int) and d > 1 else ""
    raise TypeError(f"{source_info.by_caller()}a dtype is a type or the name of one, got {shown}{advice}")


def canonicalize_dtype(d: Any, allow_extended_dtype: bool = True) -> DType:
    """What creation functions make of an explicit dtype: itself, or 32 bits under `config.x64_compat`.

    Args:
        d: the dtype; None is the default floating-point dtype, as `np.dtype(None)` is NumPy's.
        allow_extended_dtype: whether it may be one of elements that are not numbers, of keys, say.

    Raises:
        TypeError: it is not a dtype, but a number or an array, say; names the function that the user called.
        ValueError: it is one of elements that are not numbers, which is not allowed.
    """
    if d is None:
        return default_float_dtype()
    found = d if isinstance(d, np.dtype) and d in KINDS else _explicit(d)
    if found.names is not None and not allow_extended_dtype:
        raise ValueError(f"canonicalize_dtype: a dtype of numbers is needed here, got {short_name(found)}")
    if config.x64_compat and found in WIDE and config.default_dtype_bits == 32:
        return DEFAULTS[KINDS[found]][32]
    return found


def short_name(d: Any) -> str:
    """`'f32'`, `'bf16'`, `'i32'`, `'u8'`, `'bool'`, `'c64'`, `'f8_e4m3fn'`, ...: the spelling in jaxprs.

    Raises:
        TypeError: the dtype is not supported.
    """
    try:
        return SHORT_NAMES[d]
    except KeyError:
        return SHORT_NAMES[dtype(d)]


def from_short_name(s: str) -> DType:
    """The dtype of a short name; inverse of `short_name`.

    Raises:
        ValueError: there is no such short name.
    """
    try:
        return FROM_SHORT_NAMES[s]
    except KeyError:
        known = ", ".join(FROM_SHORT_NAMES)
        raise ValueError(f"{s!r} is not a short dtype name; there are {known}") from None


# -- kinds, limits, and dtypes of a kind that go with one --------------------------------------------------------------


def _kind_of(d: Any) -> str:
    try:
        return KINDS[d]
    except (KeyError, TypeError):
        return KINDS[dtype(d)]


def is_bool(d: Any) -> bool:
    """Whether the dtype is bool."""
    return _kind_of(d) == "b"


def is_integer(d: Any) -> bool:
    """Whether the dtype is a signed or unsigned integer (bool is not)."""
    return _kind_of(d) in "iu"


def is_unsigned(d: Any) -> bool:
    """Whether the dtype is an unsigned integer (bool is not)."""
    return _kind_of(d) == "u"


def is_float(d: Any) -> bool:
    """Whether the dtype is a real floating type, bfloat16 and the 8-bit ones included."""
    return _kind_of(d) == "f"


def is_complex(d: Any) -> bool:
    """Whether the dtype is complex."""
    return _kind_of(d) == "c"


def is_inexact(d: Any) -> bool:
    """Whether the dtype is floating or complex: whether values of it have tangents."""
    return _kind_of(d) in "fc"


def finfo(d: Any) -> Any:
    """Limits of a floating or complex dtype, as `numpy.finfo`; bfloat16 and the 8-bit types included.

    Raises:
        TypeError: the dtype is not inexact.
    """
    if not is_inexact(d):
        raise TypeError(f"finfo is of floating and complex dtypes; {dtype(d).name} is not one (see iinfo)")
    return _finfo(real_dtype_of(d))


def iinfo(d: Any) -> Any:
    """Limits of an integer dtype, as `numpy.iinfo`; 1-, 2- and 4-bit types included.

    Raises:
        TypeError: the dtype is not an integer.
    """
    if not is_integer(d):
        raise TypeError(f"iinfo is of integer dtypes; {dtype(d).name} is not one (see finfo)")
    return _iinfo(dtype(d))


_finfo = functools.cache(ml_dtypes.finfo)
_iinfo = functools.cache(ml_dtypes.iinfo)


def real_dtype_of(d: Any) -> DType:
    """float32 of complex64, float64 of complex128; a real dtype is its own."""
    d = dtype(d)
    return DEFAULTS["f"][d.itemsize * 4] if KINDS[d] == "c" else d


# -- extended dtypes: elements that are not numbers, but are made of them ----------------------------------------------

_extended: dict[DType, str] = {}  # with how one gets at the numbers


class extended(np.generic):
    """What the elements of extended dtypes are, for `issubdtype`."""


class prng_key(extended):
    """What keys of random generators are, for `issubdtype`."""


def extended_dtype(
    name: str, *, base: Any, shape: tuple[int, ...], numbers: str = "", kind: type[extended] = extended
) -> DType:
    """A dtype of elements that are not numbers, each held as an array of numbers: keys of random generators, say.

    Such arrays are indexed, joined, batched and looped over as any others, and no arithmetic takes them. On the host
    they are NumPy arrays of a structured dtype with one field; programs are compiled for `physical_aval`.

    Args:
        name: as it is printed: `key<fry>`.
        base: dtype of the numbers.
        shape: how many make an element; at least one axis, with at least one number.
        numbers: for messages, how one gets at the numbers: `corejax.random.key_data(x)`.
        kind: what `issubdtype` says it is.

    Returns:
        The dtype; the same one when it is asked for again.

    Raises:
        ValueError: the name is that of another dtype, or the shape is of no numbers.
    """
    field = (name, dtype(base), tuple(shape))
    found = FROM_SHORT_NAMES.get(name)
    if found is None:
        if not shape or not all(shape):
            raise ValueError(f"extended_dtype: an element of {name} is at least one number, got shape {shape}")
        if not re.fullmatch(r"[A-Za-z]\w*<\w+>", name):
            raise ValueError(f"extended_dtype: a name is written as key<fry> is, got {name!r}")
        # Its name is the kind's, by which libraries that check types know it; pickles look it up by `__qualname__`.
        scalar_type = type(kind.__name__, (np.void, kind), {"__module__": __name__, "__qualname__": name})
        globals()[name] = scalar_type
        found = np.dtype((scalar_type, [field]))
        SHORT_NAMES[found], KINDS[found], FROM_SHORT_NAMES[name] = name, "x", found
        _extended[found] = numbers
    if found != np.dtype([field]):
        base, inner = found[name].subdtype or (None, ())
        raise ValueError(f"extended_dtype: {name} is known as {base}{list(inner)}, got {field[1]}{list(shape)}")
    return found


def is_extended(d: Any) -> bool:
    """Whether the dtype is one that `extended_dtype` made."""
    return isinstance(d, np.dtype) and d.names is not None and d in _extended


def has_extended() -> bool:
    """Whether there are any."""
    return bool(_extended)


def no_numbers(d: DType, what: str) -> TypeError:
    """The error where elements of an extended dtype are taken for numbers; `what` was asked: "numpy.asarray"."""
    advice = _extended[d]
    head = source_info.by_caller() or f"{what}: "
    return TypeError(
        f"{head}elements of dtype {short_name(d)} are not numbers"
        + (f"; {advice} has those that they are made of" if advice else "")
    )


def element_of(d: DType) -> tuple[DType, tuple[int, ...]]:
    """Dtype and shape of the numbers that make an element of an extended dtype."""
    base, shape = d[0].subdtype  # type: ignore[misc]
    return base, shape


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise no_such_name(__name__, name, ())
    found = globals()[name] = required(f"dtypes.{name}")
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *plugin_access().names_inside("dtypes")})
