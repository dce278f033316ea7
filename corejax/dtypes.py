"""Element types and how they promote: NumPy's and ml_dtypes' dtypes, weak types, JAX's promotion lattice.

In this order: names and default widths, kinds (`is_integer` ...) and limits (`finfo` ...), promotion.

The lattice and weak types are those of JEP 9407 (jax.readthedocs.io/en/latest/jep/9407-type-promotion.html).
Three of its nodes, written `i*`, `f*` and `c*`, stand for weakly typed values: they know their kind and yield
to any dtype of it.

One difference from JAX: 64-bit types need no switch. An explicit dtype is kept, and where a promotion ends at
a weak node it takes the default width (`config.default_dtype_bits`), or 64 bits if an operand has them.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from corejax import source_info
from corejax.config import config
from corejax.errors import CorejaxError

DType = np.dtype[Any]


class TypePromotionError(CorejaxError, ValueError):
    """Two dtypes have no implicit promotion.

    Floats of 8 bits or fewer and integers of 4 or fewer mix only with their own type; under
    `config.numpy_dtype_promotion = "strict"` every type does. Cast one operand explicitly: `x.astype("float32")`.

    Attributes:
        dtypes: the dtypes that were to be combined.
    """

    def __init__(self, message: str, dtypes: tuple[DType, ...] = ()) -> None:
        super().__init__(message)
        self.dtypes = dtypes


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


_SHORT_NAMES: dict[DType, str] = {}
_KINDS: dict[DType, str] = {}
for _kind, _table in _NAMES.items():
    for _name, _short in _table.items():
        if (_dtype := _by_name(_name)) is not None:
            _SHORT_NAMES[_dtype] = _short
            _KINDS[_dtype] = _kind
_FROM_SHORT_NAMES = {short: d for d, short in _SHORT_NAMES.items()}
LONG_NAMES = {d.name: d for d in _KINDS}  # without NumPy's aliases, such as "int"

bfloat16 = ml_dtypes.bfloat16
float0 = np.dtype([("float0", np.void, 0)])  # of tangents that say nothing, of integers
bool_ = np.dtype(np.bool_)
_SMALL_FLOATS = frozenset(d for d, kind in _KINDS.items() if kind == "f" and d.itemsize == 1)
SMALL_INTS = frozenset(d for d, s in _SHORT_NAMES.items() if s in ("i1", "i2", "i4", "u1", "u2", "u4"))
_WIDE = frozenset(np.dtype(t) for t in (np.int64, np.uint64, np.float64, np.complex128))

# Kinds of weakly typed values, and their dtypes by width.
_DEFAULTS: dict[str, dict[int, DType]] = {
    "b": {32: bool_, 64: bool_},
    "i": {32: np.dtype(np.int32), 64: np.dtype(np.int64)},
    "u": {32: np.dtype(np.uint32), 64: np.dtype(np.uint64)},
    "f": {32: np.dtype(np.float32), 64: np.dtype(np.float64)},
    "c": {32: np.dtype(np.complex64), 64: np.dtype(np.complex128)},
}
_SCALAR_KINDS: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}


def default_int_dtype(bits: int | None = None) -> DType:
    """Dtype of a Python `int`: int32 or int64, by `bits` or else by the setting."""
    return _DEFAULTS["i"][bits or config.default_dtype_bits]


def default_uint_dtype(bits: int | None = None) -> DType:
    """uint32 or uint64, by `bits` or else by the setting."""
    return _DEFAULTS["u"][bits or config.default_dtype_bits]


def default_float_dtype(bits: int | None = None) -> DType:
    """Dtype of a Python `float`: float32 or float64, by `bits` or else by the setting."""
    return _DEFAULTS["f"][bits or config.default_dtype_bits]


def default_complex_dtype(bits: int | None = None) -> DType:
    """Dtype of a Python `complex`: complex64 or complex128, by `bits` or else the setting."""
    return _DEFAULTS["c"][bits or config.default_dtype_bits]


def scalar_dtype(python_type: type) -> DType:
    """Dtype of a Python scalar of this type, at the default width.

    Raises:
        TypeError: not one of `bool`, `int`, `float`, `complex`.
    """
    try:
        return _DEFAULTS[_SCALAR_KINDS[python_type]][config.default_dtype_bits]
    except KeyError:
        raise TypeError(f"{python_type!r} is not bool, int, float or complex") from None


def _supported(d: DType, given: Any) -> DType:
    if d in _KINDS:
        return d
    if not d.isnative and d.newbyteorder("=") in _KINDS:
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
    if isinstance(x, np.dtype) and x in _KINDS:
        return x
    if isinstance(x, type):
        if x in _SCALAR_KINDS:
            return scalar_dtype(x)
        if issubclass(x, np.generic):
            return _supported(np.dtype(x), x)
    if isinstance(x, str):
        try:
            named = np.dtype(x)
        except TypeError:
            hint = f"; did you mean {from_short_name(x).name!r}?" if x in _FROM_SHORT_NAMES else ""
            raise TypeError(f"{x!r} does not name a dtype{hint}") from None
        return _supported(named, x)
    found = x if isinstance(x, np.dtype) else getattr(x, "dtype", None)
    if isinstance(found, np.dtype):
        return _supported(found, x)
    kind = _scalar_kind(x)
    if kind is None:
        raise TypeError(f"{x!r} of type {type(x).__name__} neither names a dtype nor has one")
    return _DEFAULTS[kind][config.default_dtype_bits]


def _scalar_kind(x: Any) -> str | None:
    """Kind of a Python scalar (a subclass such as an IntEnum included), or None."""
    kind = _SCALAR_KINDS.get(type(x))
    if kind is None and not isinstance(x, np.generic):
        kind = next((k for t, k in _SCALAR_KINDS.items() if isinstance(x, t)), None)
    return kind


def _explicit(d: Any) -> DType:
    if isinstance(d, type | np.dtype) or (_scalar_kind(d) is None and not hasattr(d, "shape")):
        try:
            return dtype(d)
        except TypeError as error:
            raise TypeError(f"{source_info.by_caller()}{error}") from None
    shown = f"{type(d).__name__} of shape {d.shape}" if hasattr(d, "shape") else f"{d!r} of type {type(d).__name__}"
    raise TypeError(f"{source_info.by_caller()}a dtype is a type or the name of one, got {shown}")


def canonicalize_dtype(d: Any) -> DType:
    """What creation functions make of an explicit dtype: itself, or 32 bits under `config.x64_compat`.

    Raises:
        TypeError: it is not a dtype, but a number or an array, say; names the function that the user called.
    """
    found = d if isinstance(d, np.dtype) and d in _KINDS else _explicit(d)
    if config.x64_compat and found in _WIDE and config.default_dtype_bits == 32:
        return _DEFAULTS[_KINDS[found]][32]
    return found


# Extended dtypes ----------------------------------------------------------------------------------


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
    found = _FROM_SHORT_NAMES.get(name)
    if found is None:
        if not shape or not all(shape):
            raise ValueError(f"extended_dtype: an element of {name} is at least one number, got shape {shape}")
        if not re.fullmatch(r"[A-Za-z]\w*<\w+>", name):
            raise ValueError(f"extended_dtype: a name is written as key<fry> is, got {name!r}")
        scalar_type = type(name, (np.void, kind), {"__module__": __name__})
        globals()[name] = scalar_type  # where pickles look it up
        found = np.dtype((scalar_type, [field]))
        _SHORT_NAMES[found], _KINDS[found], _FROM_SHORT_NAMES[name] = name, "x", found
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
    """The error for who takes elements of an extended dtype for numbers.

    Args:
        d: the dtype.
        what: what was asked of them: "numpy.asarray".
    """
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


# Names --------------------------------------------------------------------------------------------


def short_name(d: Any) -> str:
    """`'f32'`, `'bf16'`, `'i32'`, `'u8'`, `'bool'`, `'c64'`, `'f8_e4m3fn'`, ...: the spelling in jaxprs.

    Raises:
        TypeError: the dtype is not supported.
    """
    try:
        return _SHORT_NAMES[d]
    except KeyError:
        return _SHORT_NAMES[dtype(d)]


def from_short_name(s: str) -> DType:
    """The dtype of a short name; inverse of `short_name`.

    Raises:
        ValueError: there is no such short name.
    """
    try:
        return _FROM_SHORT_NAMES[s]
    except KeyError:
        known = ", ".join(_FROM_SHORT_NAMES)
        raise ValueError(f"{s!r} is not a short dtype name; there are {known}") from None


# Kinds --------------------------------------------------------------------------------------------


def _kind_of(d: Any) -> str:
    try:
        return _KINDS[d]
    except (KeyError, TypeError):
        return _KINDS[dtype(d)]


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


_ANCESTORS: dict[str, tuple[type, ...]] = {
    "i": (np.signedinteger, np.integer, np.number, np.generic),
    "u": (np.unsignedinteger, np.integer, np.number, np.generic),
    "f": (np.floating, np.inexact, np.number, np.generic),
}


def _scalar_type(d: Any) -> type:
    if isinstance(d, type) and issubclass(d, np.generic):
        return d
    return np.dtype(d if isinstance(d, type | str | np.dtype) else dtype(d)).type


@functools.lru_cache(maxsize=1024)
def issubdtype(d: Any, category: Any) -> bool:
    """`numpy.issubdtype`, with bfloat16 under `numpy.floating`, int4 under `numpy.signedinteger`, and so on.

    Args:
        d: a dtype, its name, or a scalar type (abstract ones such as `numpy.integer` too).
        category: as `d`.
    """
    left, right = _scalar_type(d), _scalar_type(category)
    if left.__module__.partition(".")[0] == "ml_dtypes":
        return right is left or right in _ANCESTORS[_KINDS[np.dtype(left)]]
    return bool(np.issubdtype(left, right))


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
    return _DEFAULTS["f"][d.itemsize * 4] if _KINDS[d] == "c" else d


def complex_dtype_of(d: Any) -> DType:
    """complex128 of 64-bit types, complex64 of narrower ones; a complex dtype is its own."""
    d = dtype(d)
    return d if _KINDS[d] == "c" else _DEFAULTS["c"][64 if d in _WIDE else 32]


def inexact_dtype_of(d: Any) -> DType:
    """Dtype of `sin(x)`: an inexact dtype is its own; float64 of 64-bit integers, float32 of narrower ones and bool."""
    found = dtype(d)
    if _KINDS[found] in "fc":
        return found
    return canonicalize_dtype(_DEFAULTS["f"][64 if found in _WIDE else 32])


# Promotion ----------------------------------------------------------------------------------------

# Each node of the lattice with those directly above it, by short name.
_ABOVE: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("u8", "i8", *(_SHORT_NAMES[d] for d in SMALL_INTS)),
    "u8": ("u16", "i16"),
    "u16": ("u32", "i32"),
    "u32": ("u64", "i64"),
    "u64": ("f*",),
    "i8": ("i16",),
    "i16": ("i32",),
    "i32": ("i64",),
    "i64": ("f*",),
    "f*": ("bf16", "f16", "c*", *(_SHORT_NAMES[d] for d in _SMALL_FLOATS)),
    "bf16": ("f32",),
    "f16": ("f32",),
    "f32": ("f64", "c64"),
    "f64": ("c128",),
    "c*": ("c64",),
    "c64": ("c128",),
}


# Under `config.numpy_dtype_promotion = "strict"`: weakly typed values yield, and nothing else.
_STRICTLY_ABOVE: dict[str, tuple[str, ...]] = {
    "i*": ("f*", *(s for d, s in _SHORT_NAMES.items() if _KINDS[d] in "iu")),
    "f*": ("c*", *(s for d, s in _SHORT_NAMES.items() if _KINDS[d] == "f")),
    "c*": ("c64", "c128"),
}


@functools.cache
def _upper_bounds(node: str, strict: bool) -> frozenset[str]:
    above = (_STRICTLY_ABOVE if strict else _ABOVE).get(node, ())
    return frozenset({node}).union(*(_upper_bounds(one, strict) for one in above))


def _least_upper_bound(nodes: set[str], strict: bool) -> str | None:
    common = frozenset.intersection(*(_upper_bounds(node, strict) for node in nodes))
    return next((node for node in common if common <= _upper_bounds(node, strict)), None)


def _node(d: DType, weak: bool) -> str:
    kind = _KINDS[d]
    if not weak or kind == "b":
        return _SHORT_NAMES[d]
    return {"u": "i*"}.get(kind, kind + "*")


@functools.lru_cache(maxsize=4096)
def _promote(bits: int, narrow: bool, strict: bool, pairs: tuple[tuple[DType, bool], ...]) -> tuple[DType, bool]:
    """The least upper bound; `narrow` makes 64-bit types that no operand has 32 bits wide."""
    dtypes = [d for d, _ in pairs]
    all_weak = all(weak for _, weak in pairs)
    if len(set(dtypes)) == 1:
        out, weak = dtypes[0], all_weak
    else:
        bound = _least_upper_bound({_node(d, weak and (strict or not all_weak)) for d, weak in pairs}, strict)
        if bound is None:
            raise _no_strict_promotion(pairs) if strict else _no_promotion(pairs)
        weak = all_weak or bound.endswith("*")
        if bound.endswith("*"):
            # Eight bytes in, eight bytes out: int64 with uint64, or int64 with a Python float, is float64.
            out = _DEFAULTS[bound[0]][64 if any(d in _WIDE for d in dtypes) else bits]
        else:
            out = _FROM_SHORT_NAMES[bound]
        if narrow and out in _WIDE and not any(d in _WIDE for d in dtypes):
            out = _DEFAULTS[_KINDS[out]][32]
    return out, weak and out is not bool_


def _shown(pairs: tuple[tuple[DType, bool], ...]) -> str:
    names = (_SHORT_NAMES[d] if d in _extended else d.name for d, _ in dict.fromkeys(pairs))
    weak = ("a weakly typed " if weak else "" for _, weak in dict.fromkeys(pairs))
    return " and ".join(map("".join, zip(weak, names, strict=True)))


def _no_strict_promotion(pairs: tuple[tuple[DType, bool], ...]) -> TypePromotionError:
    return TypePromotionError(
        f"{source_info.by_caller()}no implicit promotion of {_shown(pairs)} under numpy_dtype_promotion='strict', "
        "where only Python's numbers yield. Cast explicitly with x.astype(...), "
        "or set numpy_dtype_promotion to 'standard'",
        tuple(d for d, _ in pairs),
    )


def _no_promotion(pairs: tuple[tuple[DType, bool], ...]) -> TypePromotionError:
    opaque = next((d for d, _ in pairs if d in _extended), None)
    if opaque is not None:
        return TypePromotionError(
            f"{no_numbers(opaque, 'promotion')}. They mix with their own type only, here they met {_shown(pairs)}",
            tuple(d for d, _ in pairs),
        )
    strong = list(dict.fromkeys(d for d, weak in pairs if not weak)) or [d for d, _ in pairs]
    small = [d for d in strong if d in _SMALL_FLOATS or d in SMALL_INTS]
    others = [d for d in strong if d not in small]
    shown = _shown(pairs)
    target = (others or [_DEFAULTS["f" if any(d in _SMALL_FLOATS for d in small) else "i"][32]])[0]
    return TypePromotionError(
        f"{source_info.by_caller()}no implicit promotion of {shown}: so narrow a type mixes with no other of its kind, "
        "lest precision change unseen. "
        f"Cast explicitly, for example the {small[0].name} operand with x.astype({target.name!r})",
        tuple(d for d, _ in pairs),
    )


def lattice_result_type(*pairs: tuple[DType, bool]) -> tuple[DType, bool]:
    """Least upper bound of `(dtype, weak_type)` pairs on the promotion lattice.

    Args:
        *pairs: `(dtype, weak_type)` of each operand; at least one.

    Returns:
        Dtype and weak type of the result. Bool is never weak.

    Raises:
        TypePromotionError: there is no implicit promotion.
    """
    if not pairs:
        raise ValueError("lattice_result_type needs at least one (dtype, weak_type) pair")
    bits = config.default_dtype_bits
    return _promote(bits, config.x64_compat and bits == 32, config.numpy_dtype_promotion == "strict", pairs)


def promote_types(a: Any, b: Any) -> DType:
    """Dtype that an operation on `a` and `b` has; Python's `int`, `float` and `complex` are weak.

    Args:
        a: a dtype, its name, or a scalar type.
        b: as `a`.

    Raises:
        TypePromotionError: there is no implicit promotion.
    """
    return lattice_result_type((dtype(a), _is_weak_scalar(a)), (dtype(b), _is_weak_scalar(b)))[0]


def _is_weak_scalar(x: Any) -> bool:
    """Whether `x` is `int`, `float` or `complex`, or a value of one."""
    if isinstance(x, np.dtype | str):
        return False
    kind = _SCALAR_KINDS.get(x) if isinstance(x, type) else _scalar_kind(x)
    return kind is not None and kind != "b"


def dtype_and_weak_type(x: Any) -> tuple[DType, bool]:
    """`(dtype, weak_type)` of anything `result_type` takes.

    Raises:
        TypeError: `x` neither names a dtype nor has one.
    """
    kind = _SCALAR_KINDS.get(type(x))
    if kind is not None:
        return _DEFAULTS[kind][config.default_dtype_bits], kind != "b"
    if isinstance(x, np.ndarray | np.dtype):
        return dtype(x), False
    aval = getattr(x, "aval", x)
    weak = getattr(aval, "weak_type", None)
    if weak is None:
        return dtype(x), _is_weak_scalar(x)
    return dtype(aval.dtype), bool(weak)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Dtype that an operation on `args` has.

    Args:
        *args: arrays, tracers, avals (anything with `aval`, or `dtype` and perhaps `weak_type`), Python
            scalars, dtypes, their names, scalar types. Python's `int`, `float` and `complex`, and values of
            them, are weak.
        return_weak_type_flag: return `(dtype, weak_type)`.

    Returns:
        The dtype. Where the result is weak it has at least the default width.

    Raises:
        TypePromotionError: there is no implicit promotion.
        ValueError: there are no arguments.
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype")
    out, weak = lattice_result_type(*map(dtype_and_weak_type, args))
    if weak:
        out = _DEFAULTS[_KINDS[out]][64 if out in _WIDE else config.default_dtype_bits]
    return (out, weak) if return_weak_type_flag else out


def itemsize_bits(d: Any) -> int:
    """How many bits one element takes; a boolean takes 8.

    Raises:
        TypeError: it names no dtype of numbers.
    """
    found = dtype(d)
    if is_bool(found):
        return 8
    bits = (iinfo if is_integer(found) else finfo)(found).bits
    return 2 * int(bits) if is_complex(found) else int(bits)


def scalar_type_of(x: Any) -> type:
    """Python's type of numbers of the kind of a dtype, or of what has one: bool, int, float or complex.

    Raises:
        TypeError: it is no dtype of numbers, and has none.
    """
    found = dtype(x)
    if is_bool(found):
        return bool
    return int if is_integer(found) else complex if is_complex(found) else float


if not TYPE_CHECKING:  # a type checker would take it for every name that there is not

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):  # the import system asks for some
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from corejax.texts import no_such_name  # needed for an error only

        raise no_such_name(__name__, name, globals())
