"""Primitives that a rule binds although their modules import the rule's own: looked up when the rule runs.

Broadcasting is transposed to a sum, and a sum to broadcasting. One of the two has to find the other by name.
"""

from __future__ import annotations

from typing import Any

from corejax.extend import primitives


def reduce_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """Sum over axes."""
    return primitives["reduce_sum"].bind(x, axes=axes)


def sub(x: Any, y: Any) -> Any:
    """`x - y` of operands of one type."""
    return primitives["sub"].bind(x, y)


def select_n(which: Any, *cases: Any) -> Any:
    """For each element, the case that `which` names."""
    return primitives["select_n"].bind(which, *cases)


def scatter_add(x: Any, indices: Any, updates: Any, dimension_numbers: Any, **params: Any) -> Any:
    """Updates added to windows of an array."""
    return primitives["scatter-add"].bind(x, indices, updates, dimension_numbers=dimension_numbers, **params)
