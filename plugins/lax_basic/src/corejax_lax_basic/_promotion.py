"""Operands of one operation: what counts as one, when a scalar yields to an array, the common dtype and shape.

There are two contracts. `joined_operands` is that of `corejax.lax`: a scalar takes the arrays' dtype, an axis of size 1
is repeated, and whatever else disagrees is refused by the primitive. `promote_operands` is NumPy's, of operators,
methods and `corejax.numpy`. Python scalars stay Python scalars until the common dtype is known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, Tracer, as_array, config, dtypes, get_aval
from corejax.extend.messages import called_as, clears_cache, warn_user
from corejax.extend.types import array_method
from corejax_lax_basic._base.constants import asarray
from corejax_lax_basic._base.promotion import (
    TypePromotionError,
    check_strict_promotion,
    dtype_and_weak_type,
    lattice_result_type,
    result_type,
)
from corejax_lax_basic._base.related_dtypes import inexact_dtype_of
from corejax_lax_basic._base.scalars import PYTHON_SCALARS, scalar_maker
from corejax_lax_basic._base.type_rules import NUMPY_NAMES
from corejax_lax_basic.conversion.convert import convert_element_type_p
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p, broadcast_shapes

__all__ = [
    "as_operand",
    "broadcast_operands",
    "check_dtype_promotion",
    "check_rank_promotion",
    "convert_operand",
    "promote_dtypes",
    "promote_operands",
    "yielding_scalar",
]

_WEAK_SCALARS = frozenset({int, float, complex})
_Maker = Callable[[Any], Array]
_memoised = functools.lru_cache(4096)


def as_operand(x: Any) -> Any:
    """What operations take: an array, a tracer or a Python scalar; NotImplemented for anything else.

    Raises:
        TypeError: a NumPy array of a dtype that is not supported.
    """
    if type(x) in PYTHON_SCALARS or type(x) is Array or isinstance(x, Tracer):
        return x
    if isinstance(x, np.ndarray | np.generic) or array_method(type(x)):
        return asarray(x)
    if isinstance(x, int | float | complex):  # a subclass, an IntEnum say
        return next(kind(x) for kind in (bool, int, float, complex) if isinstance(x, kind))
    return NotImplemented


def yielding_scalar(aval: Any, kind: type) -> _Maker | None:
    """Whether Python scalars of a type yield to arrays of type `aval`, which then keep their type.

    Returns:
        The function that makes such a scalar an array of the dtype and weak type of `aval`; None where they do not
        yield, or `kind` is no Python scalar.
    """
    return _maker(aval, kind, config.default_dtype_bits) if kind in PYTHON_SCALARS and aval is not None else None


@_memoised
def _maker(aval: ShapedArray, kind: type, bits: int) -> _Maker | None:
    """As `yielding_scalar`, with the setting that it depends on; cleared when `numpy_dtype_promotion` changes."""
    dtype, weak = result_type(aval, kind, return_weak_type_flag=True)
    if kind is bool and dtype != dtypes.bool_ and config.numpy_dtype_promotion == "strict":
        return None  # booleans are no weak numbers: where users give them, they are refused
    yields = dtype == aval.dtype and weak == aval.weak_type
    return _remembering(scalar_maker(dtype, weak)) if yields else None


config.changed.connect(_maker.cache_clear)


def _remembering(make: _Maker) -> _Maker:
    """`make`, once for each small integer: programs are full of them. They are operands only, never results."""
    small: dict[int, Array] = {}

    def made(value: Any) -> Array:
        if type(value) is int and -16 <= value <= 16:
            found = small.get(value)
            if found is None:
                found = small[value] = make(value)
            return found
        return make(value)

    return made


# -- the contract of corejax.lax -----------------------------------------------------------------------------------


def scalars_yield(*operands: Any) -> Sequence[Any]:
    """The operands with weakly typed ones converted where they yield to the others.

    Decided once for each combination of types. Python scalars become scalar constants of the common dtype.

    Raises:
        TypeError: an operand is not an array.
        OverflowError: a Python int does not fit the other operands' dtype.
    """
    if len(operands) == 2:
        x, y = operands
        aval, other = getattr(x, "aval", None), getattr(y, "aval", None)
        if aval is not None and other is not None and aval.dtype is other.dtype:
            return operands
        if (make := _strong_type_for(y, aval)) is not None:
            return x, make(y)
        if (make := _strong_type_for(x, other)) is not None:
            return make(x), y
    types = tuple([type(x) if type(x) in _WEAK_SCALARS else get_aval(x) for x in operands])
    targets = _targets(types, config.default_dtype_bits, config.x64_compat)
    return [
        x if target is None else _converted(x, target.dtype, target.weak_type)
        for x, target in zip(operands, targets, strict=True)
    ]


def joined_operands(*operands: Any) -> Sequence[Any]:
    """The operands of an elementwise function: as `scalars_yield`, and as `ones_repeated`.

    Raises:
        TypeError, OverflowError: as `scalars_yield`.
    """
    try:
        x, y = operands
        aval, other = x.aval, y.aval
        if aval.dtype is other.dtype and not (aval.shape and other.shape):  # at once for what is frequent
            return operands
    except (ValueError, AttributeError):
        pass
    return ones_repeated(*scalars_yield(*operands))


def ones_repeated(*operands: Any) -> Sequence[Any]:
    """Arrays of one rank that differ in sizes of 1 in one shape; others stay, for the primitive to take or refuse."""
    try:
        x, y = operands
        if not x.aval.shape or not y.aval.shape:  # at once for what is frequent
            return operands
    except (ValueError, AttributeError):
        pass
    shapes = {shape for x in operands if (shape := get_aval(x).shape)}
    if len(shapes) < 2 or len({len(shape) for shape in shapes}) > 1:
        return operands
    if any(len({size for size in sizes if size != 1}) > 1 for sizes in zip(*shapes, strict=True)):
        return operands
    return broadcast_operands(*map(as_array, operands))


def _strong_type_for(x: Any, aval: ShapedArray | None) -> _Maker | None:
    """What makes a Python scalar one of the strongly typed `aval`, where it yields to that."""
    if type(x) not in _WEAK_SCALARS or aval is None or aval.weak_type:
        return None
    return yielding_scalar(aval, type(x))


@_memoised
def _targets(types: Sequence[Any], bits: int, x64_compat: bool) -> list[ShapedArray | None]:
    """Return for each operand the scalar type to convert to, or None to leave it; the settings are those in force."""
    pairs = [(dtypes.scalar_dtype(t), True) if isinstance(t, type) else (t.dtype, t.weak_type) for t in types]
    untouched: list[ShapedArray | None] = [None] * len(pairs)
    try:
        dtype, weak = lattice_result_type(*pairs)
    except TypePromotionError:
        return untouched
    if any(not w and d != dtype for d, w in pairs):
        return untouched
    if all(isinstance(t, type) for t in types) and len({d for d, _ in pairs}) > 1:
        return untouched  # Python numbers of different kinds, and no array to which they yield
    target = ShapedArray((), dtype, weak)
    return [target if isinstance(t, type) or d != dtype else None for t, (d, _) in zip(types, pairs, strict=True)]


def _converted(x: Any, dtype: np.dtype[Any], weak: bool) -> Any:
    if type(x) in PYTHON_SCALARS:
        return scalar_maker(dtype, weak)(x)
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak)


# -- NumPy's contract ----------------------------------------------------------------------------------------------


def convert_operand(x: Any, dtype: np.dtype[Any], weak: bool = False) -> Any:
    """`x` in a dtype; `weak` is wanted of what has to be converted, an array of the dtype stays as it is."""
    if type(x) not in PYTHON_SCALARS:
        x = as_array(x)
        if x.aval.dtype == dtype:
            return x
    return _converted(x, dtype, weak)


def promote_dtypes(*operands: Any, inexact: bool = False, name: str = "") -> list[Any]:
    """Operands in the dtype that the promotion lattice gives them; Python scalars become arrays.

    Args:
        operands: what `as_operand` gives.
        inexact: whether integers and booleans become floating.
        name: the function whose own operands these are, for `config.numpy_dtype_promotion`.

    Raises:
        TypePromotionError: there is no implicit promotion.
    """
    first = getattr(operands[0], "aval", None)
    if first is not None and (not inexact or dtypes.is_inexact(first.dtype)):
        found = _of_one_dtype(first, operands)
        if found is not None:
            return found
    check_dtype_promotion(name, operands)
    dtype, weak = result_type(*operands, return_weak_type_flag=True)
    if inexact:
        dtype = inexact_dtype_of(dtype)
    return [convert_operand(x, dtype, weak) for x in operands]


def _of_one_dtype(first: ShapedArray, operands: Sequence[Any]) -> list[Any] | None:
    """Operands that have the dtype of the first one, or yield to it; None where there are others."""
    found = []
    for x in operands:
        aval = getattr(x, "aval", None)
        if aval is None:
            if yielding_scalar(first, type(x)) is None:
                return None
            x = scalar_maker(first.dtype, first.weak_type)(x)
        elif aval.dtype is not first.dtype:
            return None
        found.append(x)
    return found


def broadcast_operands(*operands: Any, name: str = "") -> list[Any]:
    """Arrays in one shape, except that those of rank 0 stay: elementwise primitives mix them with any shape.

    Args:
        operands: the arrays.
        name: the operation; with a name the message shows it and the operands.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    shapes = tuple([x.aval.shape for x in operands])
    try:
        found = _spread(shapes)
    except ValueError:
        if not name:
            raise
        shown = " and ".join(x.aval.str_short() for x in operands)
        raise ValueError(f"{name}: Incompatible shapes for broadcasting: operands {shown}") from None
    if not found:
        return list(operands)
    if config.numpy_rank_promotion != "allow":
        check_rank_promotion(name, shapes)
    return [
        x if params is None else broadcast_in_dim_p.bind(x, **params) for x, params in zip(operands, found, strict=True)
    ]


