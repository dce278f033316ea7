"""Functions of arrays have jax's parameters, in jax's order and with its defaults."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import corejax.numpy as jnp

jax_numpy = pytest.importorskip("jax.numpy")

MODULES = [
    "creation",
    "cumulative",
    "diagonals",
    "differences",
    "editing",
    "files",
    "histograms",
    "interpolation",
    "joining",
    "manipulation",
    "moments",
    "nan_functions",
    "packing",
    "padding",
    "polynomials",
    "ranges",
    "reductions",
    "repeating",
    "splitting",
    "statistics",
    "window_functions",
]
NOT_HERE = {"out_sharding"}
OTHERWISE = {"array"}  # takes `copy` and `order` by position too, where jax has `*args`


def parameters(f: Any) -> list[tuple[str, Any, str]]:
    found = inspect.signature(f).parameters.values()
    return [(p.name, p.kind, repr(p.default)) for p in found if p.name not in NOT_HERE]


def test_parameters() -> None:
    compared = 0
    for name in sorted({*jnp.__all__} & {*dir(jax_numpy)} - OTHERWISE):
        ours, theirs = getattr(jnp, name), getattr(jax_numpy, name)
        if getattr(ours, "__module__", "").rpartition(".")[2] in MODULES:
            assert parameters(ours) == parameters(theirs), name
            compared += 1
    assert compared > 100
