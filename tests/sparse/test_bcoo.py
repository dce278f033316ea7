"""BCOO arrays beside jax.experimental.sparse and dense arrays: structure, sums, products, transformations."""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.experimental import sparse
from corejax.experimental.sparse import BCOO
from tests.sparse.samples import arrays, check, dense, few

jax = pytest.importorskip("jax")
js = pytest.importorskip("jax.experimental.sparse")

RNG = np.random.default_rng(0)


@few
@hypothesis.given(arrays())
def test_todense(pair: Any) -> None:
    ours, theirs = pair
    check(ours, theirs)
    check(corejax.jit(lambda m: m.todense())(ours), theirs)
    assert (ours.shape, ours.nse, ours.n_batch, ours.n_sparse, ours.n_dense) == (
        theirs.shape, theirs.nse, theirs.n_batch, theirs.n_sparse, theirs.n_dense,
    )  # fmt: skip


@few
@hypothesis.given(st.lists(st.integers(0, 4), max_size=4), st.data())
def test_fromdense(shape: list[int], data: Any) -> None:
    n_batch = data.draw(st.integers(0, len(shape)))
    n_dense = data.draw(st.integers(0, len(shape) - n_batch))
    x = dense(tuple(shape), seed=len(shape))
    ours, theirs = (m.fromdense(x, n_batch=n_batch, n_dense=n_dense) for m in (BCOO, js.BCOO))
    assert ours.nse == theirs.nse and ours.unique_indices and ours.indices_sorted
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.data, theirs.data)
    more = BCOO.fromdense(x, nse=ours.nse + 2, n_batch=n_batch, n_dense=n_dense)
    check(more, x)
    compiled = corejax.jit(lambda x: BCOO.fromdense(x, nse=ours.nse, n_batch=n_batch, n_dense=n_dense))
    check(compiled(x), x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float64", "bfloat16", "complex64"])
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray(dense((4, 5)), dtype)
    mat = BCOO.fromdense(x, index_dtype="int16")
    assert mat.dtype == x.dtype and mat.indices.dtype == "int16"
    np.testing.assert_array_equal(np.asarray(mat.todense()), np.asarray(x))
    np.testing.assert_array_equal(np.asarray(mat.T.todense()), np.asarray(x).T)
    theirs = js.BCOO.fromdense(np.asarray(x))
    twice = sparse.bcoo_concatenate([mat, mat], dimension=1).reshape(4, 2, 5)
    np.testing.assert_array_equal(np.asarray(twice.todense()[:, 1]), np.asarray(x))
    if dtype != "bool":
        out, wanted = mat @ x.T, theirs @ np.asarray(x).T
        assert out.dtype == ("float64" if dtype == "float64" else wanted.dtype)
        np.testing.assert_allclose(np.asarray(out, "complex64"), np.asarray(wanted, "complex64"), rtol=1e-2)


@few
@hypothesis.given(arrays(), st.randoms(use_true_random=False))
def test_transpose(pair: Any, random: Any) -> None:
    ours, theirs = pair
    kinds = np.split(np.arange(ours.ndim), [ours.n_batch, ours.n_batch + ours.n_sparse])
    permutation = [int(axis) for kind in kinds for axis in random.sample(list(kind), len(kind))]
    out = sparse.bcoo_transpose(ours, permutation=permutation)
    check(out, np.transpose(np.asarray(theirs.todense()), permutation))
    assert out.n_batch == ours.n_batch and out.n_dense == ours.n_dense


@few
@hypothesis.given(arrays(), st.data())
def test_reduce_sum(pair: Any, data: Any) -> None:
    ours, theirs = pair
    axes = data.draw(st.sets(st.integers(0, max(ours.ndim - 1, 0)))) if ours.ndim else set()
    out = sparse.bcoo_reduce_sum(ours, axes=sorted(axes))
    check(out, np.asarray(theirs.todense()).sum(tuple(axes)))
    check(corejax.jit(lambda m: sparse.bcoo_reduce_sum(m, axes=sorted(axes)))(ours), out)


@few
@hypothesis.given(arrays(), st.data())
def test_slices(pair: Any, data: Any) -> None:
    ours, theirs = pair
    wanted = np.asarray(theirs.todense())
    bounds = [sorted([data.draw(st.integers(0, n)), data.draw(st.integers(0, n))]) for n in ours.shape]
    steps = [data.draw(st.integers(1, 3)) for _ in ours.shape]
    starts, limits = [a for a, _ in bounds], [b for _, b in bounds]
    out = sparse.bcoo_slice(ours, start_indices=starts, limit_indices=limits, strides=steps)
    check(out, wanted[tuple(slice(*x) for x in zip(starts, limits, steps, strict=True))])
    sizes = [b - a for a, b in bounds]
    moved = corejax.jit(lambda m, s: sparse.bcoo_dynamic_slice(m, s, sizes))(ours, starts)
    check(moved, wanted[tuple(slice(*x) for x in bounds)])
    axes = [d for d in range(ours.ndim) if data.draw(st.booleans())]
    check(sparse.bcoo_rev(ours, dimensions=axes), np.flip(wanted, axes))


INDICES: list[Any] = [
    1, -1, (slice(None), 2), (Ellipsis, 1), slice(None, None, -1), (slice(1, 3), slice(4, 0, -2)), None,
    (0, None, slice(1, 2)), (Ellipsis, None), (1, 2), (slice(2, 2),), (slice(-2, None), -1, None),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_indexing(index: Any, layout: tuple[int, int]) -> None:
    x = dense((4, 5, 3))
    mat = BCOO.fromdense(x, n_batch=layout[0], n_dense=layout[1])
    check(mat[index], x[index])
    check(corejax.jit(lambda m: m[index])(mat), x[index])


def test_indexing_by_traced_positions() -> None:
    x = dense((4, 5))
    mat = BCOO.fromdense(x)
    got = corejax.jit(lambda m, i: m[i])
    for i in (0, 2, -1):
        check(got(mat, i), x[i])
    assert [np.asarray(row.todense()).tolist() for row in mat] == x.tolist()
    with pytest.raises(IndexError, match="index 4 out of bounds for axis 0 with size 4"):
        mat[4]
    with pytest.raises(IndexError, match="3 indices for an array with 2 dimensions"):
        mat[0, 0, 0]
    with pytest.raises(NotImplementedError, match="a sparse array is indexed by integers, slices, None"):
        mat[np.array([0, 1])]


RESHAPES = [
    ((4, 6), 0, 0, (2, 12)), ((4, 6), 0, 0, (24,)), ((4, 6), 0, 0, (2, 2, -1)), ((4, 6), 1, 0, (2, 2, 3, 2)),
    ((4, 6, 3), 1, 1, (2, 2, 6, 3)), ((4, 6, 4), 0, 1, (24, 2, 2)), ((0, 3), 0, 0, (3, 0)),
    ((4, 6), 1, 1, (2, 2, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "n_batch", "n_dense", "new"), RESHAPES)
def test_reshape(shape: Any, n_batch: int, n_dense: int, new: Any) -> None:
    x = dense(shape)
    mat = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=25 if x.size else None)
    check(mat.reshape(new), x.reshape(new))


@pytest.mark.parametrize("n_batch", [0, 1, 2])
@pytest.mark.parametrize("n_dense", [0, 1])
@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_concatenate(n_batch: int, n_dense: int, dimension: int) -> None:
    shapes = [[2, 3, 4], [2, 3, 4]]
    shapes[1][dimension] += 1
    xs = [dense(tuple(shape), seed=k) for k, shape in enumerate(shapes)]
    mats = [BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense) for x in xs]
    check(sparse.bcoo_concatenate(mats, dimension=dimension), np.concatenate(xs, dimension))


@pytest.mark.parametrize(
    ("shape", "n_batch", "n_dense", "new", "dims"),
    [
        ((3, 4), 0, 0, (2, 3, 4), (1, 2)),
        ((3, 1), 0, 0, (3, 5, 4), (0, 2)),
        ((1, 4), 1, 0, (2, 3, 4), (1, 2)),
        ((2, 3, 4), 1, 1, (2, 5, 3, 6, 4), (0, 2, 4)),
        ((1, 1), 0, 1, (0, 3), (0, 1)),
        ((), 0, 0, (2, 2), ()),
    ],
)
def test_broadcast_in_dim(shape: Any, n_batch: int, n_dense: int, new: Any, dims: Any) -> None:
    x = dense(shape, density=0.9)
    mat = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    out = sparse.bcoo_broadcast_in_dim(mat, shape=new, broadcast_dimensions=dims)
    check(out, lax.broadcast_in_dim(x, new, dims))
    if math.prod(new) and dims:
        back = sparse.bcoo_squeeze(mat, dimensions=[d for d, n in enumerate(shape) if n == 1])
        check(back, np.squeeze(x))


@few
@hypothesis.given(arrays())
def test_order_and_duplicates(pair: Any) -> None:
    ours, theirs = pair
    for out in (
        ours.sort_indices(),
        ours.sum_duplicates(),
        ours.sum_duplicates(nse=9),
        ours.sum_duplicates(remove_zeros=False),
    ):
        check(out, theirs)
        assert out.indices_sorted
    once = ours.sum_duplicates()
    for batch in np.asarray(once.indices).reshape(math.prod(ours.shape[: ours.n_batch]), once.nse, once.n_sparse):
        inside = [tuple(row) for row in batch if all(0 <= i < n for i, n in zip(row, ours.sparse_shape, strict=True))]
        assert inside == sorted(set(inside))
    check(corejax.jit(lambda m: m.sum_duplicates(nse=6))(ours), theirs)


@few
@hypothesis.given(arrays(min_sparse=1, max_batch=1, max_dense=1), st.data())
def test_update_layout(pair: Any, data: Any) -> None:
    ours, theirs = pair
    n_batch = data.draw(st.integers(0, ours.ndim))
    n_dense = data.draw(st.integers(0, ours.ndim - n_batch))
    out = ours.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
    assert (out.n_batch, out.n_dense) == (n_batch, n_dense)
    check(out, theirs)


def test_update_layout_says_what_is_inefficient() -> None:
    mat = BCOO.fromdense(dense((3, 4)))
    with pytest.raises(sparse.SparseEfficiencyError, match="to n_batch=1, n_dense=0 stores zeros"):
        mat.update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="stores zeros"):
        mat.update_layout(n_dense=1, on_inefficient="warn")


