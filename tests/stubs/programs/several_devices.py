"""Sharded arrays and programs: Mesh, NamedSharding, PartitionSpec and shard_map."""

from functools import partial

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax import Array, lax
from corejax.experimental.shard_map import shard_map
from corejax.sharding import Mesh, NamedSharding
from corejax.sharding import PartitionSpec as P

devices = np.array(corejax.devices()[:1]).reshape(1, 1)
mesh = Mesh(devices, axis_names=("data", "model"))
batch_sharding = NamedSharding(mesh, P("data", None))
replicated = NamedSharding(mesh, P())


@partial(corejax.jit, in_shardings=(replicated, batch_sharding), out_shardings=batch_sharding)
def forward(weights: Array, x: Array) -> Array:
    hidden = lax.with_sharding_constraint(x @ weights, NamedSharding(mesh, P("data", "model")))
    return jnp.maximum(hidden, 0.0)


@partial(shard_map, mesh=mesh, in_specs=(P("data"), P()), out_specs=P())
def mean_loss(x: Array, weights: Array) -> Array:
    return lax.pmean(jnp.mean((x @ weights) ** 2), ("data", "model"))


def normalise(x: Array) -> Array:
    return x / lax.psum(x, "data")


weights = corejax.device_put(jnp.ones((4, 2)), replicated)
x = corejax.device_put(np.ones((8, 4), np.float32), batch_sharding)
out = forward(weights, x)
gradients = corejax.jit(corejax.grad(mean_loss, argnums=1))(x, weights)
shares = corejax.vmap(normalise, axis_name="data")(jnp.arange(1.0, 4.0))
local = [shard.data.shape for shard in out.addressable_shards]
square = corejax.make_mesh((1, 1), ("rows", "columns"))
params = corejax.tree.map(lambda leaf: corejax.device_put(leaf, NamedSharding(square, P())), {"w": weights})
with mesh:
    constrained = corejax.jit(lambda v: lax.with_sharding_constraint(v, P("data")))(x)
print(out.sharding, out.sharding.is_equivalent_to(batch_sharding, out.ndim), gradients.shape, shares, local)
print(corejax.device_count(), corejax.local_devices()[0].platform, mesh.shape["data"], params["w"].shape, constrained)