@_memoised
def _spread(shapes: Sequence[tuple[int, ...]]) -> list[dict[str, Any] | None]:
    """Return the parameters of `broadcast_in_dim` that give operands one shape, None for an operand that stays.

    Empty if all of them stay.
    """
    if len({shape for shape in shapes if shape}) <= 1:
        return []
    shape = broadcast_shapes(*filter(None, shapes))
    return [
        None if own in ((), shape) else {"shape": shape, "broadcast_dimensions": tuple(range(len(shape)))[-len(own) :]}
        for own in shapes
    ]


for _memo in (_maker, _targets, _spread):
    clears_cache(_memo.cache_clear)


def check_dtype_promotion(name: str, operands: Iterable[Any]) -> None:
    """Do what `config.numpy_dtype_promotion` says of operands of several dtypes.

    Args:
        name: the function whose operands these are; nothing is done if library code calls it.
        operands: what `as_operand` gives.

    Raises:
        TypePromotionError: the dtypes differ, and the setting is "strict".
    """
    if name and config.numpy_dtype_promotion == "strict":
        check_strict_promotion(_names_of(name), [dtype_and_weak_type(x) for x in operands])


def check_rank_promotion(name: str, shapes: Iterable[Sequence[int]]) -> None:
    """Do what `config.numpy_rank_promotion` says of shapes that are to broadcast together; scalars always may.

    Args:
        name: the function whose operands have these shapes; nothing is done if library code calls it.
        shapes: the shapes.

    Raises:
        ValueError: the ranks differ, and the setting is "raise".
    """
    mode = config.numpy_rank_promotion
    if mode == "allow" or len({len(shape) for shape in shapes if len(shape)}) < 2:
        return
    called = called_as(*_names_of(name))
    if not called:
        return
    shown = " and ".join(str(tuple(shape)) for shape in sorted(map(tuple, shapes), key=len))
    text = f"{called}: shapes {shown} differ in rank, and numpy_rank_promotion is {mode!r}; "
    text += "add the axes with x[None, :] or corejax.numpy.expand_dims"
    if mode == "raise":
        raise ValueError(text)
    warn_user(text)


