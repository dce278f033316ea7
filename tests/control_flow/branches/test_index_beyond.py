"""A choice beyond the branches is the nearest one, run, compiled, batched and differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.extend import primitives


def _bound() -> Any:
    """The primitive itself: `switch` would clamp before it."""
    program = corejax.make_jaxpr(lambda i, x: lax.switch(i, [lambda a: a * 2, lambda a: a * 3, lambda a: a * 5], x))(
        0, np.float32(1)
    )
    params = program.eqns[-1].params
    return lambda i, x: primitives["cond"].bind(i, x, **params)[0]


@pytest.mark.parametrize(("index", "factor"), [(-(2**31), 2), (-1, 2), (0, 2), (1, 3), (2, 5), (3, 5), (2**31 - 1, 5)])
def test_the_nearest_branch_is_taken(index: int, factor: int) -> None:
    choose, x, i = _bound(), np.float32(1.5), np.int32(index)
    assert choose(i, x) == corejax.jit(choose)(i, x) == factor * x
    assert corejax.grad(choose, argnums=1)(i, x) == corejax.jit(corejax.grad(choose, argnums=1))(i, x) == factor
    batched = corejax.vmap(choose, in_axes=(0, None))
    many = np.array([index, 1], np.int32)
    np.testing.assert_array_equal(batched(many, x), np.array([factor, 3]) * x)
    np.testing.assert_array_equal(corejax.jit(batched)(many, x), np.array([factor, 3]) * x)
