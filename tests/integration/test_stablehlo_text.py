"""Lowered programs as text fixtures: what is written for a few programs, to the letter.

After a change on purpose: `REWRITE_FIXTURES=1 pytest tests/integration/test_stablehlo_text.py`, then read the
difference.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
import corejax.numpy as jnp

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "stablehlo"
REWRITE = "REWRITE_FIXTURES" in os.environ
F = np.float32


@corejax.jit
def twice(x: Any) -> Any:
    return x * 2.0


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "dot_of_sums": (lambda x, y: jnp.dot(x + 1, y + 1), (np.ones((3, 4), F), np.ones(4, F))),
    "jit_in_jit": (lambda x: twice(twice(x)) + twice(x), (np.ones(3, F),)),
    "gradient": (corejax.grad(lambda x: jnp.sum(-(jnp.sin(x) * 2.0) + x)), (np.ones(3, F),)),
    "cond": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), (np.bool_(True), np.ones(3, F))),
    "scan": (lambda c, xs: lax.scan(lambda a, x: (a + x, a * x), c, xs), (F(0), np.ones(4, F))),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 9.0, lambda c: (c[0] * 2.0, c[1] + x), (x, x)), (F(1),)),
    "while_over_a_batch": (
        corejax.vmap(lambda x: lax.while_loop(lambda c: c < 9.0, lambda c: c * 2.0, x)),
        (np.ones(3, F),),
    ),
    "scan_with_progress": (
        lambda c, xs: lax.scan(lambda a, x: (a + x, None), c, xs, progress=lax.ProgressBar(every=2)),
        (F(0), np.ones(4, F)),
    ),
    "cumulative": (lambda x: (lax.cumsum(x, 1), lax.cummax(x, 0, reverse=True)), (np.ones((2, 3), F),)),
    "batched_gradient": (
        corejax.vmap(corejax.grad(lambda w, x: jnp.sum(w @ x))),
        (np.ones((5, 2, 3), F), np.ones((5, 3), F)),
    ),
    "constants": (
        lambda x: (x & np.array([True, False]), jnp.full(2, np.inf), np.array([1, -2], np.int8)),
        (np.ones(2, bool),),
    ),
    "checkpoint": (
        corejax.grad(corejax.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x))))),
        (np.ones(3, F),),
    ),
    "optimization_barrier": (lambda x, y: lax.optimization_barrier((x + 1, y)), (np.ones(3, F), F(2))),
    "no_equations": (lambda x, y: y, (np.ones((0, 2), F), np.ones((), np.int32))),
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_text(name: str) -> None:
    fun, args = PROGRAMS[name]
    text = corejax.jit(fun).lower(*args).as_text(pretty=False)
    path = FIXTURES / f"{name}.mlir"
    if REWRITE:
        path.write_text(text)
    assert text == path.read_text()
