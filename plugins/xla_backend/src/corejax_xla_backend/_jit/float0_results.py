"""`float0` results (tangents of integers): no program can return them, so the output tree holds them instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import FlatFunction, tree
from corejax.extend.transforms import float0


@tree.register_pytree_node_class
class _Float0:
    """A pytree node without leaves that stands for a `float0` result; unflattening makes the array."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def tree_flatten(self) -> tuple[tuple[()], tuple[int, ...]]:
        """Return no leaves, and the shape."""
        return (), self.shape

    @staticmethod
    def tree_unflatten(shape: tuple[int, ...], _: Any) -> Any:
        """Return the `float0` array of the shape."""
        return np.zeros(shape, float0)


class ProgramFunction(FlatFunction):
    """A function of leaves that returns only values that a program can return."""

    def __call__(self, *leaves: Any) -> list[Any]:
        """Return the results without `float0` arrays, which become nodes of `out_tree`."""
        outs = super().__call__(*leaves)
        if any(_is_float0(x) for x in outs):
            outs = [_Float0(x.shape) if _is_float0(x) else x for x in outs]
            outs, self.out_tree = tree.tree_flatten(tree.tree_unflatten(self.out_tree, outs))
        return outs


def _is_float0(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == float0
