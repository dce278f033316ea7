"""Arrays as arguments of libraries that know NumPy's only."""

from __future__ import annotations

import copy
import operator
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp

X = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]], np.float32)


def test_numpy() -> None:
    x = jnp.asarray(X)
    np.testing.assert_allclose(np.linalg.inv(x) @ X, np.eye(3), atol=1e-5)
    np.testing.assert_array_equal(np.concatenate([x, X]), np.concatenate([X, X]))
    np.testing.assert_array_equal(np.where(x > 1, x, 0), np.where(X > 1, X, 0))
    np.testing.assert_array_equal(np.einsum("ij->ji", x), X.T)
    np.testing.assert_allclose(np.fft.rfft(x), np.fft.rfft(X))
    host = X.copy()
    host[jnp.array([0, 1])] = jnp.zeros(3)
    host += x
    np.testing.assert_array_equal(host[0], X[0])
    assert np.float32(2) * x[0, 0] == 8 and np.arange(5)[jnp.asarray(2)] == 2
    assert np.vectorize(lambda v: v + 1)(x).shape == (3, 3)


def test_scipy() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    optimize = pytest.importorskip("scipy.optimize")
    np.testing.assert_allclose(linalg.cholesky(jnp.asarray(X)), linalg.cholesky(X))
    loss = corejax.jit(corejax.value_and_grad(lambda v: ((v - 2) ** 2).sum()))
    found = optimize.minimize(loss, np.zeros(2, np.float32), jac=True)
    np.testing.assert_allclose(found.x, [2, 2], atol=1e-3)
    assert pytest.importorskip("scipy.stats").norm.cdf(jnp.zeros(3)).shape == (3,)


def test_matplotlib() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    (line,) = axes.plot(jnp.arange(3), jnp.asarray(X)[:, 0])
    np.testing.assert_array_equal(line.get_ydata(), X[:, 0])
    axes.imshow(jnp.asarray(X))
    axes.hist(jnp.asarray(X).ravel(), bins=3)
    axes.errorbar(jnp.arange(3), jnp.ones(3), yerr=jnp.ones(3))
    pyplot.close(figure)


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": jnp.arange(3), "b": jnp.ones(3)})
    assert frame["a"].sum() == 3 and frame.to_numpy().shape == (3, 2)


def test_python() -> None:
    x = jnp.asarray(X)
    assert range(10)[jnp.asarray(3)] == 3 and [1, 2, 3][jnp.asarray(1)] == 2
    assert operator.index(jnp.asarray(3)) == 3 and complex(jnp.asarray(1j)) == 1j
    assert round(jnp.asarray(2.6)) == 3 and sum(jnp.arange(4)) == 6
    assert [float(v) for v in reversed(x[0])] == [0.5, 1.0, 4.0]
    assert (Fraction(1, 2) + float(x[0, 0])) == 4.5
    first, *_ = x
    np.testing.assert_array_equal(first, X[0])
    deep = copy.deepcopy([x])[0]  # stays when x is donated
    assert copy.copy(x) is x and deep is not x and deep.aval is x.aval
    np.testing.assert_array_equal(deep, X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), X)
    assert random.Random(0).choice(jnp.arange(3)) in jnp.arange(3)
    with pytest.raises(TypeError, match="unhashable type: 'Array'"):
        hash(x)
    with pytest.raises(ValueError, match=r"truth value of an array of shape \(3, 3\)"):
        bool(x)
