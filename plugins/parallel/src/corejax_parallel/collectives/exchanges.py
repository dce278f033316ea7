"""`ppermute`, `pshuffle`, `pbroadcast`, `axis_index` and `axis_size`.

ppermute : a[s] -> a[s]; element `target` gets the value of element `source` for the pairs of `perm`, others get zeros
axis_index : -> i32[], the index of the element
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, as_array, deflinear, dtypes, jvp_rules, move_batch_axis, nondifferentiable
from corejax.extend.transforms import axis_size_of, collective_rules
from corejax.extend.types import as_dim
from corejax_lax_basic import lax
from corejax_parallel.collectives._axes import define, elementwise_along_others, names_of, on_leaves, size_of, take
from corejax_parallel.collectives.gathers import all_gather
from corejax_parallel.collectives.reductions import psum
from corejax_parallel.types.vma import vary

Pairs = tuple[tuple[int, int], ...]


def axis_size(axis_name: Any) -> int:
    """Return the number of elements along named axes, as a Python integer.

    Args:
        axis_name: a bound name, or a tuple of names.

    Raises:
        NameError: a name is not bound.
    """
    return size_of(names_of("axis_size", axis_name))


def axis_index(axis_name: Any) -> Any:
    """Return the index of the element along named axes, as an int32.

    Args:
        axis_name: a bound name, or a tuple of names, of which the first is the outermost.

    Raises:
        NameError: a name is not bound.
    """
    index: Any = None
    for name in names_of("axis_index", axis_name):
        here = vary(axis_index_p.bind(axis_name=name), (name,))
        index = here if index is None else lax.add(lax.mul(index, np.int32(axis_size_of(name))), here)
    return as_array(np.int32(0)) if index is None else index


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Send the values of elements along named axes to other elements.

    Args:
        x: a pytree of arrays.
        axis_name: a bound name, or a tuple of names, of which the first is the outermost.
        perm: pairs `(source, target)` of indices, without duplicate sources or targets. Elements that are not a target
            get zeros.

    Returns:
        A pytree of arrays of the same shapes and dtypes.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is not an array, or `perm` is not a sequence of pairs of integers.
        ValueError: an index is out of range, or a source or target occurs twice.
    """
    names = names_of("ppermute", axis_name)
    pairs = _pairs("ppermute", perm, names)
    return on_leaves("ppermute", lambda leaf: ppermute_p.bind(vary(leaf, names), axis_name=names, perm=pairs), x)


def _pairs(what: str, perm: Any, names: Sequence[Any]) -> Pairs:
    try:
        pairs = tuple([(as_dim(source), as_dim(target)) for source, target in perm])
    except (TypeError, ValueError):
        raise TypeError(f"{what}: perm is a sequence of pairs (source, target) of integers, got {perm!r}") from None
    size = size_of(names)
    for which, indices in (("source", [s for s, _ in pairs]), ("target", [t for _, t in pairs])):
        wrong = [i for i in indices if not 0 <= i < size]
        if wrong:
            raise ValueError(f"{what}: the {which} {wrong[0]} is no index of the axes {tuple(names)} of size {size}")
        twice = [i for i in indices if indices.count(i) > 1]
        if twice:
            raise ValueError(f"{what}: the {which} {twice[0]} occurs {indices.count(twice[0])} times, in {list(pairs)}")
    return pairs


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Permute the values of elements along named axes: element i gets the value of element `perm[i]`.

    Args:
        x: a pytree of arrays.
        axis_name: a bound name, or a tuple of names, of which the first is the outermost.
        perm: a permutation of all indices.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is not an array, or `perm` has entries that are not integers.
        ValueError: `perm` is not a permutation of all indices.
    """
    names = names_of("pshuffle", axis_name)
    size = size_of(names)
    sources = [as_dim(i) for i in perm]
    if sorted(sources) != list(range(size)):
        raise ValueError(f"pshuffle: perm has each index of the axes {names}, 0 to {size - 1}, once, got {sources}")
    return ppermute(x, names, list(zip(sources, range(size), strict=True)))


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Send the value of one element along named axes to all elements.

    Args:
        x: a pytree of arrays.
        axis_name: a bound name, or a tuple of names, of which the first is the outermost.
        source: index of the element.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is not an array.
        ValueError: the index is out of range.
    """
    names = names_of("pbroadcast", axis_name)
    size = size_of(names)
    if not 0 <= as_dim(source) < size:
        raise ValueError(f"pbroadcast: source={source} is no index of the axes {names} of size {size}")
    here = lax.eq(axis_index(names), np.int32(source))

    def one(leaf: Any) -> Any:
        wide = lax.convert_element_type(leaf, np.int32) if dtypes.is_bool(leaf.dtype) else leaf
        total = psum(lax.select(lax.broadcast(here, leaf.shape), wide, lax.zeros_like_array(wide)), names)
        return vary(lax.convert_element_type(total, leaf.dtype), names)

    return on_leaves("pbroadcast", one, x)