@few
@hypothesis.given(arrays(unique=True))
def test_extract(pair: Any) -> None:
    ours, _ = pair
    x = dense(ours.shape, density=1.0, seed=5)
    check(
        sparse.bcoo_extract(ours, x),
        np.where(np.asarray(ours.todense()) != 0, x, 0) if not ours.n_dense else _at(ours, x),
    )
    twice = sparse.bcoo_concatenate([ours, ours], dimension=0) if ours.n_sparse and not ours.n_batch else None
    if twice is not None:
        both = BCOO((twice.data, jnp.concatenate([ours.indices, ours.indices])), shape=ours.shape)
        check(sparse.bcoo_extract(both, x), sparse.bcoo_extract(ours, x))


def _at(mat: Any, x: Any) -> Any:
    ones = mat.with_parts(jnp.ones_like(mat.data), mat.indices)
    inside = np.asarray(ones.todense()) != 0
    return np.where(inside, x, 0)


def test_pytrees() -> None:
    mat = BCOO.fromdense(dense((3, 4)))
    leaves, structure = corejax.tree.flatten(mat)
    assert len(leaves) == 2
    back = corejax.tree.unflatten(structure, leaves)
    assert back.shape == mat.shape and back.unique_indices
    names = corejax.tree.unflatten(structure, ["data", "indices"])
    assert repr(names) == "BCOO(<parts of a pytree>)"
    assert repr(mat) == f"BCOO(float32[3, 4], nse={mat.nse})"
    assert repr(BCOO.fromdense(dense((3, 4)), n_batch=1)).endswith("n_batch=1)")
    assert "BCOO(float32[3, 4]" in str(corejax.jit(lambda m: [repr(m)] and m)(mat))
    with pytest.raises(TypeError, match="is not converted to a dense array implicitly"):
        np.asarray(mat)
    with pytest.raises(TypeError, match="unhashable"):
        hash(mat)


