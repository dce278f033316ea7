"""Primitives that rules look up when they run, because the primitives' modules import the module of the rule.

Broadcasting is transposed to a sum, and a sum to broadcasting. One of the two has to find the other by name.
"""

from __future__ import annotations

import importlib
from typing import Any

from corejax.extend import Primitive, primitives


def _lookup(name: str, module: str) -> Primitive:
    """Return a primitive; its module is imported if it is not registered yet."""
    if name not in primitives:
        importlib.import_module(f"corejax_lax_basic.{module}")
    return primitives[name]


def reduce_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """Sum over axes."""
    return _lookup("reduce_sum", "reductions.reduce").bind(x, axes=axes)


def sub(x: Any, y: Any) -> Any:
    """Subtract operands of one type."""
    return _lookup("sub", "elementwise.arithmetic").bind(x, y)


def select_n(which: Any, *cases: Any) -> Any:
    """Choose each element from the case that `which` names."""
    return _lookup("select_n", "elementwise.select").bind(which, *cases)


def sort(*operands: Any) -> list[Any]:
    """Sort vectors by the first of them."""
    sort = _lookup("sort", "sorting.sort")
    out: list[Any] = sort.bind(*operands, dimension=0, is_stable=True, num_keys=1)
    return out


def scatter_add(x: Any, indices: Any, updates: Any, dimension_numbers: Any, **params: Any) -> Any:
    """Add updates to windows of an array."""
    scatter = _lookup("scatter-add", "indexing.scatter_combining")
    return scatter.bind(x, indices, updates, dimension_numbers=dimension_numbers, **params)
