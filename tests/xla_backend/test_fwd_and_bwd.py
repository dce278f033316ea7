"""`fwd_and_bwd`: `vjp` as two functions, each compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp

X = jnp.asarray(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))


@pytest.mark.parametrize("jitted", [True, False])
def test_it_is_vjp(jitted: bool) -> None:
    traced = []

    def f(x: Any, n: Any, w: dict[str, Any], scale: Any = 1.0) -> Any:
        traced.append(x)
        return scale * jnp.sin(x @ w["w"]) ** n

    fwd, bwd = corejax.fwd_and_bwd(f, (0, -1), jitted=jitted)
    for k in range(3):
        x, w = X + k, {"w": X - k}
        out, residuals = fwd(x, 2, w, scale=3.0)
        wanted, pullback = corejax.vjp(lambda x, w: f(x, 2, w, 3.0), x, w)
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)
        for a, b in zip(corejax.tree.leaves(bwd(residuals, X)), corejax.tree.leaves(pullback(X)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert len(traced) == 3 + (1 if jitted else 3)


def test_one_argument_and_auxiliary_results() -> None:
    fwd, bwd = corejax.fwd_and_bwd(lambda x: (x**2, {"n": x + 1}), 0, has_aux=True)
    out, residuals, aux = fwd(X)
    np.testing.assert_allclose(out, X**2)
    np.testing.assert_allclose(aux["n"], X + 1)
    np.testing.assert_allclose(bwd(residuals, jnp.ones_like(X)), 2 * X)
    (ct,) = corejax.fwd_and_bwd(jnp.sin, (0,))[1](corejax.fwd_and_bwd(jnp.sin, (0,))[0](X)[1], X)
    np.testing.assert_allclose(ct, X * jnp.cos(X), rtol=1e-6)


def test_transformations_go_through() -> None:
    fwd, bwd = corejax.fwd_and_bwd(jnp.sin, 0)

    def slope(x: Any) -> Any:
        out, residuals = fwd(x)
        return bwd(residuals, jnp.ones_like(out))

    np.testing.assert_allclose(corejax.vmap(slope)(X), jnp.cos(X), rtol=1e-6)
    np.testing.assert_allclose(corejax.vmap(corejax.vmap(corejax.grad(slope)))(X), -jnp.sin(X), rtol=1e-6)


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="fwd_and_bwd takes a function, got 3"):
        corejax.fwd_and_bwd(3, 0)
    with pytest.raises(TypeError, match="argnums must be an integer or a sequence of integers, got 'x'"):
        corejax.fwd_and_bwd(jnp.sin, "x")
    with pytest.raises(TypeError, match="argnums has 1, but the call has 1 positional argument"):
        corejax.fwd_and_bwd(jnp.sin, 1)[0](X)
    with pytest.raises(ValueError, match="names an argument twice"):
        corejax.fwd_and_bwd(jnp.dot, (0, -2))[0](X, X)
