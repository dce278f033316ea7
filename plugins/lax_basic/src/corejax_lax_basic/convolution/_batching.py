"""Batches of convolutions: the batch becomes part of the batch axis, of the features, or a group."""

from __future__ import annotations

from typing import Any

from corejax.extend import get_aval
from corejax_lax_basic.shape.rearranging import moveaxis, reshape


def merged(x: Any, source: int, axis: int, groups: int = 1) -> Any:
    """One axis made part of another.

    Args:
        x: the array.
        source: the axis that goes, of size B.
        axis: what it becomes part of, counted without `source`; of size `groups` times n.
        groups: how many groups `axis` has.

    Returns:
        The array whose `axis` has size `groups` times B times n, in this order.
    """
    x = moveaxis(x, source, 0)
    size, *shape = get_aval(x).shape
    rest = shape[axis] // groups if shape[axis] else 0
    if groups == 1:
        x = moveaxis(x, 0, axis)
    else:
        x = reshape(x, (size, *shape[:axis], groups, rest, *shape[axis + 1 :]))
        x = moveaxis(x, 0, axis + 1)
    shape[axis] = groups * size * rest
    return reshape(x, shape)


def parted(x: Any, axis: int, size: int, groups: int = 1) -> tuple[Any, int]:
    """What `merged` joined taken apart: the array with an axis of size B before `axis`, and where that is."""
    shape = get_aval(x).shape
    rest = shape[axis] // (groups * size)
    if groups == 1:
        return reshape(x, (*shape[:axis], size, rest, *shape[axis + 1 :])), axis
    x = reshape(x, (*shape[:axis], groups, size, rest, *shape[axis + 1 :]))
    x = moveaxis(x, axis + 1, axis)
    return reshape(x, (*shape[:axis], size, groups * rest, *shape[axis + 1 :])), axis
