"""Names, signatures and attributes of `corejax.export` beside jax's."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import corejax
from corejax import export
from tests.signatures import difference

jax = pytest.importorskip("jax")
pytest.importorskip("jax.export")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_attributes_are_those_of_jax() -> None:
    def f(x, unused, y):
        return y * 2, x + 1

    ours = export.export(corejax.jit(f))(X, X, np.int32(1))
    theirs = jax.export.export(jax.jit(f))(X, X, np.int32(1))
    for name in ("fun_name", "platforms", "nr_devices", "module_kept_var_idx", "ordered_effects", "unordered_effects"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for mine, other in ((ours.in_avals, theirs.in_avals), (ours.out_avals, theirs.out_avals)):
        assert [(a.shape, a.dtype) for a in mine] == [(a.shape, a.dtype) for a in other]
    assert ours.has_vjp() and not export.deserialize(ours.serialize()).has_vjp()
    assert "func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<i32>)" in ours.mlir_module()
    assert ours.mlir_module(serialized=False).operation.verify()
    assert [(a.shape, a.dtype) for a in ours.vjp().out_avals] == [((2, 3), np.float32), ((2, 3), np.float32)]


def test_signatures_are_those_of_jax() -> None:
    newer = {"symbolic_dim_bounds"}  # which JAX has from 0.12 on
    ours = {name: getattr(export, name) for name in export.__all__ if name not in newer}
    assert not set(jax.export.__all__) - set(ours)
    for name, thing in ours.items():
        if inspect.isfunction(thing):
            theirs = inspect.signature(getattr(jax.export, name))
            hidden = frozenset(p for p in theirs.parameters if p.startswith("_"))
            assert not [n for n in inspect.signature(thing).parameters if n not in theirs.parameters], name
            assert hidden or not difference(thing, getattr(jax.export, name)), name
