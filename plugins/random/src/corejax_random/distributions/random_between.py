"""The primitive `random_between`, which maps numbers in [0, 1) to an interval.

    random_between : (f[*s], f[*t], f[*t]) -> f[*u]      operands broadcast

XLA fuses the product and the sum to one operation that rounds once. The impl rule computes them in a wider dtype and
rounds once as well, so that a key draws the same numbers in eager and in compiled programs.
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
    doc="Map numbers in [0, 1) to [low, high): max(low, unit * (high - low) + low).",
)
defbroadcasting(random_between_p)


@abstract_eval_rules.register(random_between_p)
def random_between_type(*avals: ShapedArray) -> ShapedArray:
    """Broadcast the shapes of the operands."""
    if len(avals) != 3 or not dtypes.is_float(avals[0].dtype) or len({a.dtype for a in avals}) > 1:
        got = ", ".join(a.str_short() for a in avals)
        raise TypeError(f"random_between takes three floating-point arrays of one dtype, got {got}")
    weak = all(a.weak_type for a in avals)
    return ShapedArray(lax.broadcast_shapes(*(a.shape for a in avals)), avals[0].dtype, weak)


# The dtype in which products and sums are computed, so that the result is rounded once.
_WIDER: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.float64): np.dtype(np.longdouble),
}


def _prepared(avals: Sequence[ShapedArray]) -> HostCode | None:
    """Return host code for scalar bounds, which computes the same as `scaled`."""
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
    """Map NumPy arrays; the caller silences floating-point warnings."""
    width, wider = high - low, _WIDER.get(unit.dtype, unit.dtype)
    moved = unit.astype(wider) * width.astype(wider) + low.astype(wider)
    return np.maximum(low, moved.astype(unit.dtype))
