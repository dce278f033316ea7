"""Products and sums of sparse arrays beside those of dense arrays and of jax.experimental.sparse."""

from __future__ import annotations

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


@st.composite
def contractions(draw: Any) -> Any:
    """A BCOO array, a dense one, and dimension numbers for both."""
    mat, _ = draw(arrays(max_batch=2, max_dense=1, min_sparse=1))
    axes = draw(st.permutations(range(mat.ndim)))
    count = draw(st.integers(0, mat.ndim))
    contracted, rest = list(axes[:count]), list(axes[count:])
    batch = [axis for axis in rest if axis < mat.n_batch and draw(st.booleans())]
    free = draw(st.lists(st.integers(0, 3), max_size=2))
    sizes = [mat.shape[axis] for axis in (*batch, *contracted)] + free
    order = list(draw(st.permutations(range(len(sizes)))))
    other = dense(tuple(sizes[k] for k in order), density=0.8, seed=3)
    places = [order.index(k) for k in range(len(batch) + len(contracted))]
    numbers = ((contracted, places[len(batch) :]), (batch, places[: len(batch)]))
    return mat, other, numbers


@few
@hypothesis.given(contractions())
def test_dot_general(case: Any) -> None:
    mat, other, numbers = case
    full = mat.todense()
    wanted = lax.dot_general(full, other, numbers)
    check(sparse.bcoo_dot_general(mat, other, dimension_numbers=numbers), wanted)
    (lc, rc), (lb, rb) = numbers
    turned = ((rc, lc), (rb, lb))
    out = sparse.bcoo_dot_general(other, mat, dimension_numbers=turned)
    check(out, lax.dot_general(other, full, turned))
    check(corejax.jit(lambda m, o: sparse.bcoo_dot_general(m, o, dimension_numbers=numbers))(mat, other), wanted)


@few
@hypothesis.given(contractions())
def test_gradients_of_dot_general(case: Any) -> None:
    mat, other, numbers = case

    def loss(data: Any, other: Any) -> Any:
        out = sparse.bcoo_dot_general(mat.with_data(data), other, dimension_numbers=numbers)
        return (out * jnp.cos(jnp.arange(out.size, dtype="float32")).reshape(out.shape)).sum()

    def loss_of_dense(data: Any, other: Any) -> Any:
        out = lax.dot_general(mat.with_data(data).todense(), other, numbers)
        return (out * jnp.cos(jnp.arange(out.size, dtype="float32")).reshape(out.shape)).sum()

    got = corejax.grad(loss, (0, 1))(mat.data, jnp.asarray(other))
    wanted = corejax.grad(loss_of_dense, (0, 1))(mat.data, jnp.asarray(other))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


SHAPES = [((3, 4), (4, 5)), ((3, 4), (4,)), ((4,), (4, 5)), ((4,), (4,)), ((0, 4), (4, 2)), ((3, 0), (0, 2))]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("which", ["lhs", "rhs", "both"])
def test_matmul(left: Any, right: Any, which: str) -> None:
    x, y = dense(left), dense(right, seed=1)
    a = BCOO.fromdense(x) if which != "rhs" else x
    b = BCOO.fromdense(y) if which != "lhs" else y
    check(a @ b, np.asarray(x @ y))
    check(corejax.jit(lambda a, b: a @ b)(a, b), np.asarray(x @ y))


