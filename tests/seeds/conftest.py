"""The two sets of primitives that autodidax's programs run on: `corejax.lax`, and the tutorial's own."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from corejax import config


@pytest.fixture
def wide() -> Iterator[None]:
    """Python floats are float64, as in NumPy, on which the tutorial runs."""
    with config.override(default_dtype_bits=64):
        yield


@pytest.fixture(params=["lax", "own"])
def ops(request: pytest.FixtureRequest, wide: None) -> Any:
    """sin, cos, neg, add, mul, greater, reduce_sum, transpose, broadcast."""
    if request.param == "own":
        from tests.seeds import autodidax_primitives

        return autodidax_primitives
    from corejax import lax

    return SimpleNamespace(
        sin=lax.sin,
        cos=lax.cos,
        neg=lambda x: -x,
        add=lambda x, y: x + y,
        mul=lambda x, y: x * y,
        greater=lambda x, y: x > y,
        reduce_sum=lambda x, axis: lax.reduce_sum(x, (axis,)),
        transpose=lax.transpose,
        broadcast=lambda x, shape, axes: lax.broadcast_in_dim(
            x, shape, [i for i in range(len(shape)) if i not in axes]
        ),
    )
