"""Dtypes by name, and by what has one; the widths that Python's numbers have."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from corejax.messages import source_info
from corejax.settings.config import config

DType = np.dtype[Any]

# name -> short name, by kind. Types that this ml_dtypes release does not have are left out below.
_NAMES: dict[str, dict[str, str]] = {
    "b": {"bool": "bool"},
    "u": {f"uint{n}": f"u{n}" for n in (1, 2, 4, 8, 16, 32, 64)},
    "i": {f"int{n}": f"i{n}" for n in (1, 2, 4, 8, 16, 32, 64)},
    "f": {
        "float4_e2m1fn": "f4_e2m1fn",
        "float6_e2m3fn": "f6_e2m3fn",
        "float6_e3m2fn": "f6_e3m2fn",
        "float8_e3m4": "f8_e3m4",
        "float8_e4m3": "f8_e4m3",
        "float8_e4m3b11fnuz": "f8_e4m3b11fnuz",
        "float8_e4m3fn": "f8_e4m3fn",
        "float8_e4m3fnuz": "f8_e4m3fnuz",
        "float8_e5m2": "f8_e5m2",
        "float8_e5m2fnuz": "f8_e5m2fnuz",
        "float8_e8m0fnu": "f8_e8m0fnu",
        "bfloat16": "bf16",
        "float16": "f16",
        "float32": "f32",
        "float64": "f64",
    },
    "c": {"complex64": "c64", "complex128": "c128"},
}


def _by_name(name: str) -> DType | None:
    scalar_type = np.bool_ if name == "bool" else getattr(ml_dtypes, name, None) or getattr(np, name, None)
    return None if scalar_type is None else np.dtype(scalar_type)


SHORT_NAMES: dict[DType, str] = {}
KINDS: dict[DType, str] = {}
for _kind, _table in _NAMES.items():
    for _name, _short in _table.items():
        if (_dtype := _by_name(_name)) is not None:
            SHORT_NAMES[_dtype] = _short
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


def default_uint_dtype(bits: int | None = None) -> DType:
    """uint32 or uint64, by `bits` or else by the setting."""
    return DEFAULTS["u"][bits or config.default_dtype_bits]


def default_float_dtype(bits: int | None = None) -> DType:
    """Dtype of a Python `float`: float32 or float64, by `bits` or else by the setting."""
    return DEFAULTS["f"][bits or config.default_dtype_bits]


def default_complex_dtype(bits: int | None = None) -> DType:
    """Dtype of a Python `complex`: complex64 or complex128, by `bits` or else the setting."""
    return DEFAULTS["c"][bits or config.default_dtype_bits]


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
    kind = scalar_kind(x)
    if kind is None:
        raise TypeError(f"{x!r} of type {type(x).__name__} neither names a dtype nor has one")
    return DEFAULTS[kind][config.default_dtype_bits]


def scalar_kind(x: Any) -> str | None:
    """Kind of a Python scalar (a subclass such as an IntEnum included), or None."""
    kind = SCALAR_KINDS.get(type(x))
    if kind is None and not isinstance(x, np.generic):
        kind = next((k for t, k in SCALAR_KINDS.items() if isinstance(x, t)), None)
    return kind


def _explicit(d: Any) -> DType:
    if isinstance(d, type | np.dtype) or (scalar_kind(d) is None and not hasattr(d, "shape")):
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
