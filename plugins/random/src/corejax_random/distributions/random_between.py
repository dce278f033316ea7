"""`random_between`, the primitive: numbers of [0, 1) moved to an interval.

    random_between : (f[*s], f[*t], f[*t]) -> f[*u]      operands broadcast

Compiled, product and sum are one operation, which rounds once. So they are evaluated, and the same key gives the same
numbers wherever it is drawn with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import Primitive, ShapedArray, abstract_eval_rules, defbroadcasting, dtypes, impl_rules
from corejax.extend.speed import HostCode
from corejax_lax_basic import lax


def _body(unit: Any, low: Any, high: Any) -> Any:
    return jnp.maximum(low, unit * (high - low) + low)


random_between_p = Primitive(
    "random_between",
    decomposition=_body,
    doc="Numbers of [0, 1) moved to [low, high): max(low, unit * (high - low) + low).",
)
defbroadcasting(random_between_p)


@abstract_eval_rules.register(random_between_p)
def random_between_type(*avals: ShapedArray) -> ShapedArray:
    """What the shapes broadcast to."""
    if len(avals) != 3 or not dtypes.is_float(avals[0].dtype) or len({a.dtype for a in avals}) > 1:
        got = ", ".join(a.str_short() for a in avals)
        raise TypeError(f"random_between takes three floating-point arrays of one dtype, got {got}")
    weak = all(a.weak_type for a in avals)
    return ShapedArray(lax.broadcast_shapes(*(a.shape for a in avals)), avals[0].dtype, weak)


# What products and sums of a dtype are computed in, so that they are rounded once.
_WIDER = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.float64): np.dtype(np.longdouble)}


def _prepared(avals: Sequence[ShapedArray]) -> HostCode | None:
    """The same lines for two scalars as bounds."""
    unit, low, high = avals
    if low.shape or high.shape or unit.dtype not in _WIDER:
        return None
    moved = "({0}.astype({wider}) * {wide}({2} - {1}) + {wide}({1})).astype({dtype})"
    text = f"{{out}} = {{maximum}}({{1}}, {moved})"
    wider = _WIDER[unit.dtype]
    names = {"wider": wider, "wide": wider.type, "maximum": np.maximum, "dtype": unit.dtype}
    return HostCode(text, scalar=not unit.shape, **names)


@impl_rules.register(random_between_p, prepared=_prepared)
def scaled(unit: Any, low: Any, high: Any) -> Any:
    """Of NumPy arrays; floating-point warnings are for the caller to silence."""
    width, wider = high - low, _WIDER.get(unit.dtype, unit.dtype)
    moved = unit.astype(wider) * width.astype(wider) + low.astype(wider)
    return np.maximum(low, moved.astype(unit.dtype))
