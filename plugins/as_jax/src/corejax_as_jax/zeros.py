"""`Zero`, JAX's symbolic zero tangent or cotangent; corejax's rules use None instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import ShapedArray, UndefPrimal, get_aval, tree
from corejax.extend.transforms import float0


class Zero:
    """A zero tangent or cotangent of type `aval`."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        """Return the zero tangent of a value."""
        return Zero(get_aval(x).to_tangent_aval())

    def instantiate(self) -> Any:
        """Return an array of zeros."""
        return zeros_like_aval(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


tree.register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
tree.register_pytree_node(UndefPrimal, lambda x: ((), x.aval), lambda aval, _: UndefPrimal(aval))


def zeros_like_aval(aval: ShapedArray) -> Any:
    """Return zeros of a type; for the tangents of integers a NumPy array of float0."""
    return np.zeros(aval.shape, float0) if aval.dtype == float0 else jnp.zeros(aval.shape, aval.dtype)


def instantiate_zeros(x: Any) -> Any:
    """Return an array of zeros for a `Zero`; return any other value unchanged."""
    return zeros_like_aval(x.aval) if type(x) is Zero else x


def add_tangents(x: Any, y: Any) -> Any:
    """Add two tangents, either of which may be a `Zero`."""
    return y if type(x) is Zero else x if type(y) is Zero else jnp.add(x, y)


def none_if_zero(x: Any) -> Any:
    """Return None for a `Zero`; return any other value unchanged."""
    return None if type(x) is Zero else x


def zeros_if_none(tangents: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Replace each None by the `Zero` of the tangent type."""
    return [Zero(aval.to_tangent_aval()) if t is None else t for t, aval in zip(tangents, avals, strict=True)]