# -- primitives and rules ----------------------------------------------------------------------------------------


ppermute_p = define("ppermute", lambda x, *, axis_name, perm: x)
axis_index_p = define("axis_index", lambda *, axis_name: ShapedArray((), np.dtype(np.int32)))
jvp_rules.register(axis_index_p, nondifferentiable("it has no operands"))
deflinear(
    ppermute_p,
    lambda ct, x, axis_name, perm: [ppermute_p.bind(ct, axis_name=axis_name, perm=tuple([(t, s) for s, t in perm]))],
)


@collective_rules.register(ppermute_p)
def _permute_over_axis(
    this: Any, axis_size: int, vals: Any, dims: Any, *, axis_name: tuple[Any, ...], perm: Pairs
) -> tuple[Any, int]:
    x = move_batch_axis(axis_size, dims[0], 0, vals[0])
    if len(axis_name) > 1:
        return _permute_together(this, axis_size, x, axis_name, perm), 0
    sources = {target: source for source, target in perm}
    order = np.asarray([sources.get(t, 0) for t in range(axis_size)], dtype=np.int64)
    out = take(x, order)
    if len(perm) < axis_size:
        gets = np.isin(np.arange(axis_size), list(sources))
        out = lax.select(lax.broadcast_in_dim(gets, x.shape, (0,)), out, lax.zeros_like_array(out))
    return out, 0


def _permute_together(this: Any, axis_size: int, x: Any, names: tuple[Any, ...], perm: Pairs) -> Any:
    """Permute over several axes, of which `this` is the first axis of `x`.

    The values are gathered along the other axes, and each element chooses its source. The indices along the other axes
    are known only at run time, so the sources are looked up in tables, with a row for each combination of these indices
    and a column for each index along `this`.
    """
    rest = tuple([n for n in names if n != this])
    sizes = [axis_size if n == this else axis_size_of(n) for n in names]
    together = int(np.prod(sizes)) // axis_size

    def rows_and_columns(flat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Convert a vector, with an entry for each element along all axes, to a table."""
        table = flat.reshape(sizes)
        return np.moveaxis(table, names.index(this), -1).reshape(together, axis_size)

    number = np.empty(together * axis_size, dtype=np.int32)  # the position of each element in the table
    number[rows_and_columns(np.arange(number.size)).reshape(-1)] = np.arange(number.size)
    sources, is_target = np.zeros(number.size, dtype=np.int32), np.zeros(number.size, dtype=bool)
    for source, target in perm:
        sources[target], is_target[target] = number[source], True
    row = axis_index(rest)
    chosen = lax.dynamic_index_in_dim(as_array(rows_and_columns(sources)), row, 0, keepdims=False)
    gathered = all_gather(x, rest)
    out = lax.reshape(gathered, (number.size, *x.shape[1:])).at[chosen].get(mode="clip")
    receives = lax.dynamic_index_in_dim(as_array(rows_and_columns(is_target)), row, 0, keepdims=False)
    return lax.select(lax.broadcast_in_dim(receives, x.shape, (0,)), out, lax.zeros_like_array(out))


@collective_rules.register(axis_index_p)
def _index_over_axis(this: Any, axis_size: int, vals: Any, dims: Any, *, axis_name: Any) -> tuple[Any, int]:
    return lax.iota(np.int32, axis_size), 0


for _primitive in (ppermute_p, axis_index_p):
    elementwise_along_others(_primitive)
