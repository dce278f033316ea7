"""Compiled writes of what is computed from the array itself: XLA on CPUs writes in place, and reads what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import jit, lax

Function = Callable[[Any], Any]


def below(x: Any) -> Any:
    return x.at[1:].set(x[:-1] * 2)


def over(pick: Function) -> Function:
    """Three steps of a loop."""
    return lambda x: lax.fori_loop(0, 3, lambda i, c: pick(c), x)


FORMS: dict[str, Function] = {
    "result with an axis more": lambda x: below(x)[:, None],
    "operand with an axis more": lambda x: x[:, None].at[1:].set(x[:-1, None] * 2),
    "operand with an axis less": lambda x: x[:, :1][:, 0].at[1:].set(x[:-1, 0] * 2),
    "computed before": lambda x: below(jnp.sort(x, 0)).reshape(8, 1, 2),
    "one row": lambda x: x.at[1].set(x[0] * 2 + x[1, ::-1])[None],
    "one row of many": lambda x: x[None].at[0, 2].add(x[1, ::-1]),
    "slice": lambda x: lax.dynamic_update_slice(x, x[:2] * 2, (1, 0)).reshape(8, 1, 2),
    "reversed": lambda x: lax.dynamic_update_slice(x[:, None], x[::-1, None][:5], (2, 0, 0)),
    "place from the array": lambda x: lax.dynamic_update_slice(x, x[:3], (jnp.argmax(x[:4, 0]), 0))[..., None],
    "used again": lambda x: (below(x)[:, None], x + 1),
    "twice": lambda x: below(below(x)[:, None][:, 0])[:, None],
    "in a function": lambda x: jit(lambda a, u: a.at[1:].set(u)[:, None])(x, x[:-1] * 2),
    "in a branch": lambda x: lax.cond(x[0, 0] > 9, lambda a: a[:, None] * 1, lambda a: below(a)[:, None], x),
    "in a loop": over(lambda c: below(c)[:, None][:, 0]),
    "in a loop of views": over(lambda c: c.reshape(8, 1, 2).at[1:].set(c[:-1, None] / 2).reshape(8, 2)),
    "in a scan": lambda x: lax.scan(lambda c, y: (c.at[1:].set(c[:-1]), below(c)[:, None]), x, x),
    "of nothing given": lambda x: below(jnp.cumsum(jnp.arange(16.0)).reshape(8, 2))[:, None] + x[:, None],
    "derivative": corejax.grad(lambda x: jnp.sum(below(jnp.sin(x))[:, None] ** 2)),
    "batches": corejax.vmap(lambda x: x.at[1:].set(x[:-1] * 2)[None]),
}


@pytest.mark.parametrize("form", FORMS)
def test_compiled_as_run(form: str) -> None:
    fun, x = FORMS[form], jnp.asarray(np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32))
    expected = corejax.tree.leaves(fun(x))
    given_away = corejax.tree.leaves(jit(lambda x: (fun(x), x * 1), donate_argnums=0)(x + 0))[:-1]
    for found in (corejax.tree.leaves(jit(fun)(x)), given_away):
        for ours, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(ours), np.asarray(right), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "float16", "complex64"])
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray(np.arange(16).reshape(8, 2) % 3).astype(dtype)

    def fun(x: Any) -> Any:
        return x.at[1:].set(x[:-1])[:, None]

    np.testing.assert_array_equal(np.asarray(jit(fun)(x)), np.asarray(fun(x)))


def test_only_what_depends_on_the_array_is_stored_before() -> None:
    x = jnp.ones((8, 2))

    def stores(fun: Callable[..., Any]) -> bool:
        return "@identity" in jit(fun).lower(x, x + 1).as_text()

    assert stores(lambda x, y: x.at[1:].set(x[:-1] * 2))
    assert stores(lambda x, y: jnp.sort(x).at[1:].set(jnp.sort(x)[:-1] + y[1:]))
    assert not stores(lambda x, y: x.at[1:].set(y[1:] * 2))
    assert not stores(lambda x, y: x.at[1:].set(2.0))
    assert not stores(lambda x, y: x.at[1, 0].set(x[0, 0] * 2))
    assert not stores(lambda x, y: jnp.zeros((8, 2)).at[1:].set(x[1:] * 2))
    assert not stores(lambda x, y: lax.fori_loop(0, 8, lambda i, c: c.at[i].set(y[i] * 2), x))
    assert not stores(lambda x, y: x.at[jnp.array([0, 3])].set(x[:2]))  # XLA makes a loop of it
