"""Operands as the public functions of several operands take them: scalars yield to arrays.

A Python scalar, or a weakly typed array, is converted to the dtype of the other operands where the promotion
lattice says that it yields to it. Nothing else is promoted: what is left to disagree is refused by the primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, clears_cache, config, dtypes, get_aval
from corejax_lax_basic.conversion.convert import convert_element_type_p

_PYTHON_SCALARS = frozenset({int, float, complex})
_MEMO_LIMIT = 4096
_decisions: dict[Any, list[ShapedArray | None]] = {}
# (strongly typed aval, type of a Python scalar that yields to it) -> the scalar's type.
_scalars: dict[Any, ShapedArray] = {}
for _memo in (_decisions, _scalars):
    clears_cache(_memo.clear)


def promoted(*operands: Any) -> Sequence[Any]:
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
        target = _scalars.get((getattr(x, "aval", None), type(y)))
        if target is not None:
            return x, Array(np.array(y, target.dtype), target)
        target = _scalars.get((getattr(y, "aval", None), type(x)))
        if target is not None:
            return Array(np.array(x, target.dtype), target), y
    return _promoted(operands)


def _promoted(operands: Sequence[Any]) -> list[Any]:
    types = tuple([type(x) if type(x) in _PYTHON_SCALARS else get_aval(x) for x in operands])
    key = (types, config.default_dtype_bits, config.x64_compat)
    targets = _decisions.get(key)
    if targets is None:
        if len(_decisions) >= _MEMO_LIMIT:
            _decisions.clear()
            _scalars.clear()
        targets = _decisions[key] = _decide(types)
        _remember_scalar(types, targets)
    return [x if target is None else _converted(x, target) for x, target in zip(operands, targets, strict=True)]


def _remember_scalar(types: Sequence[Any], targets: Sequence[ShapedArray | None]) -> None:
    """Take the short cut next time, where a Python scalar yields to one strongly typed array."""
    if len(types) != 2:
        return
    for aval, scalar, target in ((types[0], types[1], targets[1]), (types[1], types[0], targets[0])):
        if isinstance(scalar, type) and isinstance(aval, ShapedArray) and target is not None and not target.weak_type:
            _scalars[aval, scalar] = target


def _decide(types: Sequence[Any]) -> list[ShapedArray | None]:
    """For each operand the scalar type to convert to, or None to leave it."""
    pairs = [(dtypes.scalar_dtype(t), True) if isinstance(t, type) else (t.dtype, t.weak_type) for t in types]
    untouched = [None] * len(pairs)
    try:
        dtype, weak = dtypes.lattice_result_type(*pairs)
    except dtypes.TypePromotionError:
        return untouched
    if any(not w and d != dtype for d, w in pairs):
        return untouched
    target = ShapedArray((), dtype, weak)
    return [target if isinstance(t, type) or d != dtype else None for t, (d, _) in zip(types, pairs, strict=True)]


def _converted(x: Any, target: ShapedArray) -> Any:
    if type(x) in _PYTHON_SCALARS:
        return Array(np.array(x, target.dtype), target)
    return convert_element_type_p.bind(x, new_dtype=target.dtype, weak_type=target.weak_type)
