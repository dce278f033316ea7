"""How many Python functions an eager call runs: what its speed hangs on, without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import corejax
import corejax.numpy as jnp

X = jnp.arange(8.0)
Y = X * 2
GRADIENT = corejax.grad(lambda x: jnp.sum(jnp.sin(x) * 2))


@pytest.mark.parametrize(
    ("call", "most"),
    [(lambda: X + Y, 4), (lambda: jnp.sin(X), 4), (lambda: GRADIENT(X), 190)],
    ids=["add", "sin", "grad"],
)
def test_calls(call: Callable[[], Any], most: int) -> None:
    with corejax.config.override(check_jaxprs=False):
        for _ in range(10):
            call()
        count = 0

        def profile(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event == "call"

        previous = sys.getprofile()
        sys.setprofile(profile)
        try:
            call()
        finally:
            sys.setprofile(previous)
    assert count - 1 <= most  # without that of `call` itself
