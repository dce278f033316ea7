"""Taking, putting, finding nonzero elements, indices and grids: against jax, run, compiled and batched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cnp
from corejax.extend import as_array, tree

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
I = np.array([0, -1, 9, 2], np.int32)

CASES: dict[str, Any] = {
    "take": lambda n, x, i: n.take(x, i),
    "take of an axis": lambda n, x, i: n.take(x, i[:, None], axis=0, fill_value=3.0),
    "take clip": lambda n, x, i: n.take(x, i, axis=1, mode="clip"),
    "take wrap": lambda n, x, i: n.take(x, i, axis=-1, mode="wrap"),
    "take by booleans": lambda n, x, i: n.take(x, i > 0, axis=0),
    "put by booleans": lambda n, x, i: n.put(x, i > 0, n.asarray([1.0]), inplace=False),
    "along": lambda n, x, i: n.take_along_axis(x, i[:, None], axis=1),
    "along 0": lambda n, x, i: n.take_along_axis(x, i[:, None], axis=0),
    "along None": lambda n, x, i: n.take_along_axis(x, i, axis=None),
    "along clip": lambda n, x, i: n.take_along_axis(x[:1], i[:, None], axis=1, mode="clip"),
    "along one_hot": lambda n, x, i: n.take_along_axis(x, i[:, None] % 5, axis=1, mode="one_hot"),
    "along argmax": lambda n, x, i: n.take_along_axis(x, n.argmax(x, axis=1, keepdims=True), axis=1),
    "put": lambda n, x, i: n.put(x, i, n.asarray([1.0, 2.0]), inplace=False),
    "put clip": lambda n, x, i: n.put(x, i * 9, n.asarray([1.0, 2.0]), inplace=False, mode="clip"),
    "put wrap": lambda n, x, i: n.put(x, i * 9, n.asarray([1.0, 2.0]), inplace=False, mode="wrap"),
    "put along": lambda n, x, i: n.put_along_axis(x, i[:, None], 7.0, axis=1, inplace=False),
    "put along None": lambda n, x, i: n.put_along_axis(x, i, n.asarray(7.0), axis=None, inplace=False),
    "place": lambda n, x, i: n.place(x, x > 0, n.asarray([1.0, 2.0, 3.0]), inplace=False),
    "diagonal": lambda n, x, i: n.fill_diagonal(x, n.asarray([1.0, 2.0, 3.0]), inplace=False),
    "choose clip": lambda n, x, i: n.choose(i, [x[0, :4], x[1, :4], 5.0], mode="clip"),
    "choose wrap": lambda n, x, i: n.choose(i, [x[0, :4], x[1, :4], 5.0], mode="wrap"),
    "compress": lambda n, x, i: n.compress(i > 0, x, axis=0, size=3, fill_value=9),
    "extract": lambda n, x, i: n.extract(x > 0, x, size=12, fill_value=-1),
    "nonzero": lambda n, x, i: n.nonzero(x > 0, size=15),
    "nonzero filled": lambda n, x, i: n.nonzero(x > 0, size=15, fill_value=(-1, -2)),
    "nonzero few": lambda n, x, i: n.nonzero(x > 0, size=3),
    "nonzero none": lambda n, x, i: n.nonzero(x > 0, size=0),
    "argwhere": lambda n, x, i: n.argwhere(x > 0, size=15, fill_value=99),
    "flatnonzero": lambda n, x, i: n.flatnonzero(x > 0, size=15, fill_value=99),
    "where": lambda n, x, i: n.where(x > 0, size=5),
    "unravel": lambda n, x, i: n.unravel_index(i * 7, (4, 5)),
    "ravel clip": lambda n, x, i: n.ravel_multi_index((i, i + 1), (4, 5), mode="clip"),
    "ravel wrap": lambda n, x, i: n.ravel_multi_index((i, i + 1), (4, 5), mode="wrap", order="F"),
    "ix_": lambda n, x, i: n.ix_(i, i[:2]),
}
KNOWN: dict[str, Any] = {
    "indices": lambda n: n.indices((2, 3)),
    "indices sparse": lambda n: n.indices((2, 3), sparse=True),
    "indices empty": lambda n: n.indices((2, 0), dtype="float32"),
    "diag": lambda n: n.diag_indices(3, 3),
    "diag from": lambda n: n.diag_indices_from(n.ones((3, 3))),
    "tril": lambda n: n.tril_indices(3, 1, 4),
    "triu": lambda n: n.triu_indices(3, -1, 4),
    "tril from": lambda n: n.tril_indices_from(n.ones((3, 4))),
    "triu from": lambda n: n.triu_indices_from(n.ones((3, 4)), 1),
    "mgrid": lambda n: n.mgrid[0:2, 0:3:2],
    "mgrid of points": lambda n: n.mgrid[-1:1:5j],
    "ogrid": lambda n: n.ogrid[0:2, 0:1:3j],
    "r_": lambda n: n.r_[0:3, 5, n.asarray([1.0, 2.0])],
    "r_ of rows": lambda n: n.r_["0,2,0", [1, 2, 3], [4, 5, 6]],
    "r_ column": lambda n: n.r_["c", [1, 2, 3]],
    "r_ of matrices": lambda n: n.r_["1,3,-2", n.ones((2, 2))],
    "c_": lambda n: n.c_[n.asarray([1, 2, 3]), n.asarray([4, 5, 6])],
    "c_ of slices": lambda n: n.c_[1:3, 5:7],
    "mask_indices": lambda n: n.mask_indices(3, n.triu),
    "nonzero": lambda n: n.nonzero(n.asarray([[0, 1, 0], [2, 0, 3]])),
    "argwhere": lambda n: n.argwhere(n.asarray([[0, 1, 0], [2, 0, 3]])),
    "argwhere of a scalar": lambda n: n.argwhere(n.asarray(5)),
    "compress": lambda n: n.compress(n.asarray([True, False, True]), n.asarray([[1, 2, 3], [4, 5, 6]]), axis=1),
    "choose": lambda n: n.choose(n.asarray([0, 1, 0]), [n.asarray([1, 2, 3]), 4.5]),
    "ravel": lambda n: n.ravel_multi_index((n.asarray([1, 2]), n.asarray([0, 1])), (3, 4)),
    "unravel narrow": lambda n: n.unravel_index(n.asarray([1, 2, 7], dtype="uint8"), (3, 4)),
    "where": lambda n: n.where(n.asarray([0, 1, 1])),
    "take nothing": lambda n: n.take(n.ones((2, 0)), n.asarray([], dtype="int32"), axis=1),
}


def _assert_equal(name: str, ours: Any, theirs: Any) -> None:
    a, b = tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(a) == len(b), name
    for x, y in zip(a, b, strict=True):
        assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type), name
        np.testing.assert_array_equal(x, y, err_msg=name)


def test_of_data() -> None:
    """Eagerly, as one program, and as one program over a batch."""

    def everything(n: Any) -> Any:
        return lambda x, i: {name: f(n, x, i) for name, f in CASES.items()}

    theirs = jax.jit(everything(jnp))(X, I)
    batch = corejax.vmap(everything(cnp))(np.stack([X, X]), np.stack([I, I]))
    first = corejax.tree.map(lambda v: v[0], batch)
    for ours in (everything(cnp)(as_array(X), as_array(I)), corejax.jit(everything(cnp))(X, I)):
        for name in CASES:
            _assert_equal(name, ours[name], theirs[name])
    for name in CASES:
        for x, y in zip(tree.leaves(first[name]), jax.tree.leaves(theirs[name]), strict=True):
            np.testing.assert_array_equal(x, y, err_msg=name)


@pytest.mark.parametrize("name", KNOWN)
def test_of_what_is_known(name: str) -> None:
    _assert_equal(name, KNOWN[name](cnp), KNOWN[name](jnp))


def test_derivatives() -> None:
    def f(n: Any) -> Any:
        def loss(x: Any, i: Any) -> Any:
            y = n.take_along_axis(x, i[:, None] % 5, axis=1) * n.take(x, i, axis=0, fill_value=0.0)
            return (y**2).sum() + (n.place(x, x > 0, x[0], inplace=False) ** 2).sum()

        return loss

    expected = jax.grad(f(jnp))(X, I)
    np.testing.assert_allclose(corejax.grad(f(cnp))(X, I), expected, rtol=1e-5)
    np.testing.assert_allclose(corejax.jit(corejax.grad(f(cnp)))(X, I), expected, rtol=1e-5)


def test_programs_are_short() -> None:
    count = lambda f, *args: len(corejax.make_jaxpr(f)(*args).jaxpr.eqns)
    assert count(lambda x, i: x[i], X, I) == 3
    assert count(lambda x: x[np.array([2, 0])], X) == 1
    assert count(lambda x, i: cnp.take(x, i, axis=0), X, I) == 5
    assert count(lambda x, i: cnp.take_along_axis(x, i, axis=1), X, I[:, None]) == 5
    assert count(lambda x: x.at[0].set(1.0), X) == 2


NEEDS_SIZE = [cnp.nonzero, cnp.where, cnp.argwhere, cnp.flatnonzero, lambda x: cnp.compress(x[0] > 0, x, axis=1)]


@pytest.mark.parametrize("f", NEEDS_SIZE)
def test_sizes_that_are_not_known(f: Any) -> None:
    with pytest.raises(TypeError, match=r"depends on the number of nonzero elements.*size=n[\s\S]*argument x"):
        corejax.make_jaxpr(lambda x: f(x))(X)
    assert tree.leaves(corejax.grad(lambda x: X[0].sum() * x.sum() + len(tree.leaves(f(x))))(X))


ERRORS = [
    (lambda: cnp.take(X, X), TypeError, "take: take indices must be of integer type, got float32"),
    (lambda: cnp.take(X, 0, mode="near"), ValueError, "mode is 'fill', 'clip', 'wrap' or 'raise', got 'near'"),
    (lambda: cnp.take(X, 99, mode="raise"), IndexError, "take: an index is out of bounds for size"),
    (lambda: cnp.take(X, np.array([0, -99]), 0, mode="raise"), IndexError, "take: an index is out of bounds for size"),
    (lambda: corejax.jit(lambda i: cnp.take(X, i, mode="raise"))(0), TypeError, "take: mode 'raise'"),
    (lambda: cnp.take(X, 0, out=X), NotImplementedError, "take: `out`"),
    (lambda: cnp.take(X[:0], I, axis=0), IndexError, "has no elements to take"),
    (lambda: cnp.take(X, [0, 1]), TypeError, "take takes arrays and scalars, got list"),
    (lambda: cnp.take_along_axis(X, I, axis=0), ValueError, "as many axes"),
    (lambda: cnp.take_along_axis(X, I.reshape(2, 2), axis=0), ValueError, "do not broadcast"),
    (lambda: cnp.put(X, I, 1.0), ValueError, "put: arrays are immutable: pass inplace=False"),
    (lambda: cnp.put_along_axis(X, I, 1.0, axis=0, inplace=False), ValueError, "as many axes"),
    (lambda: cnp.place(X, I, 1.0, inplace=False), ValueError, "place: the mask"),
    (lambda: cnp.fill_diagonal(I, 1, inplace=False), ValueError, "at least two axes"),
    (lambda: cnp.choose(I, [1, 2]), ValueError, "out of bounds for 2 choices"),
    (lambda: cnp.nonzero(1.0), ValueError, "a scalar has no axes"),
    (lambda: cnp.nonzero(X, size=2, fill_value=(1, 2, 3)), ValueError, "a tuple of 2 scalars"),
    (lambda: cnp.where(X > 0, 1), ValueError, "both x and y"),
    (lambda: cnp.where(X > 0, 1, 2, size=3), ValueError, "size and fill_value go with the condition alone"),
    (lambda: cnp.compress(X, X), ValueError, "the condition is a vector"),
    (lambda: cnp.ravel_multi_index((I, I), (4, 5)), ValueError, "index -1 is out of bounds for axis 0 with size 4"),
    (lambda: cnp.unravel_index(X, (4, 5)), TypeError, "indices are integers"),
    (lambda: cnp.ix_(X), ValueError, "ix_ takes vectors"),
    (lambda: cnp.tril_indices_from(I), ValueError, "takes a matrix"),
    (lambda: cnp.diag_indices_from(X), ValueError, "of one length"),
    (lambda: cnp.r_[1, "r"], ValueError, "must come first"),
    (lambda: cnp.r_["a,b", 1], ValueError, "cannot parse directive 'a,b'"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        f()


def test_known_indices_are_asked_for() -> None:
    for f in (lambda i: cnp.choose(i, [1, 2]), lambda i: cnp.ravel_multi_index((i, i), (4, 5))):
        with pytest.raises(TypeError) as caught:
            corejax.jit(f)(I)
        assert any(": mode 'raise' needs concrete indices" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("i", [[5, 0, 11], [-1, -12]])
def test_unravel_index_with_a_traced_shape(i: Any) -> None:
    sizes = np.array([3, 4])
    want = np.unravel_index(np.array(i) % 12, (3, 4))
    for shape in ((3, 4), sizes, (3, np.int8(4))):
        got = corejax.jit(lambda i, shape: cnp.unravel_index(i, shape))(np.array(i), shape)
        np.testing.assert_array_equal(np.array(got), np.array(want))