def promote_operands(*operands: Any, inexact: bool = False, name: str = "") -> list[Any]:
    """Operands in one dtype and one shape (or of rank 0), as NumPy's functions take them.

    Args:
        operands: what `as_operand` gives: arrays, tracers and Python scalars.
        inexact: whether integers and booleans become floating.
        name: the operation, for the message of shapes that do not fit.

    Raises:
        TypePromotionError: there is no implicit promotion.
        ValueError: the shapes do not broadcast together.
    """
    return broadcast_operands(*promote_dtypes(*operands, inexact=inexact, name=name), name=name)


# By these names and those in `NUMPY_NAMES`, too, users call what checks operands: operations by a sign, functions by
# another one that hands on its operands.
_OTHER_NAMES = {
    **{"div": "truediv", "//": "floordiv floor_divide divmod", "vectorize": "vectorized"},
    **{"%": "mod remainder divmod", "<<": "lshift", ">>": "rshift", "isclose": "allclose"},
    **{"searchsorted": "digitize", "where": "select", "maximum": "clip", "minimum": "clip"},
}


def _names_of(operation: str) -> tuple[str, ...]:
    density = operation.replace(".log", ".")  # `norm.pdf` has its operands checked by `norm.logpdf`
    others = _OTHER_NAMES.get(operation, "").split()
    return (operation, density, NUMPY_NAMES.get(operation, operation), *others)
