"""Results that are tangents of integers: no program returns them, so they are in the structure of what it returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import FlatFunction, tree
from corejax.extend.transforms import float0


@tree.register_pytree_node_class
class _Float0:
    """In place of a `float0` array among results: a node without leaves, of which the structure makes the array."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def tree_flatten(self) -> tuple[tuple[()], tuple[int, ...]]:
        """No leaves, and the shape."""
        return (), self.shape

    @staticmethod
    def tree_unflatten(shape: tuple[int, ...], _: Any) -> Any:
        """The array itself."""
        return np.zeros(shape, float0)


class ProgramFunction(FlatFunction):
    """A function of leaves whose results are all values of a program."""

    def __call__(self, *leaves: Any) -> list[Any]:
        """Results but for `float0` arrays, which `out_tree` has in it."""
        outs = super().__call__(*leaves)
        if any(_is_float0(x) for x in outs):
            outs = [_Float0(x.shape) if _is_float0(x) else x for x in outs]
            outs, self.out_tree = tree.tree_flatten(tree.tree_unflatten(self.out_tree, outs))
        return outs


def _is_float0(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == float0
