"""Operands of an operation: accepted types, scalars that take an array's dtype, the common dtype and shape.

There are two contracts. `joined_operands` is that of `corejax.lax`: a scalar takes the arrays' dtype, axes of size 1
are broadcast, and the primitive refuses all other differences. `promote_operands` is NumPy's, for operators, methods
and `corejax.numpy`. Python scalars stay Python scalars until the common dtype is known.
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

_SCALAR_KINDS: tuple[type[Any], ...] = (bool, int, float, complex)
_WEAK_SCALARS = frozenset({int, float, complex})
_Maker = Callable[[Any], Array]
_memoised = functools.lru_cache(4096)


def as_operand(x: Any) -> Any:
    """Return an operand as an array, a tracer or a Python scalar; NotImplemented for anything else.

    Raises:
        TypeError: a NumPy array has a dtype that is not supported.
    """
    if type(x) in PYTHON_SCALARS or type(x) is Array or isinstance(x, Tracer):
        return x
    if isinstance(x, (np.ndarray, np.generic)) or array_method(type(x)):
        return asarray(x)
    if isinstance(x, int | float | complex):  # a subclass, such as an IntEnum
        return next(kind(x) for kind in _SCALAR_KINDS if isinstance(x, kind))
    return NotImplemented


def yielding_scalar(aval: ShapedArray, kind: type) -> _Maker | None:
    """Return how Python scalars of a type are converted to arrays of type `aval`, if the result keeps that type.

    Returns:
        The function that converts such a scalar to an array of the dtype and weak type of `aval`; None if promotion
        changes the type of the array, or if `kind` is no Python scalar type.
    """
    return _maker(aval, kind, config.default_dtype_bits) if kind in PYTHON_SCALARS and aval is not None else None


@_memoised
def _maker(aval: ShapedArray, kind: type, bits: int) -> _Maker | None:
    """Return the result of `yielding_scalar`, cached by its setting; cleared when `numpy_dtype_promotion` changes."""
    dtype, weak = result_type(aval, kind, return_weak_type_flag=True)
    if kind is bool and dtype != dtypes.bool_ and config.numpy_dtype_promotion == "strict":
        return None  # booleans are no weakly typed numbers: strict promotion refuses them
    yields = dtype == aval.dtype and weak == aval.weak_type
    return _cached_for_small(scalar_maker(dtype, weak)) if yields else None


config.changed.connect(_maker.cache_clear)


def _cached_for_small(make: _Maker) -> _Maker:
    """Cache `make` for small integers, of which programs have many. The arrays are only operands, never results."""
    small: dict[int, Array] = {}

    def cached(value: Any) -> Array:
        if type(value) is int and -16 <= value <= 16:
            scalar = small.get(value)
            if scalar is None:
                scalar = small[value] = make(value)
            return scalar
        return make(value)

    return cached


# -- the contract of corejax.lax -----------------------------------------------------------------------------------


def scalars_yield(*operands: Any) -> Sequence[Any]:
    """Return the operands, with weakly typed ones converted to the dtype of the others if promotion keeps that dtype.

    The decision is cached for each combination of types. Python scalars become constants of the common dtype.

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
    """Return the operands of an elementwise function, after `scalars_yield` and `ones_repeated`.

    Raises:
        TypeError, OverflowError: as `scalars_yield`.
    """
    try:
        x, y = operands
        aval, other = x.aval, y.aval
        if aval.dtype is other.dtype and not (aval.shape and other.shape):  # the frequent case first
            return operands
    except (ValueError, AttributeError):
        pass
    return ones_repeated(*scalars_yield(*operands))


def ones_repeated(*operands: Any) -> Sequence[Any]:
    """Broadcast arrays of one rank if only sizes of 1 differ; return others unchanged, for the primitive to check."""
    try:
        x, y = operands
        if not x.aval.shape or not y.aval.shape:  # the frequent case first
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
    """Return how a Python scalar becomes one of the strongly typed `aval`, or None if promotion changes that type."""
    if type(x) not in _WEAK_SCALARS or aval is None or aval.weak_type:
        return None
    return yielding_scalar(aval, type(x))


@_memoised
def _targets(types: Sequence[Any], bits: int, x64_compat: bool) -> list[ShapedArray | None]:
    """Return the scalar type to convert each operand to, or None to leave it; the settings are part of the key."""
    pairs = [(dtypes.scalar_dtype(t), True) if isinstance(t, type) else (t.dtype, t.weak_type) for t in types]
    untouched: list[ShapedArray | None] = [None] * len(pairs)
    try:
        dtype, weak = lattice_result_type(*pairs)
    except TypePromotionError:
        return untouched
    if any(not w and d != dtype for d, w in pairs):
        return untouched
    if all(isinstance(t, type) for t in types) and len({d for d, _ in pairs}) > 1:
        return untouched  # Python numbers of different kinds, without an array whose dtype they could take
    target = ShapedArray((), dtype, weak)
    return [target if isinstance(t, type) or d != dtype else None for t, (d, _) in zip(types, pairs, strict=True)]


def _converted(x: Any, dtype: np.dtype[Any], weak: bool) -> Any:
    if type(x) in PYTHON_SCALARS:
        return scalar_maker(dtype, weak)(x)
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak)


# -- NumPy's contract ----------------------------------------------------------------------------------------------


