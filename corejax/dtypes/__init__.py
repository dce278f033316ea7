"""Element types: NumPy's and ml_dtypes' dtypes by name, default widths, kinds (`is_integer` ...) and limits.

Extended dtypes, with elements that are not numbers, are here as well. Promotion (`result_type` ...) is in
corejax-lax-basic.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from corejax.base.plugin_access import complete_from_plugins
from corejax.base.texts import did_you_mean
from corejax.messages import source_info
from corejax.settings.config import config

DType = np.dtype

# Names by kind. The loop below skips types that the installed ml_dtypes lacks.
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
float0 = np.dtype([("float0", np.void, 0)])  # dtype of the tangents of integers and booleans, without content
bool_ = np.dtype(np.bool_)
SMALL_FLOATS = frozenset(d for d, kind in KINDS.items() if kind == "f" and d.itemsize == 1)
SMALL_INTS = frozenset(d for d, s in SHORT_NAMES.items() if s in ("i1", "i2", "i4", "u1", "u2", "u4"))
WIDE = frozenset(np.dtype(t) for t in (np.int64, np.uint64, np.float64, np.complex128))

# Dtypes of weakly typed values, by kind and default width.
DEFAULTS: dict[str, dict[int, DType]] = {
    "b": {32: bool_, 64: bool_},
    "i": {32: np.dtype(np.int32), 64: np.dtype(np.int64)},
    "u": {32: np.dtype(np.uint32), 64: np.dtype(np.uint64)},
    "f": {32: np.dtype(np.float32), 64: np.dtype(np.float64)},
    "c": {32: np.dtype(np.complex64), 64: np.dtype(np.complex128)},
}
SCALAR_KINDS: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}


def scalar_dtype(python_type: type) -> DType:
    """Return the dtype of a Python scalar of this type, at the default width.

    Raises:
        TypeError: the type is not `bool`, `int`, `float` or `complex`.
    """
    try:
        return DEFAULTS[SCALAR_KINDS[python_type]][config.default_dtype_bits]
    except KeyError:
        raise TypeError(f"{python_type!r} is not bool, int, float or complex") from None


def _supported(d: DType, original: object) -> DType:
    if d in KINDS:
        return d
    if not d.isnative and d.newbyteorder("=") in KINDS:
        native = d.newbyteorder("=").name
        raise TypeError(f"dtype {d.str!r} has foreign byte order; convert with x.astype({native!r})")
    raise TypeError(f"dtype {d.name!r} is not supported: expected booleans or numbers, got {original!r}")


def dtype(x: object) -> DType:
    """Convert a name or type to a dtype, or return the dtype of a value.

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
            hint = did_you_mean(from_short_name(x).name if x in FROM_SHORT_NAMES else x, map(str, KINDS))
            raise TypeError(f"{x!r} does not name a dtype{hint}") from None
        return _supported(named, x)
    d = x if isinstance(x, np.dtype) else getattr(x, "dtype", None)
    if isinstance(d, np.dtype):
        return _supported(d, x)
    kind = _scalar_kind(x)
    if kind is None:
        raise TypeError(f"{x!r} of type {type(x).__name__} neither names a dtype nor has one")
    return DEFAULTS[kind][config.default_dtype_bits]


def _scalar_kind(x: object) -> str | None:
    """Return the kind of a Python scalar (a subclass such as an IntEnum included), or None."""
    kind = SCALAR_KINDS.get(type(x))
    if kind is None and not isinstance(x, np.generic):
        kind = next((k for t, k in SCALAR_KINDS.items() if isinstance(x, t)), None)
    return kind