@pytest.mark.parametrize("n_batch", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_products_of_two_with_batches(n_batch: Any) -> None:
    x, y = dense((2, 3, 4)), dense((5, 4, 3), seed=1)
    mats = [BCOO.fromdense(v, n_batch=n) for v, n in zip((x, y), n_batch, strict=True)]
    numbers = (((2,), (1,)), ((), ()))
    check(sparse.bcoo_dot_general(*mats, dimension_numbers=numbers), lax.dot_general(x, y, numbers))
    if n_batch == (1, 1):
        z = dense((2, 4, 3), seed=2)
        check(mats[0] @ BCOO.fromdense(z, n_batch=1), x @ z)


def test_padding_and_duplicates_in_products() -> None:
    indices = np.array([[0, 1], [0, 1], [2, 9], [9, 0], [1, 3]], "int32")
    mat = BCOO((np.array([1.0, 2.0, np.inf, np.nan, 3.0], "float32"), indices), shape=(3, 4))
    full, v = np.zeros((3, 4), "float32"), np.arange(1.0, 5.0, dtype="float32")
    full[0, 1], full[1, 3] = 3, 3
    check(mat, full)
    check(mat @ v, full @ v)
    check(full.T @ mat, full.T @ full)
    check(mat @ mat.T, full @ full.T)
    check(mat * mat, full * full)
    check(mat * full, full * full)
    check(mat.sum(0), full.sum(0))
    check(abs(-mat), full)
    check(mat**2, full**2)


@few
@hypothesis.given(arrays(), st.data())
def test_multiply_dense(pair: Any, data: Any) -> None:
    mat, _ = pair
    shape = [n if data.draw(st.booleans()) else 1 for n in mat.shape][data.draw(st.integers(0, mat.ndim)) :]
    x = dense(tuple(shape), density=0.9)
    wanted = np.asarray(mat.todense()) * x
    check(mat * x, wanted)
    check(x * mat, wanted)
    check(mat / 2, np.asarray(mat.todense()) / 2)


@few
@hypothesis.given(arrays(max_batch=1, max_dense=1), st.data())
def test_multiply_and_add_sparse(pair: Any, data: Any) -> None:
    mat, _ = pair
    full = np.asarray(mat.todense())
    shape = [n if data.draw(st.booleans()) else 1 for n in mat.shape]
    x = dense(tuple(shape), seed=4)
    other = BCOO.fromdense(x, n_batch=mat.n_batch, n_dense=mat.n_dense)
    check(mat * other, full * x)
    same = dense(mat.shape, seed=5)
    other = BCOO.fromdense(same, n_batch=mat.n_batch, n_dense=mat.n_dense)
    check(mat + other, full + same)
    check(mat - other, full - same)
    check(other + other, 2 * same)


def test_sampled_products() -> None:
    x, y = dense((4, 5), density=1.0), dense((5, 6), density=1.0, seed=1)
    mat = BCOO.fromdense(dense((4, 6)), nse=14)
    numbers = (((1,), (0,)), ((), ()))
    got = sparse.bcoo_dot_general_sampled(x, y, mat.indices, dimension_numbers=numbers)
    check(mat.with_parts(got, mat.indices), np.where(np.asarray(mat.todense()) != 0, x @ y, 0))
    text = str(
        corejax.make_jaxpr(lambda x, y: sparse.bcoo_dot_general_sampled(x, y, mat.indices, dimension_numbers=numbers))(
            x, y
        )
    )
    assert "f32[4,6]" not in text
    batched = np.stack([x, 2 * x]), np.stack([y, y])
    indices = jnp.stack([mat.indices, mat.indices])
    numbers = (((2,), (1,)), ((0,), (0,)))
    got = sparse.bcoo_dot_general_sampled(*batched, indices, dimension_numbers=numbers)
    np.testing.assert_allclose(got[1], 2 * got[0])


def test_gradients_are_sparse() -> None:
    """Neither the product nor its gradients have an array of the size of the matrix."""
    n, m = 501, 503
    mat = sparse.random_bcoo(corejax.random.key(0), (n, m), nse=50)
    v = jnp.ones(m)
    f = lambda m, v: jnp.sin(m @ v).sum()
    text = str(corejax.make_jaxpr(sparse.grad(f, (0, 1)))(mat, v))
    assert f"[{n},{m}]" not in text and f"[{n * m}]" not in text
    got, by_vector = sparse.grad(f, (0, 1))(mat, v)
    assert got.nse == 50 and got.shape == (n, m)
    full, by_dense = corejax.grad(f, (0, 1))(mat.todense(), v)
    check(got, sparse.bcoo_extract(mat, full))
    np.testing.assert_allclose(by_vector, by_dense, rtol=1e-5, atol=1e-6)


def test_beside_scipy() -> None:
    x = scipy.sparse.random(200, 150, 0.05, random_state=0, format="coo")
    y = scipy.sparse.random(150, 120, 0.05, random_state=1, format="coo")
    a, b = BCOO.from_scipy_sparse(x), BCOO.from_scipy_sparse(y)
    v = np.random.default_rng(0).normal(size=(150, 3))
    np.testing.assert_allclose(a @ v, x @ v, rtol=1e-12)
    check(a.T @ (a @ v), x.T @ (x @ v), 1e-10)
    check(a[10:40], x.tocsr()[10:40], 1e-12)
    check((a + a).sum_duplicates(), (x + x).todense(), 1e-12)
    c = sparse.BCSR.from_scipy_sparse(x.tocsr())
    np.testing.assert_allclose(c @ v, x @ v, rtol=1e-12)
    small = a[:20] @ b
    check(small, (x.tocsr()[:20] @ y).todense(), 1e-10)


def test_errors() -> None:
    mat = BCOO.fromdense(dense((3, 4)))
    with pytest.raises(TypeError, match=r"contracted dimensions must have the same sizes, got \(4,\) of lhs \(3, 4\)"):
        mat @ np.ones(3)
    with pytest.raises(NotImplementedError, match=r"bcoo_update_layout\(n_batch=1\) makes them so"):
        sparse.bcoo_dot_general(mat, np.ones((3, 4)), dimension_numbers=(((1,), (1,)), ((0,), (0,))))
    with pytest.raises(TypeError, match="are no dimensions of lhs, which has 2"):
        sparse.bcoo_dot_general(mat, np.ones(3), dimension_numbers=(((2,), (0,)), ((), ())))
    with pytest.raises(ValueError, match="`\\*` multiplies by scalars"):
        mat @ 2.0
    with pytest.raises(NotImplementedError, match="addition of a sparse and a dense array"):
        mat + np.ones((3, 4))
    with pytest.raises(NotImplementedError, match="addition of sparse arrays of different shapes"):
        mat + BCOO.fromdense(np.ones((1, 4)))
    with pytest.raises(NotImplementedError, match="does not broadcast to that of"):
        mat * np.ones((2, 3, 4))
    with pytest.raises(NotImplementedError, match="division by a sparse array"):
        mat / mat
    with pytest.raises(NotImplementedError, match="to a power that is no positive int"):
        mat**0
    with pytest.raises(NotImplementedError, match="leading dimensions must be equal"):
        BCOO.fromdense(np.ones((2, 3, 4)), n_batch=1) @ np.ones((1, 4, 3))
    with pytest.raises(NotImplementedError, match=r"lhs, .* has dense dimensions"):
        BCOO.fromdense(np.ones((3, 4)), n_dense=1) @ BCOO.fromdense(np.ones((4, 3)))
