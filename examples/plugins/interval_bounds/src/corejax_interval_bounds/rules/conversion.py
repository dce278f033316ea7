"""Conversions of dtype."""

from __future__ import annotations

from typing import Any

from corejax.extend import dtypes, get_aval
from corejax_interval_bounds.interpreter import interval_rules
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rules.common import constant, is_bool, is_float, is_nan, outward
from corejax_interval_bounds.rules.comparison import not_equal
from corejax_lax_basic import lax


@interval_rules.register(lax.convert_element_type_p)
def convert_interval(x: Bounds, *, new_dtype: Any, weak_type: bool) -> Bounds:
    """Convert both bounds, because conversions are increasing; to bool, compare with 0.

    Raises:
        TypeError: the new dtype is complex.
    """
    if dtypes.is_complex(new_dtype):
        raise TypeError(
            f"convert_element_type to {new_dtype}: complex numbers have no order, so they have no bounds; keep what is "
            "propagated real"
        )
    if dtypes.is_bool(new_dtype) and not is_bool(x):
        return not_equal(x, Bounds.point(constant(0, x.lower)))

    def converted(bound: Any) -> Any:
        return lax.convert_element_type_p.bind(bound, new_dtype=new_dtype, weak_type=weak_type)

    out = Bounds(converted(x.lower), converted(x.upper))
    # Integers have no NaN, so that an unknown value has the bounds of the dtype.
    if is_float(x) and dtypes.is_integer(new_dtype):
        unknown = lax.bitwise_or(is_nan(x.lower), is_nan(x.upper))
        info = dtypes.iinfo(new_dtype)
        lower = lax.select(unknown, constant(info.min, out.lower), out.lower)
        return Bounds(lower, lax.select(unknown, constant(info.max, out.upper), out.upper))
    return out if _is_exact(get_aval(x.lower).dtype, new_dtype) else outward(out, 1)


def _is_exact(old: Any, new: Any) -> bool:
    if not dtypes.is_float(new) or dtypes.is_bool(old):
        return True
    digits = dtypes.finfo(new).nmant + 1
    return bool((dtypes.finfo(old).nmant + 1 if dtypes.is_float(old) else dtypes.iinfo(old).bits) <= digits)
