"""Jacobians with array operations: by several arguments, of functions with static names, run and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax
from corejax import numpy as jnp

X = np.array([0.5, -1.0, 2.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


def test_names_of_functions_are_kept() -> None:
    def f(x: Any) -> Any:
        """Doc."""
        return x

    for g in (corejax.jacfwd(f), corejax.jacrev(f)):
        assert g.__name__ == "f" and g.__wrapped__ is f  # type: ignore[attr-defined]


def test_forward_and_reverse_agree() -> None:
    def f(x: Any, m: Any) -> Any:
        return {"product": m @ jnp.sin(x), "sum": jnp.sum(m * x)}

    for run in (lambda g: g, corejax.jit):
        forward, reverse = (run(of(f, argnums=(0, 1)))(X, M) for of in (corejax.jacfwd, corejax.jacrev))
        for name, shape in (("product", (2,)), ("sum", ())):
            for a, b, argument in zip(forward[name], reverse[name], (X, M), strict=True):
                assert a.shape == b.shape == shape + argument.shape
                np.testing.assert_allclose(a, b, rtol=1e-6)
        np.testing.assert_allclose(forward["product"][0], M * np.cos(X), rtol=1e-6)


def test_hessian_of_a_batch() -> None:
    def f(x: Any) -> Any:
        return jnp.sum(x**3)

    hessians = corejax.vmap(corejax.hessian(f))(M)
    np.testing.assert_allclose(hessians, [np.diag(6 * row) for row in M], rtol=1e-6)