def _explicit(d: object) -> DType:
    if isinstance(d, (type, np.dtype)) or (_scalar_kind(d) is None and not hasattr(d, "shape")):
        try:
            return dtype(d)
        except TypeError as error:
            raise TypeError(f"{source_info.by_caller()}{error}") from None
    shown = f"{type(d).__name__} of shape {d.shape}" if hasattr(d, "shape") else f"{d!r} of type {type(d).__name__}"
    advice = "; the sizes of a shape are one argument, as in (2, 3)" if isinstance(d, int) and d > 1 else ""
    raise TypeError(f"{source_info.by_caller()}a dtype must be a type or the name of one, got {shown}{advice}")


def canonicalize_dtype(d: object, allow_extended_dtype: bool = True) -> DType:
    """Return the dtype that creation functions use for `d`: itself, or 32 bits wide under `config.x64_compat`.

    Args:
        d: the dtype; None is the default floating-point dtype, as `np.dtype(None)` is NumPy's.
        allow_extended_dtype: whether `d` may be an extended dtype, such as that of keys.

    Raises:
        TypeError: `d` is not a dtype but, for example, a number; the message names the function that the user called.
        ValueError: `d` is an extended dtype and `allow_extended_dtype` is False.
    """
    if d is None:
        return DEFAULTS["f"][config.default_dtype_bits]
    canonical = d if isinstance(d, np.dtype) and d in KINDS else _explicit(d)
    if canonical.names is not None and not allow_extended_dtype:
        raise ValueError(f"canonicalize_dtype: a dtype of numbers is needed here, got {short_name(canonical)}")
    if config.x64_compat and canonical in WIDE and config.default_dtype_bits == 32:
        return DEFAULTS[KINDS[canonical]][32]
    return canonical


def short_name(d: Any) -> str:
    """Return the name of a dtype in jaxprs: `'f32'`, `'bf16'`, `'i32'`, `'u8'`, `'bool'`, `'c64'`, `'f8_e4m3fn'`, ...

    Raises:
        TypeError: the dtype is not supported.
    """
    return SHORT_NAMES.get(d) or SHORT_NAMES[dtype(d)]


def from_short_name(s: str) -> DType:
    """Return the dtype with a short name; the inverse of `short_name`.

    Raises:
        ValueError: no dtype has that short name.
    """
    try:
        return FROM_SHORT_NAMES[s]
    except KeyError:
        raise ValueError(f"{s!r} is not a short dtype name; there are {', '.join(FROM_SHORT_NAMES)}") from None


# -- kinds and limits --------------------------------------------------------------------------------------------------


def _kind_of(d: Any) -> str:
    try:
        return KINDS[d]
    except (KeyError, TypeError):
        return KINDS[dtype(d)]


def is_bool(d: object) -> bool:
    """Return True if the dtype is bool."""
    return _kind_of(d) == "b"


def is_integer(d: object) -> bool:
    """Return True if the dtype is a signed or unsigned integer (bool is not)."""
    return _kind_of(d) in "iu"


def is_unsigned(d: object) -> bool:
    """Return True if the dtype is an unsigned integer (bool is not)."""
    return _kind_of(d) == "u"


def is_float(d: object) -> bool:
    """Return True if the dtype is real floating-point, bfloat16 and the 8-bit types included."""
    return _kind_of(d) == "f"


def is_complex(d: object) -> bool:
    """Return True if the dtype is complex."""
    return _kind_of(d) == "c"


def is_inexact(d: object) -> bool:
    """Return True if the dtype is floating-point or complex; values of such dtypes have tangents."""
    return _kind_of(d) in "fc"


def finfo(d: object) -> Any:
    """Return the limits of a floating or complex dtype, as `numpy.finfo`; bfloat16 and the 8-bit types included.

    Raises:
        TypeError: the dtype is not inexact.
    """
    if not is_inexact(d):
        raise TypeError(f"finfo takes floating-point and complex dtypes, got {dtype(d).name} (see iinfo)")
    return _finfo(real_dtype_of(d))


def iinfo(d: object) -> Any:
    """Return the limits of an integer dtype, as `numpy.iinfo`; 1-, 2- and 4-bit types included.

    Raises:
        TypeError: the dtype is not an integer.
    """
    if not is_integer(d):
        raise TypeError(f"iinfo takes integer dtypes, got {dtype(d).name} (see finfo)")
    return _iinfo(dtype(d))


