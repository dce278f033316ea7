"""Interval rules for primitives of other plugins: importing this package registers them."""

from __future__ import annotations

from corejax_interval_bounds.rules import (
    arithmetic,
    comparison,
    contraction,
    conversion,
    cumulative,
    elementwise,
    higher_order,
    indexing,
    loops,
    powers,
    reductions,
    trigonometry,
)

__all__ = [
    "arithmetic",
    "comparison",
    "contraction",
    "conversion",
    "cumulative",
    "elementwise",
    "higher_order",
    "indexing",
    "loops",
    "powers",
    "reductions",
    "trigonometry",
]
