"""Programs that are lowered without devices, and compiled for devices that are there, or not: all are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import P, jit, lax
from corejax.experimental import topologies
from corejax.sharding import AbstractMesh, Mesh, NamedSharding

X = np.arange(64, dtype=np.float32).reshape(8, 8) / 64


def layer(np_: Any) -> Any:
    return lambda x, w: np_.tanh(x @ w) @ w.T


def typed(library: Any, mesh: Any, *specs: Any) -> list[Any]:
    named = library.sharding.NamedSharding
    return [library.ShapeDtypeStruct(X.shape, X.dtype, sharding=named(mesh, spec)) for spec in specs]


def test_lowered_over_an_abstract_mesh_runs_on_given_devices() -> None:
    lowered = jit(layer(jnp)).lower(*typed(corejax, AbstractMesh((4, 2), ("a", "b")), P("a"), P(None, "b")))
    for devices in (corejax.devices(), corejax.devices()[::-1]):
        compiled = lowered.compile(device_assignment=devices)
        mesh = Mesh(np.array(devices).reshape(4, 2), ("a", "b"))
        assert compiled.input_shardings[0] == (NamedSharding(mesh, P("a")), NamedSharding(mesh, P(None, "b")))
        for _ in range(2):
            y = compiled(X, X)
            assert y.sharding == compiled.output_shardings == NamedSharding(mesh, P("a"))
            np.testing.assert_allclose(y, np.tanh(X @ X) @ X.T, rtol=1e-5)


def test_as_jax_does() -> None:
    jax = pytest.importorskip("jax")
    ours = jit(layer(jnp)).trace(*typed(corejax, AbstractMesh((4, 2), ("a", "b")), P("a"), P(None, "b")))
    mesh = jax.sharding.AbstractMesh((4, 2), ("a", "b"))
    theirs = jax.jit(layer(jax.numpy)).trace(*typed(jax, mesh, jax.P("a"), jax.P(None, "b")))
    a = ours.lower(lowering_platforms=("cpu",)).compile(device_assignment=tuple(corejax.devices()))
    b = theirs.lower(lowering_platforms=("cpu",)).compile(device_assignment=tuple(jax.devices()))
    assert repr(a.output_shardings) == repr(b.output_shardings)
    assert [repr(x) for x in a.input_shardings[0]] == [repr(x) for x in b.input_shardings[0]]
    np.testing.assert_allclose(a(X, X), b(X, X), rtol=1e-6)
    with pytest.raises(RuntimeError, match="device_assignment"):
        theirs.lower(lowering_platforms=("cpu",)).compile()
    with pytest.raises(RuntimeError, match="it is lowered for a mesh without devices"):
        ours.lower().compile()


def test_devices_that_are_not_there_get_the_same_program() -> None:
    devices = {"there": corejax.devices(), "not there": topologies.get_topology_desc("4x2", "cpu").devices}

    def step(w: Any, x: Any) -> Any:
        def one(x: Any, w: Any) -> Any:
            return lax.with_sharding_constraint(jnp.tanh(x @ w), P("a", None)), x.sum()

        return lax.scan(one, x, w)

    texts, memory = [], []
    for these in devices.values():
        mesh = corejax.make_mesh((4, 2), ("a", "b"), devices=these)
        w = corejax.ShapeDtypeStruct((3, 8, 8), np.float32, sharding=NamedSharding(mesh, P(None, None, "b")))
        with corejax.set_mesh(mesh):
            compiled = jit(corejax.value_and_grad(lambda w, x: step(w, x)[0].sum())).lower(w, X).compile()
        texts.append(compiled.as_text())
        memory.append(compiled.memory_analysis())
    assert texts[0] == texts[1] and memory[0]["temp"] == memory[1]["temp"]
    assert len(corejax.debug.collectives(compiled)) > 1


def test_shardings_without_devices_go_where_the_arguments_are() -> None:
    rows = NamedSharding(AbstractMesh((4, 2), ("a", "b")), P("a"))
    mesh = corejax.make_mesh((4, 2), ("a", "b"))
    x = corejax.device_put(X, NamedSharding(mesh, P("a")))
    y = jit(jnp.sin, in_shardings=rows, out_shardings=rows)(x)
    assert y.sharding == NamedSharding(mesh, P("a"))
    np.testing.assert_allclose(y, np.sin(X), rtol=1e-6)
    few = corejax.device_put(X, NamedSharding(corejax.make_mesh((2,), ("a",)), P("a")))
    with pytest.raises(ValueError, match="over a mesh of 8 devices, but the program runs on 2"):
        jit(jnp.sin, in_shardings=rows)(few)
    np.testing.assert_allclose(jit(jnp.sin)(few), np.sin(X), rtol=1e-6)
