"""`sparsify`, derivatives by sparse arrays, BCSR, and arrays that are made of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax, nn
from corejax.experimental import sparse
from corejax.experimental.sparse import BCOO, BCSR
from tests.sparse.samples import check, dense

jax = pytest.importorskip("jax")
js = pytest.importorskip("jax.experimental.sparse")

X, V = dense((4, 5)), np.linspace(-1.0, 1.0, 5, dtype="float32")


@corejax.custom_jvp
def doubled(x: Any) -> Any:
    return 2 * x


doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * tangents[0]))

FUNCTIONS: dict[str, Any] = {
    "products": lambda m, v: m @ v,
    "rows": lambda m, v: jnp.tanh(2 * m.T).T @ v,
    "sums": lambda m, v: m.sum(1) * 2,
    "both": lambda m, v: (m + m * v).sum(0),
    "square": lambda m, v: m @ (m.T / 3),
    "moved": lambda m, v: m[1:3, ::-1].reshape(10)[None],
    "stacked": lambda m, v: jnp.concatenate([m, -m], 1),
    "powers": lambda m, v: (m**2 - m).astype("float64"),
    "jit": lambda m, v: corejax.jit(lambda m: jnp.sin(m) @ v)(m),
    "custom": lambda m, v: doubled(m),
    "checkpoint": lambda m, v: corejax.checkpoint(lambda m: m * 3.0)(m),
    "cond": lambda m, v: lax.cond(v[0] > 0, lambda m: m, lambda m: 2.0 * m, m),
    "while": lambda m, v: lax.fori_loop(0, 3, lambda i, m: m * 2.0, m),
    "scan": lambda m, v: lax.scan(lambda c, _: (c * 2.0, c @ v), m, None, length=3),
    "dense": lambda m, v: v + 1,
    "vmap": lambda m, v: corejax.vmap(lambda row: row * 2.0)(m),
    "pytree": lambda m, v: {"a": m, "b": [v, m.T]},
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", [BCOO, BCSR])
def test_sparsify(name: str, kind: Any) -> None:
    f = FUNCTIONS[name]
    wanted = f(jnp.asarray(X), jnp.asarray(V))
    for g in (sparse.sparsify(f), corejax.jit(sparse.sparsify(f))):
        got = g(kind.fromdense(X), V)
        leaves = corejax.tree.leaves(got, is_leaf=lambda x: isinstance(x, sparse.JAXSparse))
        for a, b in zip(leaves, corejax.tree.leaves(wanted), strict=True):
            check(a, b)


def test_sparsify_keeps_arrays_sparse() -> None:
    out = sparse.sparsify(lambda m: jnp.sin(m).T * 2.0)(BCOO.fromdense(X))
    assert isinstance(out, BCOO) and out.nse == BCOO.fromdense(X).nse
    twice = BCOO.fromdense(X) + BCOO.fromdense(X)
    check(sparse.sparsify(jnp.sin)(twice), np.sin(2 * X))
    assert sparse.sparsify(lambda m, n: m * n)(BCOO.fromdense(X), 2).dtype == "float32"


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (jnp.cos, r"sparsify: cos has no rule for sparse arrays, got \(BCOO\(float32\[4, 5\], nse=\d+\)\)"),
        (lambda m: 1 / m, "division by a sparse array, with 0 for absent elements"),
        (lambda m: m + 1, "addition of a sparse and a dense array"),
        (lambda m: lax.scan(lambda c, row: (c, row), 0, m), "whose first dimension is not a batch dimension"),
        (lambda m: lax.integer_pow(m, -1), "to the power -1, by which 0 is not 0"),
        (nn.softmax, "has no rule for sparse arrays"),
    ],
)
def test_sparsify_errors(f: Any, text: str) -> None:
    with pytest.raises(NotImplementedError, match=text):
        sparse.sparsify(f)(BCOO.fromdense(X))


def loss(m: Any, v: Any) -> Any:
    return jnp.sin(m @ v).sum()


@pytest.mark.parametrize("kind", ["BCOO", "BCSR"])
def test_gradients(kind: str) -> None:
    mat, theirs = getattr(sparse, kind).fromdense(X), js.BCOO.fromdense(X)
    wanted = js.grad(lambda m, v: jax.numpy.sin(m @ v).sum(), (0, 1))(theirs, V)
    value, got = sparse.value_and_grad(loss, (0, 1))(mat, V)
    assert type(got[0]) is type(mat)
    np.testing.assert_allclose(value, loss(X, V), rtol=1e-5)
    for a, b in zip(got, wanted, strict=True):
        check(a, b)
    check(corejax.jit(sparse.grad(loss))(mat, V), wanted[0])
    with_aux, aux = sparse.grad(lambda m, v: (loss(m, v), v), has_aux=True)(mat, V)
    check(with_aux, wanted[0])
    assert aux is V
    tree = sparse.grad(lambda p: loss(p["w"], p["v"]))({"w": mat, "v": jnp.asarray(V)})
    check(tree["w"], wanted[0])
    check(tree["v"], wanted[1])
    assert sparse.grad(loss, 1)(mat, V).shape == V.shape


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "jacobian"])
def test_jacobians(name: str) -> None:
    mat, theirs = BCOO.fromdense(X), js.BCOO.fromdense(X)
    got = getattr(sparse, name)(lambda m: jnp.sin(m @ V))(mat)
    wanted = js.jacrev(lambda m: jax.numpy.sin(m @ V))(theirs)
    assert isinstance(got, BCOO) and got.n_batch == 1 and got.nse == mat.nse
    check(got, wanted)
    both = getattr(sparse, name)(lambda m, v: [m @ v, (m @ v).sum()], (0, 1))(mat, V)
    np.testing.assert_allclose(both[0][1], X, rtol=1e-6)
    assert both[1][0].shape == (4, 5)


def test_newtons_method_with_sparse_products() -> None:
    """Conjugate gradients with products by a sparse matrix; the derivative by its elements is that of the solution."""
    from corejax.scipy.sparse.linalg import cg

    a = np.eye(6, dtype="float32") * 4 + dense((6, 6), density=0.2, seed=8) * 0.1
    a = (a + a.T) / 2
    mat, b = BCOO.fromdense(a), jnp.arange(6.0)
    np.testing.assert_allclose(cg(lambda x: mat @ x, b)[0], np.linalg.solve(a, b), rtol=1e-4)


@pytest.mark.parametrize("n_batch", [0, 1])
@pytest.mark.parametrize("n_dense", [0, 1])
def test_bcsr(n_batch: int, n_dense: int) -> None:
    x = dense((2,) * n_batch + (4, 5) + (3,) * n_dense)
    mat = BCSR.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    theirs = js.BCSR.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    for a, b in ((mat.data, theirs.data), (mat.indices, theirs.indices), (mat.indptr, theirs.indptr)):
        np.testing.assert_array_equal(a, b)
    assert (mat.shape, mat.nse, mat.n_batch, mat.n_dense) == (x.shape, theirs.nse, n_batch, n_dense)
    check(mat, x)
    check(mat.to_bcoo(), x)
    check(BCSR.from_bcoo(mat.to_bcoo()), x)
    check(corejax.jit(lambda m: m * 2)(mat), 2 * x)
    check((mat + mat).sum_duplicates(), 2 * x)
    np.testing.assert_array_equal(sparse.bcsr_extract(mat.indices, mat.indptr, x), mat.data)
    if not n_dense:
        y = dense((2,) * n_batch + (5, 3), seed=2)
        check(mat @ y, x @ y)
        check(
            np.swapaxes(y, -1, -2) @ sparse.bcsr_fromdense(np.swapaxes(x, -1, -2), n_batch=n_batch),
            np.swapaxes(x @ y, -1, -2),
        )
        numbers = (((n_batch + 1,), (n_batch,)), (tuple(range(n_batch)),) * 2)
        check(sparse.bcsr_dot_general(mat, y, dimension_numbers=numbers), x @ y)
    check(sparse.bcsr_concatenate([mat, mat], dimension=n_batch), np.concatenate([x, x], n_batch))
    if not n_batch:
        wider = sparse.bcsr_broadcast_in_dim(mat, shape=(2, *x.shape), broadcast_dimensions=range(1, x.ndim + 1))
        check(wider, np.stack([x, x]))


def test_bcsr_rows_with_padding() -> None:
    indices = np.array([[1, 2], [9, 9], [0, 1], [0, 9]], "int32")
    mat = BCSR.from_bcoo(BCOO((np.array([1.0, 2.0, 3.0, 4.0]), indices), shape=(3, 4)))
    assert mat.indptr.tolist() == [0, 1, 2, 2]
    check(mat, np.array([[0, 3, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], "float64"))
    assert "BCSR(float64[3, 4], nse=4)" in repr(mat)
    with pytest.raises(NotImplementedError, match=r"to_bcoo\(\).transpose\(\)"):
        _ = mat.T
    with pytest.raises(ValueError, match="which has 3 rows"):
        BCSR((np.ones(2), np.ones(2, int), np.ones(3, int)), shape=(3, 4))
    with pytest.raises(ValueError, match="must have two dimensions beside"):
        BCSR.fromdense(np.ones(3))


@pytest.mark.parametrize("k", [-5, -2, 0, 1, 3])
@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (4, 2), (2, 4), (0, 3)])
@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)])
def test_eye(k: int, rows: int, columns: int, layout: tuple[int, int]) -> None:
    mat = sparse.eye(rows, columns, k=k, n_batch=layout[0], n_dense=layout[1])
    assert (mat.n_batch, mat.n_dense) == layout
    check(mat, np.eye(rows, columns, k, dtype="float32"))
    if layout == (0, 0):
        check(sparse.eye(rows, columns, k=k, sparse_format="bcsr", dtype="int32"), np.eye(rows, columns, k))


def test_empty() -> None:
    mat = sparse.empty((2, 3, 4), n_batch=1, n_dense=1, nse=5, dtype="int8", index_dtype="int16")
    assert (mat.nse, mat.n_batch, mat.n_dense, mat.dtype, mat.indices.dtype) == (5, 1, 1, "int8", "int16")
    check(mat, np.zeros((2, 3, 4)))
    check(sparse.empty((3, 4), sparse_format="bcsr"), np.zeros((3, 4)))
    check(sparse.todense(mat), np.zeros((2, 3, 4)))
    assert sparse.todense(X).shape == X.shape
    with pytest.raises(ValueError, match="sparse_format must be one of bcoo, bcsr, coo, csr, csc, got 'dok'"):
        sparse.empty((3, 4), sparse_format="dok")
    with pytest.raises(ValueError, match="exceed the dimensions of"):
        sparse.empty((3,), n_batch=2)


@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1), (0, 3)])
@pytest.mark.parametrize("nse", [0, 0.3, 5])
def test_random(layout: tuple[int, int], nse: float) -> None:
    n_batch, n_dense = layout
    shape = (3, 6, 4)
    sizes = shape[n_batch : 3 - n_dense]
    if nse > np.prod(sizes):
        with pytest.raises(ValueError, match="different places do not exist"):
            sparse.random_bcoo(corejax.random.key(0), shape, nse=nse, n_batch=n_batch, n_dense=n_dense)
        return
    mat = sparse.random_bcoo(corejax.random.key(0), shape, nse=nse, n_batch=n_batch, n_dense=n_dense)
    theirs = js.random_bcoo(jax.random.key(0), shape, dtype="float32", nse=nse, n_batch=n_batch, n_dense=n_dense)
    assert (mat.shape, mat.nse, mat.dtype, mat.unique_indices) == (shape, theirs.nse, theirs.dtype, True)
    once = mat.sum_duplicates(nse=mat.nse, remove_zeros=False)
    check(once, mat)
    assert np.asarray(mat.todense() != 0).sum() == np.asarray(mat.data != 0).sum()


def test_names_of_jax() -> None:
    """Public names of jax's that are not here are other formats, primitives, and solvers."""
    missing = {n for n in dir(js) if not n.startswith("_") and not hasattr(sparse, n)}
    modules = {"ad", "api", "bcoo", "bcsr", "coo", "csr", "linalg", "nm", "random", "test_util", "transform", "util"}
    formats = {n for n in missing if n.lower().startswith(("coo", "csr", "csc"))}
    primitives = {n for n in missing if n.endswith("_p")}
    assert missing - modules - formats - primitives == {"SparseTracer"}
