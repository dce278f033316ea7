"""Primitives that a rule binds although their modules import the rule's own: looked up when the rule runs.

Broadcasting is transposed to a sum, and a sum to broadcasting. One of the two has to find the other by name.
"""

from __future__ import annotations

import importlib
from typing import Any

from corejax.extend import Primitive, primitives


def _found(name: str, module: str) -> Primitive:
    """The primitive, whose module is imported if nothing has needed it yet."""
    if name not in primitives:
        importlib.import_module(f"corejax_lax_basic.{module}")
    return primitives[name]


def reduce_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """Sum over axes."""
    return _found("reduce_sum", "reductions.reduce").bind(x, axes=axes)


def sub(x: Any, y: Any) -> Any:
    """`x - y` of operands of one type."""
    return _found("sub", "elementwise.arithmetic").bind(x, y)


def select_n(which: Any, *cases: Any) -> Any:
    """For each element, the case that `which` names."""
    return _found("select_n", "elementwise.select").bind(which, *cases)


def sort(*operands: Any) -> list[Any]:
    """Vectors sorted by the first of them."""
    return _found("sort", "sorting.sort").bind(*operands, dimension=0, is_stable=True, num_keys=1)  # type: ignore[no-any-return]


def scatter_add(x: Any, indices: Any, updates: Any, dimension_numbers: Any, **params: Any) -> Any:
    """Updates added to windows of an array."""
    scatter = _found("scatter-add", "indexing.scatter_combining")
    return scatter.bind(x, indices, updates, dimension_numbers=dimension_numbers, **params)