def convert_operand(x: Any, dtype: np.dtype[Any], weak: bool = False) -> Any:
    """Convert `x` to a dtype, weakly typed if `weak`; an array of the dtype is returned unchanged."""
    if type(x) not in PYTHON_SCALARS:
        x = as_array(x)
        if x.aval.dtype == dtype:
            return x
    return _converted(x, dtype, weak)


def promote_dtypes(*operands: Any, inexact: bool = False, name: str = "") -> list[Any]:
    """Convert operands to the dtype that the promotion lattice gives them; Python scalars become arrays.

    Args:
        operands: operands as `as_operand` returns them.
        inexact: whether integers and booleans become floating-point.
        name: the function that received the operands, for `config.numpy_dtype_promotion`.

    Raises:
        TypePromotionError: the lattice has no common dtype.
    """
    first = getattr(operands[0], "aval", None)
    if first is not None and (not inexact or dtypes.is_inexact(first.dtype)):
        converted = _of_one_dtype(first, operands)
        if converted is not None:
            return converted
    check_dtype_promotion(name, operands)
    dtype, weak = result_type(*operands, return_weak_type_flag=True)
    if inexact:
        dtype = inexact_dtype_of(dtype)
    return [convert_operand(x, dtype, weak) for x in operands]


def _of_one_dtype(first: ShapedArray, operands: Sequence[Any]) -> list[Any] | None:
    """Return operands if all have the dtype of the first one, or are scalars that take it; else None."""
    out = []
    for x in operands:
        aval = getattr(x, "aval", None)
        if aval is None:
            if yielding_scalar(first, type(x)) is None:
                return None
            x = scalar_maker(first.dtype, first.weak_type)(x)
        elif aval.dtype is not first.dtype:
            return None
        out.append(x)
    return out


def broadcast_operands(*operands: Any, name: str = "") -> list[Any]:
    """Broadcast arrays to one shape, except arrays of rank 0: elementwise primitives accept them beside any shape.

    Args:
        operands: the arrays.
        name: the operation; if it is not empty, the error message shows it with the operands.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    shapes = tuple([x.aval.shape for x in operands])
    try:
        broadcasts = _broadcast_params(shapes)
    except ValueError:
        if not name:
            raise
        shown = " and ".join(x.aval.str_short() for x in operands)
        raise ValueError(f"{name}: Incompatible shapes for broadcasting: operands {shown}") from None
    if not broadcasts:
        return list(operands)
    if config.numpy_rank_promotion != "allow":
        check_rank_promotion(name, shapes)
    return [
        x if params is None else broadcast_in_dim_p.bind(x, **params)
        for x, params in zip(operands, broadcasts, strict=True)
    ]


@_memoised
def _broadcast_params(shapes: Sequence[tuple[int, ...]]) -> list[dict[str, Any] | None]:
    """Return the params of `broadcast_in_dim` that give operands one shape, None for an operand that stays.

    The list is empty if all of them stay.
    """
    if len({shape for shape in shapes if shape}) <= 1:
        return []
    shape = broadcast_shapes(*filter(None, shapes))
    return [
        None if own in ((), shape) else {"shape": shape, "broadcast_dimensions": tuple(range(len(shape)))[-len(own) :]}
        for own in shapes
    ]


for _memo in (_maker, _targets, _broadcast_params):
    clears_cache(_memo.cache_clear)


def check_dtype_promotion(name: str, operands: Iterable[Any]) -> None:
    """Apply `config.numpy_dtype_promotion` to operands of several dtypes.

    Args:
        name: the function that received the operands; nothing happens if library code calls it.
        operands: operands as `as_operand` returns them.

    Raises:
        TypePromotionError: the dtypes differ, and the setting is "strict".
    """
    if name and config.numpy_dtype_promotion == "strict":
        check_strict_promotion(_names_of(name), [dtype_and_weak_type(x) for x in operands])


def check_rank_promotion(name: str, shapes: Iterable[Sequence[int]]) -> None:
    """Apply `config.numpy_rank_promotion` to shapes that are to broadcast together; scalars are always allowed.

    Args:
        name: the function that received operands of these shapes; nothing happens if library code calls it.
        shapes: the shapes to check.

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
    """Convert operands to one dtype and one shape (or rank 0), as NumPy's functions do.

    Args:
        operands: operands as `as_operand` returns them: arrays, tracers and Python scalars.
        inexact: whether integers and booleans become floating-point.
        name: the operation, for messages.

    Raises:
        TypePromotionError: the lattice has no common dtype.
        ValueError: the shapes do not broadcast together.
    """
    return broadcast_operands(*promote_dtypes(*operands, inexact=inexact, name=name), name=name)


# Users call functions that check operands by these names and those in `NUMPY_NAMES`: by an operator's sign, or by the
# name of another function that passes its operands on.
_OTHER_NAMES = {
    **{"div": "truediv", "//": "floordiv floor_divide divmod", "vectorize": "vectorized"},
    **{"%": "mod remainder divmod", "<<": "lshift", ">>": "rshift", "isclose": "allclose"},
    **{"searchsorted": "digitize", "where": "select", "maximum": "clip", "minimum": "clip"},
}


def _names_of(operation: str) -> tuple[str, ...]:
    density = operation.replace(".log", ".")  # `norm.logpdf` checks the operands of `norm.pdf`
    others = _OTHER_NAMES.get(operation, "").split()
    return (operation, density, NUMPY_NAMES.get(operation, operation), *others)
