"""Variations of an author's examples: other dtypes, sizes, orders of axes, shapes and integers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from corejax.extend import ClosedJaxpr, Example, Primitive, ShapedArray
from corejax_testing.arrays import is_inexact
from corejax_testing.calls import Call, accepts, runs

DTYPES = tuple(
    np.dtype(t)
    for t in (
        *(np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.complex128),
        *(np.int8, np.int32, np.int64, np.uint8, np.uint32, np.bool_),
    )
)
ALIKE = 3  # the length of equally long axes, and of batches
SHAPES = ((), (1,), (3,), (0,), (2, 3), (1, 2), (2, 0), (2, 1, 3))


def main_dtype(example: Example) -> np.dtype[Any] | None:
    """Return the dtype to vary: that of the first inexact operand, else that of the first operand."""
    dtypes = [np.dtype(x.dtype) for x in example.operands]
    return next((d for d in dtypes if is_inexact(d)), dtypes[0] if dtypes else None)


def with_dtype(example: Example, dtype: np.dtype[Any]) -> Example:
    """Return the example with its main dtype replaced."""
    main = main_dtype(example)
    operands = [_converted(x, dtype) if np.dtype(x.dtype) == main else x for x in example.operands]
    return replace(example, operands=tuple(operands))


def _converted(operand: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(operand, ShapedArray):
        return operand.update(dtype=dtype)
    with np.errstate(over="ignore"):  # a large float32 number of an example overflows in float16
        return np.asarray(operand).astype(dtype)


def in_other_dtypes(primitive: Primitive, example: Example) -> Iterator[Example]:
    """Yield the example in every other dtype that abstract eval accepts (raises no TypeError or ValueError)."""
    main = main_dtype(example)
    for dtype in DTYPES if main is not None else ():
        if dtype != main:
            other = with_dtype(example, dtype)
            if takes(primitive, other):
                yield other


def in_other_sizes(primitive: Primitive, example: Example) -> Iterator[Example]:
    """Yield the example with axes of other lengths, for primitives that are not elementwise.

    Axes of length 1 stay. The variations are: all other axes one longer (even lengths become odd, equal lengths stay
    equal); all of one length, that of batches; all of length 1; the longest axes empty; and as many different lengths
    as impl accepts. Variations that abstract eval refuses are left out. Primitives with programs have no variations,
    since their programs fix the lengths.
    """
    if not _has_free_lengths(primitive, example):
        return
    lengths = {n for x in example.operands for n in x.shape if n > 1}
    equal = [dict.fromkeys(lengths, ALIKE)] if lengths != {ALIKE} else []
    for new in ({n: n + 1 for n in lengths}, *equal, dict.fromkeys(lengths, 1), {max(lengths): 0}):
        operands = [x.update(shape=tuple(new.get(n, n) for n in x.shape)) for x in example.operands]
        other = replace(example, operands=tuple(operands))
        if 0 in new.values():  # the reference function need not accept empty arrays
            other = replace(other, reference=None)
        if takes(primitive, other):
            yield other
    distinct = with_distinct_lengths(
        example, lambda operands: takes(primitive, replace(example, operands=tuple(operands)), runs)
    )
    if distinct is not None:
        yield replace(example, operands=tuple(distinct))


def in_other_orders(primitive: Primitive, example: Example) -> Iterator[Example]:
    """Yield the example with the integers of a tuple parameter in another order, on axes of equal lengths.

    If a rule confuses an order of axes with its inverse, or the axes of two operands, wrong shapes hide the wrong
    numbers unless all axes have the same length. A permutation becomes a cycle of at least three axes, which differs
    from its inverse, and then a swap of two axes, which is its own inverse.
    """
    if not _has_free_lengths(primitive, example):
        return
    alike = [x.update(shape=tuple(ALIKE if n > 1 else n for n in x.shape)) for x in example.operands]
    for name, value in example.params.items():
        operands, others = alike, list(dict.fromkeys(_reordered(value)))
        if others and set(value) == set(range(alike[0].ndim)):
            rank = max(alike[0].ndim, 3)
            operands = [x.update(shape=(ALIKE,) * rank) for x in alike]
            others = [(*range(1, rank), 0), (1, 0, *range(2, rank))]
        for other in others:
            params = {**example.params, name: other}
            found = replace(example, operands=tuple(operands), params=params, reference=None)
            if takes(primitive, found, runs):
                yield found


def _reordered(value: Any) -> Iterator[Any]:
    """Yield a tuple with one of the tuples of integers in it rotated by one place."""
    if not isinstance(value, tuple):
        return
    if len(value) > 1 and all(type(x) is int for x in value):
        yield (*value[1:], value[0])
    for k, item in enumerate(value):
        yield from ((*value[:k], other, *value[k + 1 :]) for other in _reordered(item))


def at_length(primitive: Primitive, example: Example, length: int = 1300, most: int = 16384) -> Iterator[Example]:
    """Yield the example with all axes of one length extended to `length`, the longest first.

    Variations of more than `most` elements are left out. A length of 1300 exceeds the range of 8 bits, and the blocks
    in which implementations process arrays.
    """
    if "higher_order" in primitive.tags or not _has_free_shapes(example):
        return
    for old in sorted({n for x in example.operands for n in x.shape if n > 1}, reverse=True):
        operands = [x.update(shape=tuple(length if n == old else n for n in x.shape)) for x in example.operands]
        other = replace(example, operands=tuple(operands))
        if sum(math.prod(x.shape) for x in operands) <= most and takes(primitive, other):
            yield other


def _has_free_lengths(primitive: Primitive, example: Example) -> bool:
    """Return whether an axis may have another length; the programs of higher-order primitives fix the lengths."""
    return _has_free_shapes(example) and {"elementwise", "higher_order"}.isdisjoint(primitive.tags)


def _has_free_shapes(example: Example) -> bool:
    free = all(isinstance(x, ShapedArray) for x in example.operands)
    return free and any(n > 1 for x in example.operands for n in x.shape)


def takes(primitive: Primitive, example: Example, also: Callable[[Call], bool] = lambda call: True) -> bool:
    """Return whether abstract eval accepts a variation of an example, and the predicate `also` holds for it."""
    try:
        call = Call.of(primitive, example, np.random.default_rng(0))
        return accepts(call) and also(call)
    except Exception:  # parameters may contain the example's lengths, so an error for other lengths is no mistake
        return False


def shapes_of(primitive: Primitive, examples: list[Example]) -> st.SearchStrategy[Example] | None:
    """Return a strategy for examples of many shapes and scalars, smaller ones first; None if not elementwise."""
    free = [e for e in examples if e.operands and all(isinstance(x, ShapedArray) for x in e.operands)]
    if "elementwise" not in primitive.tags or not free:
        return None

    @st.composite
    def strategy(draw: Any) -> Example:
        example = draw(st.sampled_from(free))
        shape = draw(st.sampled_from(SHAPES))
        scalars = [draw(st.booleans()) for _ in example.operands] if len(example.operands) > 1 else [False]
        operands = [
            x.update(shape=() if scalar else shape) for x, scalar in zip(example.operands, scalars, strict=True)
        ]
        varied: Example = replace(example, operands=tuple(operands))
        return varied

    return strategy()


def at_small_integers(call: Call) -> Iterator[Call]:
    """Yield the application, and then those of `integer_settings` with integers of at most 2 in absolute value."""
    yield call
    yield from (there for there in integer_settings(call) if all(abs(int(x)) < 3 for x in _changed(there, call)))


def _changed(there: Call, call: Call) -> Iterator[Any]:
    for x, y in zip(there.values, call.values, strict=True):
        if x is not y and x.dtype.kind in "iu" and x.ndim == 0:
            yield x


def integer_settings(call: Call) -> list[Call]:
    """Return the application with other numbers in its integer operands: branch indices, starts, counts of turns.

    If the author gave a type or a scalar, all elements of an operand are set to small and negative numbers, to numbers
    at and beyond the operands' lengths, and to the limits of the dtype. For primitives with programs, in which loops
    might be long, only operands given as types vary: over small numbers, the index of each branch, and the one after
    the last. If the author gave arrays, the numbers come from other examples of the same types and parameters.
    """
    if "elementwise" in call.primitive.tags:
        return []
    found = list(call.siblings())
    longest = max((n for x in call.values for n in x.shape), default=2)
    programs = "higher_order" in call.primitive.tags
    beyond = range(_branches(call) + 1) if programs else (longest - 1, longest, longest + 1, 100, -100)
    for i, (x, given) in enumerate(zip(call.values, call.example.operands, strict=True)):
        may_vary = isinstance(given, ShapedArray) or (x.ndim == 0 and not programs)
        if not may_vary or x.dtype.kind not in "iu" or not x.size:
            continue
        info = np.iinfo(x.dtype)
        for number in dict.fromkeys((0, 1, 2, -1, *beyond, *(() if programs else (info.min, info.max)))):
            if info.min <= number <= info.max:
                there = call.at([np.full_like(x, number) if k == i else y for k, y in enumerate(call.values)])
                found += [there] if accepts(there) else []
    return found


def in_other_index_dtypes(call: Call) -> Iterator[Call]:
    """Yield the application with its index operands in other dtypes, at numbers that wrong casts change.

    A rule may read unsigned integers as signed ones, or 64 bits as 32. The numbers become negative or small then.
    """
    main = main_dtype(call.example)
    indices = [i for i, x in enumerate(call.values) if x.dtype.kind in "iu" and x.dtype != main and x.ndim == 0]
    for dtype in map(np.dtype, (np.uint8, np.uint32, np.int64) if indices else ()):
        values = [x.astype(dtype) if i in indices else x for i, x in enumerate(call.values)]
        example = replace(call.example, reference=None, operands=tuple(
            ShapedArray(x.shape, dtype) if i in indices else x for i, x in enumerate(call.example.operands)
        ))  # fmt: skip
        typed = replace(call, example=example).at(values)
        for number in (1, 2**31 + 1 if dtype.itemsize == 4 else 2**32 + 1 if dtype.itemsize == 8 else 2**7 + 1):
            there = typed.at([np.full_like(x, number) if i in indices else x for i, x in enumerate(values)])
            if accepts(there) and runs(there):
                yield there


def _branches(call: Call) -> int:
    """Return the length of the longest tuple of programs among the parameters."""
    tuples = [v for v in call.params.values() if isinstance(v, tuple) and all(isinstance(p, ClosedJaxpr) for p in v)]
    return max(map(len, tuples), default=0)


# -- axes of different lengths, which expose a wrong order of axes -----------------------------------------------------

Axis = tuple[int, int]  # operand, axis of it
Lengths = dict[Axis, int]


def with_distinct_lengths(example: Example, takes: Callable[[Sequence[ShapedArray]], bool]) -> list[ShapedArray] | None:
    """Return the operands with as many different lengths of axes as are accepted; axes of length 1 stay.

    Args:
        example: an application with types for all operands.
        takes: returns whether operands of the given types are accepted.

    Returns:
        The operands, or None if no more lengths can differ.
    """
    lengths: Lengths = {(i, k): n for i, x in enumerate(example.operands) for k, n in enumerate(x.shape) if n > 1}
    if len(set(lengths.values())) == len(lengths):
        return None
    groups, rest = [], list(lengths)
    while rest:
        group = next((g for g in _together(rest, lengths) if takes(_operands(example, _longer(lengths, g)))), None)
        rest = [axis for axis in rest if axis != rest[0] and axis not in (group or ())]
        if group is not None:
            groups.append(group)
    chosen, used = dict(lengths), set(lengths.values()) - {lengths[a] for g in groups for a in g}
    for group in sorted(groups, key=lambda g: lengths[g[0]]):
        length = next(n for n in itertools.count(lengths[group[0]]) if n not in used)
        used.add(length)
        chosen.update(dict.fromkeys(group, length))
    operands = _operands(example, chosen)
    return operands if chosen != lengths and takes(operands) else None


def _together(rest: Sequence[Axis], lengths: Lengths) -> Iterator[tuple[Axis, ...]]:
    """Yield groups of axes to lengthen: the first alone, with each other axis of its length, with all of them."""
    first = rest[0]
    same = [axis for axis in rest[1:] if lengths[axis] == lengths[first]]
    yield (first,)
    yield from ((first, other) for other in same)
    if len(same) > 1:
        yield (first, *same)


def _longer(lengths: Lengths, group: Sequence[Axis]) -> Lengths:
    return {axis: n + (axis in group) for axis, n in lengths.items()}


def _operands(example: Example, lengths: Lengths) -> list[ShapedArray]:
    return [
        x.update(shape=tuple(lengths.get((i, k), n) for k, n in enumerate(x.shape)))
        for i, x in enumerate(example.operands)
    ]
