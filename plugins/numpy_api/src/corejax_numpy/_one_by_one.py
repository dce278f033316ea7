"""The methods of ufuncs for arbitrary functions: applied element by element, in loops of the program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import corejax
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axes, canonical_dtype
from corejax_numpy.elementwise import where as choose
from corejax_numpy.manipulation import moveaxis, ravel

Function = Callable[..., Any]


def _result_dtype(f: Any, *xs: Any) -> Any:
    return corejax.eval_shape(f, *(corejax.ShapeDtypeStruct((), x.dtype) for x in xs)).dtype


def reduce_one_by_one(f: Any) -> Function:
    """Return an implementation of `f.reduce`, with the signature of the ufuncs' fast implementations."""

    def reduce(a: Any, *, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        if isinstance(axis, tuple) and len(axis) != 1 and f.identity is None:
            raise NotImplementedError(
                f"{f.__name__}.reduce: axis must be one axis, or None for all, because without an identity the order "
                f"of elements matters; got {axis}"
            )
        dtype = _result_dtype(f, a, a) if dtype is None else canonical_dtype(dtype)
        axes = canonical_axes(axis, a.ndim)
        mask = None if where is None else lax.broadcast_to(array_argument(f.__name__, where), a.shape)
        kept = tuple(1 if i in axes else d for i, d in enumerate(a.shape))
        if axis is None:
            a, mask = ravel(a), None if mask is None else ravel(mask)
        else:
            a, mask = _in_rows(a, axes), None if mask is None else _in_rows(mask, axes)
        out = _fold(f, lax.convert_element_type(a, dtype), f.identity if initial is None else initial, mask)
        return lax.reshape(out, kept) if keepdims else out

    return reduce


def _in_rows(a: Any, axes: tuple[int, ...]) -> Any:
    """Merge the axes into one, the first."""
    rest = tuple(d for i, d in enumerate(a.shape) if i not in axes)
    return lax.reshape(moveaxis(a, axes, tuple(range(len(axes)))), (math.prod(a.shape[i] for i in axes), *rest))


def _fold(f: Any, a: Any, initial: Any, mask: Any) -> Any:
    """Combine rows from the first to the last."""
    if not len(a) and initial is None:
        raise ValueError(f"{f.__name__}.reduce: there are no elements, and the function has no identity")
    start = 0
    if initial is None:
        start, carry = 1, a[0]
    else:
        carry = lax.broadcast_to(lax.convert_element_type(array_argument(f.__name__, initial), a.dtype), a.shape[1:])

    if not len(a):
        return carry

    def body(i: Any, carry: Any) -> Any:
        combined = lax.convert_element_type(f(carry, _row(a, i)), a.dtype)
        return combined if mask is None else choose(_row(mask, i), combined, carry)

    return lax.fori_loop(start, len(a), body, carry)


def _row(a: Any, i: Any) -> Any:
    return lax.dynamic_index_in_dim(a, i, 0, keepdims=False)


def accumulate_one_by_one(f: Any, a: Any, axis: int, dtype: Any) -> Any:
    """Implement `f.accumulate` along an axis counted from the front."""
    dtype = _result_dtype(f, a, a) if dtype is None else canonical_dtype(dtype)
    rows = moveaxis(lax.convert_element_type(a, dtype), axis, 0)
    if not len(rows):
        return moveaxis(rows, 0, axis)

    def step(carry: Any, row: Any) -> Any:
        out = lax.convert_element_type(f(carry, row), dtype)
        return out, out

    _, rest = lax.scan(step, rows[0], rows[1:])
    return moveaxis(lax.concatenate([rows[:1], rest], 0), 0, axis)


def reduceat_one_by_one(f: Any, a: Any, indices: Any, dtype: Any) -> Any:
    """Implement `f.reduceat` along the first axis: combine each row into all segments that contain it."""
    a = a if dtype is None else lax.convert_element_type(a, canonical_dtype(dtype))
    ends = lax.concatenate([indices[1:], lax.full((1,), len(a), indices.dtype)], 0)
    shape = (len(indices),) + (1,) * (a.ndim - 1)
    first, last = lax.reshape(indices, shape), lax.reshape(ends, shape)

    def body(i: Any, out: Any) -> Any:
        i = lax.convert_element_type(i, indices.dtype)
        inside = lax.bitwise_and(lax.gt(i, first), lax.lt(i, last))
        row = lax.broadcast_to(lax.expand_dims(_row(a, i), (0,)), out.shape)
        return choose(inside, lax.convert_element_type(f(out, row), out.dtype), out)

    return lax.fori_loop(0, len(a), body, a[indices])


def at_one_by_one(f: Any, a: Any, indices: Any, *args: Any) -> Any:
    """Implement `f.at`: update the indexed elements one after another."""
    dtype = _result_dtype(f, a, *args)
    a = lax.convert_element_type(a, dtype)
    indices = indices if isinstance(indices, tuple) else (indices,)
    arrays = {i: array_argument(f"{f.__name__}.at", x, 1) for i, x in enumerate(indices) if not _is_slice(x)}
    shape = lax.broadcast_shapes(*(x.shape for x in arrays.values())) if arrays else ()
    if not shape:
        return a.at[indices].set(f(a[indices], *args))
    count = math.prod(shape)
    flat = [lax.reshape(lax.broadcast_to(x, shape), (count,)) for x in arrays.values()]
    updates = [_of_each_index(x, shape) for x in args]

    def step(a: Any, row: Any) -> tuple[Any, None]:
        values, arguments = row
        at = iter(values)
        index = tuple(x if _is_slice(x) else next(at) for x in indices)
        new = f(a[index], *arguments)
        return a.at[index].set(lax.convert_element_type(new, dtype)), None

    return lax.scan(step, a, (flat, updates), length=count)[0]


def _of_each_index(x: Any, shape: tuple[int, ...]) -> Any:
    x = lax.broadcast_to(x, (*shape, *x.shape[len(shape) :]))
    return lax.reshape(x, (math.prod(shape), *x.shape[len(shape) :]))


def _is_slice(x: Any) -> bool:
    return isinstance(x, slice) or x is None or x is Ellipsis
