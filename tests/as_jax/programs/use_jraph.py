"""A graph network."""

import jax.numpy as jnp
import jraph

graph = jraph.GraphsTuple(
    nodes=jnp.ones((3, 2)),
    edges=jnp.ones((2, 1)),
    senders=jnp.array([0, 1]),
    receivers=jnp.array([1, 2]),
    n_node=jnp.array([3]),
    n_edge=jnp.array([2]),
    globals=jnp.ones((1, 1)),
)
network = jraph.GraphNetwork(
    update_edge_fn=lambda e, s, r, g: e + s.sum(-1, keepdims=True),
    update_node_fn=lambda n, s, r, g: n + r,
    update_global_fn=lambda n, e, g: g + n.sum(-1, keepdims=True),
)
assert network(jraph.batch([graph, graph])).globals.shape == (2, 1)