def test_scan_and_vmap() -> None:
    x = dense((3, 4, 5))
    stack = BCOO.fromdense(x, n_batch=1)
    carry, sums = lax.scan(lambda c, m: (c + m.todense(), m.sum(1)), jnp.zeros((4, 5)), stack)
    np.testing.assert_allclose(carry, x.sum(0))
    check(sums, x.sum(2))
    out = corejax.vmap(lambda m: m * 2 + m)(stack)
    assert out.n_batch == 1
    check(out, 3 * x)
    one = BCOO.fromdense(x[0])
    final, _ = lax.scan(lambda m, s: (m * s, None), one, jnp.arange(1.0, 4.0))
    check(final, 6 * x[0])
    check(
        corejax.vmap(lambda m, s: m * s, in_axes=(None, 0))(one, jnp.arange(3.0)), np.arange(3.0)[:, None, None] * x[0]
    )
    looped = lax.fori_loop(0, 3, lambda i, m: m * 2.0, one)
    check(looped, 8 * x[0])


def test_scipy() -> None:
    x = dense((6, 7), "float64")
    for kind in ("coo", "csr", "csc"):
        mat = getattr(scipy.sparse, f"{kind}_matrix")(x)
        check(BCOO.from_scipy_sparse(mat), x)
        check(sparse.BCSR.from_scipy_sparse(mat), x)
    with pytest.raises(NotImplementedError, match="n_batch and n_dense must be 0"):
        BCOO.from_scipy_sparse(mat, n_batch=1)


