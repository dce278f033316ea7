"""Grids of devices, and arrays of parts that processes have, beside jax's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import NamedSharding, P
from corejax.experimental import mesh_utils, multihost_utils


@pytest.mark.parametrize("shape", [(8,), (2, 4), (4, 1, 2)])
def test_device_meshes_are_jaxs(shape: tuple[int, ...]) -> None:
    theirs = pytest.importorskip("jax.experimental.mesh_utils")
    got, want = mesh_utils.create_device_mesh(shape), theirs.create_device_mesh(shape)
    assert [d.id for d in got.flat] == [d.id for d in want.flat] and got.shape == want.shape
    x = corejax.device_put(np.zeros(8), NamedSharding(corejax.sharding.Mesh(got.reshape(8), "x"), P("x")))
    assert len(x.addressable_shards) == 8


def device(number: int, process: int) -> Any:
    return SimpleNamespace(
        id=number, process_index=process, slice_index=process // 2, platform="cpu", device_kind="cpu"
    )


@pytest.mark.parametrize(
    ("inner", "outer", "by_process"),
    [((2, 1), (1, 4), True), ((1, 2), (2, 2), True), ((4,), (2,), False), ((2, 2), (2, 1), False)],
)
def test_hybrid_meshes_are_jaxs(inner: Any, outer: Any, by_process: bool) -> None:
    theirs = pytest.importorskip("jax.experimental.mesh_utils")
    devices = [device(i, i // 2) for i in range(8)]
    got, want = (
        lib.create_hybrid_device_mesh(inner, outer, devices, process_is_granule=by_process)
        for lib in (mesh_utils, theirs)
    )
    assert got.shape == want.shape
    assert [d.id for d in got.flat] == [d.id for d in want.flat]


def test_local_arrays_become_global_ones_and_back() -> None:
    mesh = corejax.make_mesh((4, 2), ("x", "y"))
    tree = {"a": np.arange(32.0).reshape(8, 4), "b": np.arange(3)}
    specs = {"a": P("x", "y"), "b": None}
    made = multihost_utils.host_local_array_to_global_array(tree, mesh, specs)
    assert made["a"].sharding.spec == P("x", "y") and made["b"].is_fully_replicated
    back = multihost_utils.global_array_to_host_local_array(made, mesh, {"a": P("y"), "b": None})
    assert back["a"].sharding.spec == P("y") and back["b"] is made["b"]
    for name, value in tree.items():
        np.testing.assert_array_equal(np.asarray(made[name]), value)
    np.testing.assert_array_equal(np.asarray(back["a"]), tree["a"])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: mesh_utils.create_device_mesh((3, 2)), ValueError, r"\(3, 2\) is of 6 devices, but there are 8"),
        (lambda: mesh_utils.create_hybrid_device_mesh((2,), (2, 2)), ValueError, "a size for each axis"),
        (lambda: mesh_utils.create_hybrid_device_mesh((4,), (2,)), ValueError, "2 groups of devices, but there are 1"),
        (
            lambda: multihost_utils.host_local_array_to_global_array(np.ones(8), corejax.make_mesh((8,), "x"), "x"),
            TypeError,
            "pytree of PartitionSpecs",
        ),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
