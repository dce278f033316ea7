"""Products of BCOO arrays. They are gathers, small products and sums by index, and so are their derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax import lax
from corejax_sparse._base import JAXSparse, over_batch, sequence_of
from corejax_sparse.indices import columns, gathered, in_bounds, masked, matches, or_padding, selected
from corejax_sparse.layout import full_batches, sum_duplicates, update_layout
from corejax_sparse.structure import transpose

Numbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Numbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Any:
    """Contract a BCOO array with an array or another BCOO array, as `lax.dot_general`.

    Args:
        lhs: an array or a BCOO array.
        rhs: an array or a BCOO array.
        dimension_numbers: contracted dimensions of both, and batch dimensions of both. Batch dimensions of a BCOO array
            are among the `n_batch` that it has.
        precision: the precision of products of the stored elements.
        preferred_element_type: the dtype of the result.
        out_sharding: not supported; must be None.

    Returns:
        An array; a BCOO array if both operands are.

    Raises:
        TypeError: the sizes of the dimensions differ.
        NotImplementedError: a batch dimension of the product is a sparse or dense one of a BCOO array.
    """
    (lc, rc), (lb, rb) = dimension_numbers
    numbers = tuple(sequence_of(list(axes), "bcoo_dot_general: dimensions") for axes in (lc, rc, lb, rb))
    lc, rc, lb, rb = _checked(lhs, rhs, *numbers)
    if out_sharding is not None:
        raise NotImplementedError("bcoo_dot_general: out_sharding")
    left, right = isinstance(lhs, JAXSparse), isinstance(rhs, JAXSparse)
    if not left and not right:
        return lax.dot_general(lhs, rhs, ((lc, rc), (lb, rb)), precision, preferred_element_type)
    if left and right:
        return _of_two(lhs, rhs, lc, rc, lb, rb, preferred_element_type)
    if left:
        return _by_dense(lhs, jnp.asarray(rhs), lc, rc, lb, rb, precision, preferred_element_type)
    out = _by_dense(rhs, jnp.asarray(lhs), rc, lc, rb, lb, precision, preferred_element_type)
    free = rhs.ndim - len(rc) - len(rb)
    order = [*range(len(rb) + free, out.ndim), *range(len(rb), len(rb) + free)]
    return jnp.transpose(out, [*range(len(rb)), *order])


def _checked(lhs: Any, rhs: Any, lc: Any, rc: Any, lb: Any, rb: Any) -> tuple[tuple[int, ...], ...]:
    for name, x, axes in (("lhs", lhs, (*lc, *lb)), ("rhs", rhs, (*rc, *rb))):
        ndim = jnp.ndim(x) if not isinstance(x, JAXSparse) else x.ndim
        if len(set(axes)) < len(axes) or any(not 0 <= axis < ndim for axis in axes):
            raise TypeError(f"bcoo_dot_general: {axes} are no dimensions of {name}, which has {ndim}")
    shapes = [x.shape if isinstance(x, JAXSparse) else jnp.shape(x) for x in (lhs, rhs)]
    for what, left, right in (("contracted", lc, rc), ("batch", lb, rb)):
        sizes = [tuple(shape[axis] for axis in axes) for shape, axes in zip(shapes, (left, right), strict=True)]
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"bcoo_dot_general: {what} dimensions must have the same sizes, got {sizes[0]} of lhs {shapes[0]} and "
                f"{sizes[1]} of rhs {shapes[1]}"
            )
    return lc, rc, lb, rb


def _by_dense(mat: Any, dense: Any, mc: Any, dc: Any, mb: Any, db: Any, precision: Any, dtype: Any) -> Any:
    """Contract a BCOO array with a dense one; dimensions of the result are batch, those of `mat`, those of `dense`."""
    n_batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    if any(axis >= n_batch for axis in mb):
        raise NotImplementedError(
            f"bcoo_dot_general: batch dimensions {mb} of the product are not among the {n_batch} batch dimensions of "
            f"{mat!r}; bcoo_update_layout(n_batch={max(mb) + 1}) makes them so"
        )
    if dtype is None:
        dtype = jnp.result_type(mat.data, dense)
    # Batch dimensions: those of the product, those that are summed afterwards, and those that `dense` lacks.
    of_dense = dict(zip((*mb, *mc), (*db, *dc), strict=True))
    summed = [axis for axis in mc if axis < n_batch]
    free = [axis for axis in range(n_batch) if axis not in of_dense]
    order = [*mb, *summed, *free]
    sparse = [axis for axis in mc if n_batch <= axis < last]
    inner = [axis for axis in mc if axis >= last]
    data = mat.data.transpose(*order, *range(n_batch, mat.data.ndim))
    indices = mat.indices.transpose(*order, n_batch, n_batch + 1)
    shared = [of_dense[axis] for axis in (*mb, *summed)]
    others = [d for d in range(dense.ndim) if d not in of_dense.values()]
    dense = dense.transpose(*shared, *(of_dense[axis] for axis in (*sparse, *inner)), *others)
    dense = dense.reshape(*dense.shape[: len(shared)], *(1 for _ in free), *dense.shape[len(shared) :])
    used = [axis - n_batch for axis in sparse]
    kept = [k for k in range(mat.n_sparse) if k not in used]
    sizes = tuple(mat.sparse_shape[k] for k in kept)
    contracted = [axis - last + 1 for axis in inner]

    def one(data: Any, indices: Any, dense: Any) -> Any:
        nse = indices.shape[0]
        rows = gathered(dense, columns(selected(indices, used))) if used else dense
        of_rows = [d + bool(used) for d in range(len(contracted))]
        each = (0,) if used else ()
        values = lax.dot_general(*_promoted(data, rows), ((contracted, of_rows), (each, each)), precision, dtype)
        keep = in_bounds(indices, mat.sparse_shape)
        if not sizes:
            return masked(keep, values).sum(0, dtype=values.dtype)
        place = or_padding(keep, selected(indices, kept), sizes)
        out = jnp.zeros((*sizes, *values.shape[1:]), values.dtype)
        return out.at[columns(place)].add(values, mode="drop") if nse else out

    out = over_batch(one, n_batch, data, indices, dense)
    return out.sum(tuple(range(len(mb), len(mb) + len(summed))), dtype=out.dtype) if summed else out


def _promoted(x: Any, y: Any) -> tuple[Any, Any]:
    dtype = jnp.result_type(x, y)
    return x.astype(dtype), y.astype(dtype)


# -- two sparse arrays ---------------------------------------------------------------------------------------------


def _of_two(lhs: Any, rhs: Any, lc: Any, rc: Any, lb: Any, rb: Any, dtype: Any) -> Any:
    """Contract two BCOO arrays: every stored element with every other."""
    for name, mat, batch, contracted in (("lhs", lhs, lb, lc), ("rhs", rhs, rb, rc)):
        if mat.n_dense:
            raise NotImplementedError(f"bcoo_dot_general of two sparse arrays: {name}, {mat!r}, has dense dimensions")
        if any(axis >= mat.n_batch for axis in batch) or any(axis < mat.n_batch for axis in contracted):
            raise NotImplementedError(
                f"bcoo_dot_general of two sparse arrays: of {name}, {mat!r}, batch dimensions {batch} "
                f"must be batch dimensions of the array, and contracted ones {contracted} sparse"
            )
    shared = len(lb)
    more = [[axis for axis in range(m.n_batch) if axis not in axes] for m, axes in ((lhs, lb), (rhs, rb))]
    parts = []
    for mat, batch, free, before in ((lhs, lb, more[0], 0), (rhs, rb, more[1], len(more[0]))):
        after = len(more[1]) if mat is lhs and before == 0 else 0
        for x in (mat.data, mat.indices):
            moved = x.transpose(*batch, *free, *range(mat.n_batch, x.ndim))
            sizes = moved.shape
            shape = (
                *sizes[:shared],
                *(1,) * before,
                *sizes[shared : mat.n_batch],
                *(1,) * after,
                *sizes[mat.n_batch :],
            )
            parts.append(moved.reshape(shape))
    used = [[axis - mat.n_batch for axis in axes] for mat, axes in ((lhs, lc), (rhs, rc))]
    kept = [[k for k in range(mat.n_sparse) if k not in u] for mat, u in zip((lhs, rhs), used, strict=True)]
    sizes = (*(lhs.sparse_shape[k] for k in kept[0]), *(rhs.sparse_shape[k] for k in kept[1]))
    result = jnp.result_type(lhs.data, rhs.data) if dtype is None else dtype

    def one(ld: Any, li: Any, rd: Any, ri: Any) -> tuple[Any, Any]:
        keep = matches(selected(li, used[0]), selected(ri, used[1]))
        keep = keep & in_bounds(li, lhs.sparse_shape)[:, None] & in_bounds(ri, rhs.sparse_shape)[None, :]
        values = jnp.where(keep, ld[:, None].astype(result) * rd[None, :].astype(result), jnp.zeros((), result))
        index = jnp.result_type(li, ri)
        shape = keep.shape
        left = jnp.broadcast_to(selected(li, kept[0])[:, None], (*shape, len(kept[0]))).astype(index)
        right = jnp.broadcast_to(selected(ri, kept[1])[None], (*shape, len(kept[1]))).astype(index)
        count = shape[0] * shape[1]
        places = jnp.concatenate([left, right], 2).reshape(count, len(sizes))
        return values.reshape(count), or_padding(keep.reshape(count), places, sizes)

    n_batch = shared + len(more[0]) + len(more[1])
    data, indices = over_batch(one, n_batch, *parts)
    out = lhs.with_parts(data, indices, sizes, indices_sorted=False, unique_indices=False)
    # The order of dimensions is that of `lax.dot_general`: the batch of `rhs` comes after all of `lhs`.
    if more[1] and kept[0]:
        out = update_layout(out, n_batch=shared + len(more[0]))
        first = shared + len(more[0])
        batch, left = (
            range(first, first + len(more[1])),
            range(first + len(more[1]), first + len(more[1]) + len(kept[0])),
        )
        rest = range(first + len(more[1]) + len(kept[0]), out.ndim)
        out = transpose(out, permutation=[*range(first), *left, *batch, *rest])
    if math.prod(out.sparse_shape) < out.nse:
        out = sum_duplicates(out, nse=math.prod(out.sparse_shape), remove_zeros=False)
    return out


def sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Numbers) -> Any:
    """Compute the elements of a product of dense arrays at indices, and no others.

    Args:
        A: a dense array.
        B: a dense array.
        indices: the places in the result, `[*batch, nse, n_sparse]`.
        dimension_numbers: as for `lax.dot_general`.

    Returns:
        The elements, `[*batch, nse, *dense]`.
    """
    (lc, rc), (lb, rb) = dimension_numbers
    lhs, rhs, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    lc, rc, lb, rb = _checked(lhs, rhs, *map(tuple, (lc, rc, lb, rb)))
    left = [d for d in range(lhs.ndim) if d not in (*lc, *lb)]
    right = [d for d in range(rhs.ndim) if d not in (*rc, *rb)]
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    if n_batch != len(lb) or n_sparse != len(left) + len(right):
        from_dense = lax.dot_general(lhs, rhs, ((lc, rc), (lb, rb)))
        return over_batch(lambda indices, x: gathered(x, columns(indices)), n_batch, indices, from_dense)
    lhs, rhs = lhs.transpose(*lb, *left, *lc), rhs.transpose(*rb, *right, *rc)

    def one(indices: Any, lhs: Any, rhs: Any) -> Any:
        found = columns(indices)
        rows = [
            gathered(x, at) if at else jnp.broadcast_to(x, (indices.shape[0], *x.shape))
            for x, at in ((lhs, found[: len(left)]), (rhs, found[len(left) :]))
        ]
        axes = range(1, 1 + len(lc))
        return lax.dot_general(*_promoted(*rows), ((axes, axes), ((0,), (0,))))

    return over_batch(one, n_batch, indices, lhs, rhs)


# -- elementwise ---------------------------------------------------------------------------------------------------


def multiply_dense(sp_mat: Any, v: Any) -> Any:
    """Multiply a BCOO array by a dense one that broadcasts to its shape, elementwise; the result is sparse."""
    mat, dense = sp_mat, jnp.asarray(v)
    if dense.ndim == 0:
        return mat.with_parts(mat.data * dense, mat.indices)
    shape = (1,) * (mat.ndim - dense.ndim) + dense.shape
    if dense.ndim > mat.ndim or any(a not in (1, b) for a, b in zip(shape, mat.shape, strict=True)):
        raise NotImplementedError(
            f"bcoo_multiply_dense: the dense array's shape {dense.shape} does not broadcast to that of {mat!r}; "
            "bcoo_broadcast_in_dim broadcasts the sparse array"
        )

    def one(data: Any, indices: Any, dense: Any) -> Any:
        if not indices.shape[1]:
            return data * dense
        at = tuple(
            c if n > 1 else jnp.where(c == 0, 0, c) if size == 1 else jnp.zeros_like(c)
            for c, n, size in zip(columns(indices), dense.shape, mat.sparse_shape, strict=False)
        )
        return data * gathered(dense, at)

    data = over_batch(one, mat.n_batch, mat.data, mat.indices, dense.reshape(shape))
    return mat.with_parts(data, mat.indices)


def multiply_sparse(lhs: Any, rhs: Any) -> Any:
    """Multiply two BCOO arrays with shapes that broadcast, elementwise."""
    if lhs.ndim != rhs.ndim or lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            f"bcoo_multiply_sparse: {lhs!r} and {rhs!r} must have "
            "the same numbers of dimensions and of dense dimensions"
        )
    try:
        np.broadcast_shapes(lhs.shape, rhs.shape)
    except ValueError:
        raise ValueError(f"bcoo_multiply_sparse: the shapes {lhs.shape} and {rhs.shape} do not broadcast") from None
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (update_layout(mat, n_batch=n_batch) for mat in (lhs, rhs))
    sizes = np.broadcast_shapes(lhs.sparse_shape, rhs.sparse_shape)
    both = [k for k, (a, b) in enumerate(zip(lhs.sparse_shape, rhs.sparse_shape, strict=True)) if a == b]
    if len(both) == len(sizes):  # at each place of `lhs`: its element times the sum of those of `rhs`

        def at_left(ld: Any, li: Any, rd: Any, ri: Any) -> Any:
            keep = matches(li, ri) & in_bounds(li, sizes)[:, None] & in_bounds(ri, sizes)[None, :]
            return ld * masked(keep, jnp.broadcast_to(rd, (*keep.shape, *rd.shape[1:]))).sum(1, dtype=rd.dtype)

        data = over_batch(at_left, n_batch, lhs.data, lhs.indices, rhs.data, rhs.indices)
        return lhs.with_parts(data, full_batches(lhs)[1])

    def every_pair(ld: Any, li: Any, rd: Any, ri: Any) -> tuple[Any, Any]:
        keep = matches(selected(li, both), selected(ri, both)) & in_bounds(li, lhs.sparse_shape)[:, None]
        keep = (keep & in_bounds(ri, rhs.sparse_shape)[None, :]).reshape(-1)
        places = [
            (jnp.repeat(li[:, k], ri.shape[0]) if k in both or b == 1 else jnp.tile(ri[:, k], li.shape[0]))
            for k, b in enumerate(rhs.sparse_shape)
        ]
        values = (ld[:, None] * rd[None, :]).reshape(keep.size, *jnp.broadcast_shapes(ld.shape[1:], rd.shape[1:]))
        return masked(keep, values), or_padding(keep, jnp.stack(places, 1), sizes)

    data, indices = over_batch(every_pair, n_batch, lhs.data, lhs.indices, rhs.data, rhs.indices)
    return lhs.with_parts(data, indices, sizes, indices_sorted=False, unique_indices=False)


def add(lhs: Any, rhs: Any) -> Any:
    """Add two BCOO arrays of one shape: the result stores the elements of both."""
    if lhs.shape != rhs.shape:
        raise NotImplementedError(f"addition of sparse arrays of different shapes, {lhs.shape} and {rhs.shape}")
    if lhs.indices is rhs.indices and lhs.n_batch == rhs.n_batch:
        return lhs.with_parts(lhs.data + rhs.data, lhs.indices)
    n_batch, n_dense = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
    mats = [update_layout(mat, n_batch=n_batch, n_dense=n_dense) for mat in (lhs, rhs)]
    parts = [full_batches(mat) for mat in mats]
    data, indices = (jnp.concatenate(xs, n_batch) for xs in zip(*parts, strict=True))
    return mats[0].with_parts(data, indices, indices_sorted=False, unique_indices=False)