_finfo = functools.cache(ml_dtypes.finfo)
_iinfo = functools.cache(ml_dtypes.iinfo)


def real_dtype_of(d: object) -> DType:
    """Return the dtype of the real part: float32 for complex64, float64 for complex128, else the dtype itself."""
    d = dtype(d)
    return DEFAULTS["f"][d.itemsize * 4] if KINDS[d] == "c" else d


# -- extended dtypes: each element is opaque to arithmetic and stored as an array of numbers ---------------------------

_extended: dict[DType, str] = {}  # with the expression that returns the numbers, for messages


class extended(np.generic):
    """The scalar type of the elements of extended dtypes, for `issubdtype`."""


class prng_key(extended):
    """The scalar type of keys of random generators, for `issubdtype`."""


def extended_dtype(
    name: str, *, base: object, shape: tuple[int, ...], numbers: str = "", kind: type[extended] = extended
) -> DType:
    """Create an extended dtype: each element is stored as an array of numbers but is not a number, as a random key.

    Arrays of it are indexed, joined, batched and looped over like any others, and arithmetic on them raises. On the
    host they are NumPy arrays of a structured dtype with one field; programs are compiled for the parts of their types.

    Args:
        name: the printed name, such as `key<fry>`.
        base: dtype of the numbers.
        shape: shape of the numbers of one element; at least one axis, with at least one number.
        numbers: expression that returns the numbers, for messages: `corejax.random.key_data(x)`.
        kind: scalar type for `issubdtype`.

    Returns:
        The dtype; another call with equal arguments returns the same object.

    Raises:
        ValueError: another dtype has the name, the name is malformed, or an element has no numbers.
    """
    field = (name, dtype(base), tuple(shape))
    d = FROM_SHORT_NAMES.get(name)
    if d is None:
        if not shape or not all(shape):
            raise ValueError(f"extended_dtype: an element of {name} must have at least one number, got shape {shape}")
        if not re.fullmatch(r"[A-Za-z]\w*<\w+>", name):
            raise ValueError(f"extended_dtype: a name must have the form key<fry>, got {name!r}")
        # Type checking libraries compare `__name__`, so it is that of the kind; pickle uses `__qualname__`.
        scalar_type = type(kind.__name__, (np.void, kind), {"__module__": __name__, "__qualname__": name})
        globals()[name] = scalar_type
        d = np.dtype((scalar_type, [field]))
        SHORT_NAMES[d], KINDS[d], FROM_SHORT_NAMES[name] = name, "x", d
        _extended[d] = numbers
    if d != np.dtype([field]):
        base, inner = d[name].subdtype or (None, ())
        raise ValueError(f"extended_dtype: {name} is known as {base}{list(inner)}, got {field[1]}{list(shape)}")
    return d


def is_extended(d: object) -> bool:
    """Return True if the dtype was created by `extended_dtype`."""
    return isinstance(d, np.dtype) and d.names is not None and d in _extended


def has_extended() -> bool:
    """Return True if any extended dtype was created."""
    return bool(_extended)


def no_numbers(d: DType, what: str) -> TypeError:
    """Return the error for a use (`what`: "numpy.asarray") of elements of an extended dtype as numbers."""
    advice = _extended[d]
    head = source_info.by_caller() or f"{what}: "
    return TypeError(
        f"{head}elements of dtype {short_name(d)} are not numbers"
        + (f"; {advice} returns the numbers that they consist of" if advice else "")
    )


def element_of(d: DType) -> tuple[DType, tuple[int, ...]]:
    """Return the dtype and shape of the numbers in an element of an extended dtype."""
    base, shape = d[0].subdtype  # type: ignore[misc]  # extended dtypes have one
    return base, shape


complete_from_plugins(globals())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
