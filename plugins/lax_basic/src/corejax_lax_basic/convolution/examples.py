"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Example
from corejax_lax_basic._base.samples import C64, F32, I32, typed
from corejax_lax_basic.convolution.dimension_numbers import ConvDimensionNumbers

_GROUPS = {"extremes": "for float64, XLA on CPUs multiplies elements of other groups by 0, which spreads their NaNs"}
_CHANNELS_LAST = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


def _conv(lhs: Any, rhs: Any, dtype: Any = F32, numbers: Any = None, **more: Any) -> Example:
    nd = len(lhs) - 2
    standard = ConvDimensionNumbers(*(tuple(range(nd + 2)),) * 3)
    params: dict[str, Any] = {
        "window_strides": (1,) * nd,
        "padding": ((0, 0),) * nd,
        "lhs_dilation": (1,) * nd,
        "rhs_dilation": (1,) * nd,
        "dimension_numbers": numbers or standard,
        "feature_group_count": 1,
        "batch_group_count": 1,
        "preferred_element_type": dtype,
    }
    skip = _GROUPS if "feature_group_count" in more else {}
    return Example((typed(*lhs, dtype=dtype), typed(*rhs, dtype=dtype)), {**params, **more}, skip=skip)


NAMED: dict[str, Callable[[], list[Example]]] = {
    "conv_general_dilated": lambda: [
        _conv((2, 3, 5), (4, 3, 2), window_strides=(2,), padding=((1, 0),), rhs_dilation=(2,)),
        _conv((1, 4, 3, 2), (2, 2, 1, 2), numbers=_CHANNELS_LAST, lhs_dilation=(2, 1), padding=((1, -1), (0, 2)),
              feature_group_count=2),
        _conv((4, 2, 4), (2, 2, 3), C64, batch_group_count=2),
        _conv((2, 2, 4), (3, 2, 2), I32),
    ],
}  # fmt: skip
