"""`ppermute`, and what is made of it and of sums: `pshuffle`, `pbroadcast`; `axis_index`.

ppermute : a[s] -> a[s]: index `target` gets what index `source` has, for the pairs of `perm`, others get zeros
axis_index : -> i32[], which element this is
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, as_array, deflinear, dtypes, move_batch_axis
from corejax.extend.transforms import axis_size_of, collective_rules
from corejax.extend.types import as_dim
from corejax_lax_basic import lax
from corejax_parallel.collectives._axes import define, elementwise_along_others, names_of, on_leaves, size_of, take
from corejax_parallel.collectives.gathers import all_gather
from corejax_parallel.collectives.reductions import psum
from corejax_parallel.types.vma import vary

Pairs = tuple[tuple[int, int], ...]


def axis_size(axis_name: Any) -> int:
    """How many elements named axes have: a Python integer.

    Args:
        axis_name: a name that is bound, or a tuple of names.

    Raises:
        NameError: a name is not bound.
    """
    return size_of(names_of("axis_size", axis_name))


def axis_index(axis_name: Any) -> Any:
    """Which element along named axes this is: an int32.

    Args:
        axis_name: a name that is bound, or a tuple of names, the first one outermost.

    Raises:
        NameError: a name is not bound.
    """
    index: Any = None
    for name in names_of("axis_index", axis_name):
        here = vary(axis_index_p.bind(axis_name=name), (name,))
        index = here if index is None else lax.add(lax.mul(index, np.int32(axis_size_of(name))), here)
    return as_array(np.int32(0)) if index is None else index


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """What other elements along named axes have.

    Args:
        x: a pytree of arrays.
        axis_name: a name that is bound, or a tuple of names, the first one outermost.
        perm: pairs `(source, target)` of indices; no source and no target is there twice. A target that is not there
            gets zeros.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is no array, or `perm` is no sequence of pairs of integers.
        ValueError: an index is out of range, or a source or target is there twice.
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
            raise ValueError(
                f"{what}: the {which} {twice[0]} is there {indices.count(twice[0])} times, in {list(pairs)}"
            )
    return pairs


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """What other elements along a named axis have: index i gets that of index `perm[i]`.

    Args:
        x: a pytree of arrays.
        axis_name: a name that is bound, or a tuple of names, the first one outermost.
        perm: each index once.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is no array, or `perm` has no integers.
        ValueError: `perm` has not each index once.
    """
    names = names_of("pshuffle", axis_name)
    size = size_of(names)
    sources = [as_dim(i) for i in perm]
    if sorted(sources) != list(range(size)):
        raise ValueError(f"pshuffle: perm has each index of the axes {names}, 0 to {size - 1}, once, got {sources}")
    return ppermute(x, names, list(zip(sources, range(size), strict=True)))


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """What one element along named axes has, for all.

    Args:
        x: a pytree of arrays.
        axis_name: a name that is bound, or a tuple of names, the first one outermost.
        source: the index of that element.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is no array.
        ValueError: there is no such index.
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
    """Over several axes of which one is the first of `x`: gathered along the others, and chosen from.

    Which indices along the others this is, is known when it runs only: so sources are looked up in tables, with a row
    for each of these and a column for each index along `this`.
    """
    rest = tuple([n for n in names if n != this])
    sizes = [axis_size if n == this else axis_size_of(n) for n in names]
    together = int(np.prod(sizes)) // axis_size

    def rows_and_columns(flat: np.ndarray) -> np.ndarray:
        """Numbers by index along all axes, as a table."""
        table = flat.reshape(sizes)
        return np.moveaxis(table, names.index(this), -1).reshape(together, axis_size)

    number = np.empty(together * axis_size, dtype=np.int32)  # of an element, in the table
    number[rows_and_columns(np.arange(number.size)).reshape(-1)] = np.arange(number.size)
    sources, gets = np.zeros(number.size, dtype=np.int32), np.zeros(number.size, dtype=bool)
    for source, target in perm:
        sources[target], gets[target] = number[source], True
    row = axis_index(rest)
    chosen = lax.dynamic_index_in_dim(as_array(rows_and_columns(sources)), row, 0, keepdims=False)
    everything = all_gather(x, rest)
    found = lax.reshape(everything, (number.size, *x.shape[1:])).at[chosen].get(mode="clip")
    real = lax.dynamic_index_in_dim(as_array(rows_and_columns(gets)), row, 0, keepdims=False)
    return lax.select(lax.broadcast_in_dim(real, x.shape, (0,)), found, lax.zeros_like_array(found))


@collective_rules.register(axis_index_p)
def _index_over_axis(this: Any, axis_size: int, vals: Any, dims: Any, *, axis_name: Any) -> tuple[Any, int]:
    return lax.iota(np.int32, axis_size), 0


for _primitive in (ppermute_p, axis_index_p):
    elementwise_along_others(_primitive)
