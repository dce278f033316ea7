"""Activations and what classifiers are made of: as in jax.nn, where derivatives of kinks are chosen, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import nn
from tests.numpy_api.oracle import check_compiled, outputs, types

jax = pytest.importorskip("jax")

X = np.array([[-2.0, 0.0, 0.5, 3.0], [1.0, -50.0, 90.0, 0.0]], np.float32)
H = X.astype(np.float16)
INTS = np.array([[1, 2, 0], [3, 0, 5]], np.int32)
MASK = np.array([[True, False, True, True], [True, True, False, True]])

ACTIVATIONS = ["relu", "leaky_relu", "elu", "silu", "tanh", "softplus", "log_sigmoid", "gelu"]
OVER_CLASSES = ["softmax", "log_softmax", "logsumexp"]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: lambda lib, x, name=name: getattr(lib, name)(x) for name in [*ACTIVATIONS, *OVER_CLASSES]},
    "softmax over rows": lambda lib, x: lib.softmax(x, axis=0),
    "softmax over all": lambda lib, x: lib.softmax(x, axis=(0, 1)),
    "log_softmax over rows": lambda lib, x: lib.log_softmax(x, axis=0),
    "logsumexp over rows": lambda lib, x: lib.logsumexp(x, axis=0, keepdims=True),
    "logsumexp with factors": lambda lib, x: lib.logsumexp(x, axis=1, b=2.0),
}


@pytest.mark.sampled
@pytest.mark.parametrize("x", [X, H, INTS], ids=["f32", "f16", "i32"])
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_as_in_jax(f: Callable[..., Any], x: np.ndarray) -> None:
    if x is INTS and f in map(FUNCTIONS.get, ("silu", "log_softmax", "log_softmax over rows")):
        assert f(nn, x).dtype == np.float32  # jax refuses integers, or warns
        return
    ours, theirs = f(nn, x), f(jax.nn, x)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    tolerance = 2e-3 if x is H else 1e-5
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", OVER_CLASSES)
def test_masks(name: str) -> None:
    x = np.where(MASK, X, np.float32(1000))
    for axis in (0, 1):
        ours = getattr(nn, name)(x, axis=axis, where=MASK)
        theirs = getattr(jax.nn, name)(x, axis=axis, where=MASK)
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-6)


def test_sigmoid() -> None:
    np.testing.assert_allclose(nn.sigmoid(X), jax.nn.sigmoid(X), rtol=1e-6)
    assert nn.sigmoid(1).dtype == np.float32 and nn.sigmoid(1.0).weak_type


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "silu", "softplus", "log_sigmoid", "gelu", "sigmoid"])
def test_derivatives_as_in_jax(name: str) -> None:
    ours = corejax.vmap(corejax.grad(getattr(nn, name)))(X[0])
    theirs = jax.vmap(jax.grad(getattr(jax.nn, name)))(X[0])
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_derivatives_stay_finite_where_functions_do() -> None:
    far = jnp.array([-200.0, 200.0])
    for name in ("elu", "softplus", "log_sigmoid", "silu", "gelu", "sigmoid"):
        assert jnp.isfinite(corejax.vmap(corejax.grad(getattr(nn, name)))(far)).all(), name
    for f in (nn.softmax, nn.log_softmax):
        assert jnp.isfinite(corejax.jacrev(f)(far)).all()


@pytest.mark.parametrize("name", OVER_CLASSES)
def test_jacobians(name: str) -> None:
    ours = corejax.jacrev(getattr(nn, name))(X[0])
    np.testing.assert_allclose(ours, jax.jacrev(getattr(jax.nn, name))(X[0]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(corejax.jacfwd(getattr(nn, name))(X[0]), ours, rtol=1e-5, atol=1e-6)


def test_derivatives_of_rows_without_classes() -> None:
    where = np.array([[True, False, True], [False, False, False]])
    for name in OVER_CLASSES:
        ours, theirs = (
            lib.grad(lambda x, nn=lib.nn, name=name: getattr(nn, name)(x, axis=1, where=where).sum())(X[:2, :3])
            for lib in (corejax, jax)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
        assert np.isfinite(ours).all()


def test_logsumexp_of_infinities_and_of_nothing() -> None:
    inf = np.inf
    for row in ([-inf, -inf], [inf, 1.0], [-inf, 0.0], []):
        x = np.array(row, np.float32)
        np.testing.assert_array_equal(nn.logsumexp(x), jax.nn.logsumexp(x))
    assert nn.softmax(np.zeros((0,), np.float32)).shape == (0,)


@pytest.mark.parametrize(
    "f",
    [
        lambda lib: lib.one_hot(np.arange(3), 4),
        lambda lib: lib.one_hot(2, 4),
        lambda lib: lib.one_hot([2, 0, 5], 4),
        lambda lib: lib.one_hot((1, 0), 3, axis=0),
        lambda lib: lib.one_hot(np.array([[0, 5], [-1, 1]], np.int8), 3, dtype="int8", axis=0),
        lambda lib: lib.one_hot(np.array([0, 1], np.uint8), 2, axis=-1, dtype=bool),
        lambda lib: lib.one_hot(np.array([], np.int32), 2),
    ],
)
def test_one_hot(f: Callable[[Any], Any]) -> None:
    (ours,), (theirs,) = outputs(f(nn)), outputs(f(jax.nn))
    assert types(ours) == types(theirs)
    np.testing.assert_array_equal(ours, theirs)


def test_gelu_without_approximation_says_what_is_missing() -> None:
    if hasattr(corejax.lax, "erf"):
        np.testing.assert_allclose(nn.gelu(X, approximate=False), jax.nn.gelu(X, approximate=False), rtol=1e-5)
    else:
        with pytest.raises(NotImplementedError, match="erf"):
            nn.gelu(X, approximate=False)


@pytest.mark.parametrize("name", ["relu", "gelu", "softmax", "log_softmax", "logsumexp"])
def test_compiled(name: str) -> None:
    check_compiled(lambda _, x: getattr(nn, name)(x), X)


def test_all_names_are_there() -> None:
    assert all(callable(getattr(nn, name)) for name in nn.__all__ if name != "initializers")
