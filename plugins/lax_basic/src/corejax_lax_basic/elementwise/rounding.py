"""Rounding to integers and neighbouring floating-point numbers: round, nextafter.

round : f[*s] -> f[*s]        nextafter : (f[*s], f[*s]) -> f[*s]
"""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, defvectorized, defzero, impl_rules
from corejax.extend.programs import register_param_type
from corejax.extend.speed import HostCode
from corejax_lax_basic import _speed
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS, through_float32
from corejax_lax_basic._base.type_rules import FLOAT, check_kind
from corejax_lax_basic.elementwise._family import binary, bind_joined

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["RoundingMethod", "round", "round_p"]

# Names that derivatives use before their rows define them, declared for type checkers.
nextafter_p: Primitive

# -- round ---------------------------------------------------------------------------------------------------------


@register_param_type
class RoundingMethod(enum.IntEnum):
    """The direction in which `round` takes a number halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Round to the nearest integer, in the dtype of `x`; floating-point.

    StableHLO `round_nearest_afz` or `round_nearest_even`, by the method.

    Args:
        x: floating-point array.
        rounding_method: the direction for halfway values: 0.5 becomes 1 by `AWAY_FROM_ZERO`, 0 by `TO_NEAREST_EVEN`.

    Returns:
        Array of the dtype and weak type of `x`. Zeros have the sign of `x`. The derivative is zero.

    Raises:
        TypeError: the dtype is not floating-point.
        ValueError: `rounding_method` is no `RoundingMethod`.
    """
    return round_p.bind(x, rounding_method=_canonical_method(rounding_method))


def _canonical_method(method: Any) -> RoundingMethod:
    try:
        return RoundingMethod(method)
    except ValueError:
        known = " or ".join(f"RoundingMethod.{m.name}" for m in RoundingMethod)
        raise ValueError(f"round: `rounding_method` has to be {known}, got {method!r}") from None


@through_float32  # some narrow formats have no -0.0
def _round_impl(x: Any, *, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    return np.trunc(x + np.copysign(_below_half(x.dtype), x))  # zeros keep the sign of `x` as well


@functools.cache
def _below_half(dtype: np.dtype[Any]) -> Any:
    """Return the largest number below 1/2: a sum with it reaches the next integer only from halfway on."""
    return np.nextafter(dtype.type(0.5), dtype.type(0))


def _round_prepared(avals: Avals, *, rounding_method: RoundingMethod) -> Any:
    [x] = avals
    if x.dtype in NARROW_FLOATS or not x.shape:
        return None
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.rint
    lines = "{out} = {copysign}({half}, {0})\n{add}({0}, {out}, {out})\n{trunc}({out}, {out})"
    half = np.asarray(_below_half(x.dtype))
    return HostCode(lines, copysign=np.copysign, add=np.add, trunc=np.trunc, half=half)


@takes("round", 1)
def _round_abstract_eval(x: ShapedArray, *, rounding_method: RoundingMethod) -> ShapedArray:
    check_kind("round", x, FLOAT)
    return x


round_p = Primitive("round", abstract_eval=_round_abstract_eval, tags=("elementwise", "exact"), doc=round.__doc__)
impl_rules.register(round_p, _round_impl, prepared=_round_prepared, large=_speed.elementwise("round"))
defzero(round_p)
defvectorized(round_p)

# -- nextafter -----------------------------------------------------------------------------------------------------


def _nextafter(x: Any, y: Any) -> Any:
    out = np.nextafter(x, y)
    return out if x.dtype.itemsize > 2 else np.where(x == y, y, out)  # NumPy returns the first of two equal zeros


nextafter, nextafter_p = binary(
    "nextafter", _nextafter, FLOAT, None,
    defzero,
    """Return the next number of the dtype after `x1` in the direction of `x2`; floating-point.

    The result is `x2` if they are equal, and NaN if either is NaN. The derivative is zero.
    """,
    lambda x1, x2: bind_joined(nextafter_p, x1, x2),
)  # fmt: skip
