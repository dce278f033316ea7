"""Reductions over the names of mapped axes, beside the same ones over axes of the array, and jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.nn
import corejax.numpy as jnp
from corejax import grad, jit, vmap

pytest.importorskip("corejax_parallel")
pytestmark = pytest.mark.sampled
X = np.float32([[0.5, 2, -1, 4], [3, 3.5, 8, 0], [0, -7, 2, 2]])
MASK = np.array([True, False, True, True])
# name -> options; the result has one element for each that was reduced, or those of the array
REDUCTIONS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("sum", "mean", "max", "min", "any", "all", "var", "std", "ptp", "count_nonzero")},
    **{name: {} for name in ("nansum", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd", "logsumexp", "logmeanexp")},
    **{name: {"where": MASK} for name in ("nanmean ", "mean ", "var ", "any ", "logsumexp ")},
    "sum ": {"where": MASK, "initial": 3.0},
    "max ": {"where": MASK, "initial": 3.0},
    "var  ": {"ddof": 1},
}
# axes of an element, and of the whole array
WAYS: dict[str, Any] = {
    "name": ("i", 0),
    "tuple": (("i",), 0),
    "several": (("i", 0), (0, 1)),
    "last": ((-1, "i"), (0, 1)),
}


def reduction(name: str) -> Any:
    name = name.strip()
    return getattr(jnp, name, None) or getattr(corejax.nn, name)


@pytest.mark.parametrize(("axis", "whole"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, axis: Any, whole: Any) -> None:
    f, options = reduction(name), REDUCTIONS[name]
    wanted = f(X, axis=whole, **options)
    for way in (lambda f: f, jit):
        out = way(vmap(lambda x: f(x, axis=axis, **options), axis_name="i"))(X)
        np.testing.assert_allclose(out, np.broadcast_to(wanted, out.shape), rtol=1e-5)
        assert out.dtype == wanted.dtype
        kept = way(vmap(lambda x: f(x, axis=axis, keepdims=True, **options), axis_name="i"))(X)
        assert kept.shape == ((3, 4) if whole == 0 else (3, 1))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "any", "all", "var", "std"])
@pytest.mark.parametrize("axis", ["i", ("i", 0)], ids=["name", "several"])
def test_methods_are_the_functions(name: str, axis: Any) -> None:
    def run(f: Any) -> Any:
        return vmap(f, axis_name="i")(jnp.asarray(X))

    if name == "prod":
        with pytest.raises(NotImplementedError, match=r"prod: not supported over mapped axes, got the names \('i',\)"):
            run(lambda x: x.prod(axis))
        return
    np.testing.assert_array_equal(run(lambda x: getattr(x, name)(axis)), run(lambda x: getattr(jnp, name)(x, axis)))


@pytest.mark.parametrize("f", [corejax.nn.softmax, corejax.nn.log_softmax, corejax.nn.standardize])
@pytest.mark.parametrize("axis", ["i", ("i", 0)], ids=["name", "several"])
def test_what_keeps_its_shape(f: Any, axis: Any) -> None:
    wanted = f(X, axis=0 if axis == "i" else (0, 1))
    np.testing.assert_allclose(vmap(lambda x: f(x, axis=axis), axis_name="i")(X), wanted, rtol=1e-5, atol=1e-5)


def test_derivatives() -> None:
    def named(x: Any) -> Any:
        return jnp.sum(vmap(lambda x: jnp.var(x, axis=("i", 0)) * x, axis_name="i")(x))

    np.testing.assert_allclose(grad(named)(X), grad(lambda x: jnp.sum(jnp.var(x) * x))(X), rtol=1e-5)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "var", "nanmean", "logsumexp", "ptp"])
def test_beside_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    ours, theirs = reduction(name), getattr(jax.numpy, name, None) or getattr(jax.nn, name)
    out = vmap(lambda x: ours(x, axis=("i", 0)), axis_name="i")(X)
    np.testing.assert_allclose(out, jax.vmap(lambda x: theirs(x, axis=("i", 0)), axis_name="i")(X), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: jnp.sum(x, "rows"), NameError, "^sum: no axis is named 'rows'; active axes: 'i'"),
        (lambda x: jnp.mean(x, ("j", 0)), NameError, "^mean: no axis is named 'j'"),
        (lambda x: x.max("j"), NameError, "^max: no axis is named 'j'"),
        (lambda x: jnp.sum(x, ("i", 5)), ValueError, "^sum: axis 5 is out of bounds"),
        (lambda x: jnp.sum(x, ("i", "i")), ValueError, "each name must be given once"),
        (lambda x: jnp.cumsum(x, "i"), TypeError, "^cumsum: axis is an integer, got 'i'"),
    ],
)
def test_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        vmap(call, axis_name="i")(X)