@pytest.mark.parametrize(
    ("data", "indices", "shape", "error", "text"),
    [
        (np.ones(2), np.ones((2, 1)), (3,), TypeError, "indices must be integers, got float64"),
        (np.ones(2), np.ones(2, int), (3,), ValueError, "indices must have the shape"),
        (np.ones(3), np.ones((2, 1), int), (3,), ValueError, r"data of shape \(3,\) do not fit"),
        (np.ones(2), np.ones((2, 2), int), (3,), ValueError, "are for more dimensions than"),
        (np.ones((2, 2)), np.ones((3, 2, 1), int), (2, 4), ValueError, "the batch dimensions of indices"),
    ],
)
def test_bad_parts(data: Any, indices: Any, shape: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        BCOO((data, indices), shape=shape)


def test_structure_errors() -> None:
    mat = BCOO.fromdense(dense((2, 3, 4)), n_batch=1)
    with pytest.raises(NotImplementedError, match="mixes batch, sparse and dense dimensions"):
        mat.T.todense()
    with pytest.raises(ValueError, match="contain an axis twice"):
        sparse.bcoo_transpose(mat, permutation=(0, 1, 1))
    with pytest.raises(ValueError, match="has no shape"):
        mat.reshape(5, 5)
    with pytest.raises(ValueError, match="out of bounds for an array with 3 dimensions"):
        mat.sum(3)
    with pytest.raises(ValueError, match="are not all of size 1"):
        sparse.bcoo_squeeze(mat, dimensions=(0,))
    with pytest.raises(ValueError, match="is out of bounds for"):
        sparse.bcoo_slice(mat, start_indices=(0, 0, 0), limit_indices=(2, 3, 5))
    with pytest.raises(TypeError, match="the operands must be BCOO arrays"):
        sparse.bcoo_concatenate([np.ones(3)], dimension=0)
    with pytest.raises(ValueError, match=r"shapes .* differ"):
        sparse.bcoo_extract(mat, np.ones(3))
    with pytest.raises(TypeError, match="depends on traced values; pass nse="):
        corejax.jit(BCOO.fromdense)(np.ones(3))
    with pytest.raises(TypeError, match=r"sum_duplicates: .* depends on traced values; pass nse="):
        corejax.jit(lambda m: m.sum_duplicates())(mat)
