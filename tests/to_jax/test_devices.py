"""A corejax program over several devices of JAX: shard_map, pmap, and what the compiler partitions."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cnp
from tests.own_process import CHILD

jax = pytest.importorskip("jax")
pytest.importorskip("corejax_to_jax")
jnp = jax.numpy

pytestmark = pytest.mark.own_process

if CHILD:  # before jax has devices
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"

X = np.linspace(0.1, 1, 8).reshape(4, 2).astype(np.float32)


@pytest.fixture
def mesh() -> Any:
    return jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))


def ours(x: Any) -> Any:
    return corejax.to_jax(lambda x: cnp.sin(x) * x.sum(1, keepdims=True))(x)


def theirs(x: Any) -> Any:
    return jnp.sin(x) * x.sum(1, keepdims=True)


def test_shard_map(mesh: Any) -> None:
    spec = jax.sharding.PartitionSpec("i")

    def value(f: Any) -> Any:
        mapped = jax.shard_map(
            lambda x, y: f(x * y), mesh=mesh, in_specs=(spec, jax.sharding.PartitionSpec()), out_specs=spec
        )
        return lambda x: (mapped(x, jnp.float32(2)) ** 2).sum()

    np.testing.assert_allclose(jax.jit(jax.grad(value(ours)))(X), jax.grad(value(theirs))(X), rtol=1e-5)


def test_pmap() -> None:
    x = X.reshape(2, 2, 2)
    np.testing.assert_allclose(jax.pmap(ours)(x), jax.vmap(theirs)(x), rtol=1e-6)


def test_a_sharded_argument_is_not_gathered(mesh: Any) -> None:
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i")))
    compiled = jax.jit(jax.vmap(jax.grad(lambda r: corejax.to_jax(cnp.tanh)(r).sum()))).lower(x).compile()
    np.testing.assert_allclose(compiled(x), 1 - np.tanh(X) ** 2, rtol=1e-5)
    assert "all-gather" not in compiled.as_text()
