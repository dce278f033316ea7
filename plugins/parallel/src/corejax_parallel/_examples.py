"""Example applications of the plugin's primitives, which `corejax verify parallel` uses to check their rules.

A collective is applied inside `shard_map`, along an axis of up to four devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from corejax.extend import Example, Primitive, ShapedArray, backends, find_primitive, get_aval, stage_closed
from corejax_parallel.mesh import Mesh
from corejax_parallel.partition_spec import PartitionSpec

AXIS = "i"
F32 = np.dtype(np.float32)


def examples_of(primitive: str) -> list[Example]:
    """Return the examples of a primitive; an empty list if it does not belong to this plugin."""
    return _MAKERS[primitive]() if primitive in _MAKERS else []


def _mesh() -> Mesh:
    devices = backends.find("xla").backend.devices()
    count = max(n for n in (1, 2, 4) if n <= len(devices))
    return Mesh(np.array(devices[:count], dtype=object), (AXIS,))


def _mapped(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Map `apply` over blocks along the first axis of its operands."""
    from corejax_parallel.mapping.shard_map import shard_map

    spec = PartitionSpec(AXIS)
    mapped: Callable[..., Any] = shard_map(apply, mesh=_mesh(), in_specs=spec, out_specs=spec, check_vma=False)
    return mapped


def _collective(*shapes: tuple[int, ...], dtype: Any = F32, **params: Any) -> list[Example]:
    """Return examples of a collective, with blocks of these shapes."""
    size = _mesh().size
    return [
        Example((ShapedArray((size * shape[0], *shape[1:]), np.dtype(dtype)),), params, within=_mapped)
        for shape in shapes
    ]


def _reductions(**params: Any) -> list[Example]:
    ungrouped = _collective((3,), (2, 3), axis_name=(AXIS,), axis_index_groups=None, **params)
    singletons = tuple((k,) for k in range(_mesh().size))
    return [*ungrouped, *_collective((2,), axis_name=(AXIS,), axis_index_groups=singletons, **params)]


def _gathers() -> list[Example]:
    params: dict[str, Any] = {"axis_name": AXIS, "axis_index_groups": None, "size": _mesh().size}
    return [
        *_collective((2, 3), axis=1, tiled=False, **params),
        *_collective((2, 3), axis=0, tiled=True, **params),
    ]


def _scatters() -> list[Example]:
    size = _mesh().size
    params: dict[str, Any] = {"axis_name": AXIS, "axis_index_groups": None, "size": size}
    return [
        *_collective((3, size), axis=1, tiled=False, **params),
        *_collective((2 * size,), axis=0, tiled=True, **params),
    ]


def _exchanges() -> list[Example]:
    size = _mesh().size  # the operand has values, because only an axis of this size can be exchanged
    x = np.random.default_rng(0).uniform(-2, 2, (size * size, 3)).astype(F32)
    params = {"axis_name": AXIS, "axis_index_groups": None, "axis": 0}
    return [Example((x,), params, within=_mapped)]


def _ragged() -> list[Example]:
    """Return an example in which each element sends two rows to each element."""
    size = _mesh().size
    rng = np.random.default_rng(0)
    rows, room = (rng.uniform(-2, 2, (size * 2 * size, 3)).astype(F32) for _ in range(2))
    starts = np.tile(2 * np.arange(size, dtype=np.int32), size)
    places = np.repeat(2 * np.arange(size, dtype=np.int32), size)
    two = np.full(size * size, 2, np.int32)
    params = {"axis_name": (AXIS,), "axis_index_groups": None, "axis_sizes": (size,)}
    return [Example((rows, room, starts, two, places, two), params, within=_mapped)]


def _permutations() -> list[Example]:
    size = _mesh().size
    ring, some = tuple((k, (k + 1) % size) for k in range(size)), ((0, size - 1),)
    return [example for perm in (ring, some) for example in _collective((3,), axis_name=(AXIS,), perm=perm)]


def _indices() -> list[Example]:
    from corejax_lax_basic import lax

    def within(apply: Callable[..., Any]) -> Callable[..., Any]:
        return _mapped(lambda x: [lax.broadcast(index, x.shape) for index in apply()])

    return [Example((np.arange(1, _mesh().size + 1, dtype=np.int32),), {"axis_name": AXIS}, within=within)]


def _of_program(primitive: Primitive, fun: Callable[..., Any], *operands: Any) -> Example:
    """Return the example of a primitive's equation in the program of a function."""
    eqn = next(
        eqn
        for eqn in stage_closed(lambda *args: [fun(*args)], [get_aval(x) for x in operands]).jaxpr.eqns
        if eqn.primitive is primitive
    )
    return Example(tuple(atom.aval for atom in eqn.invars), eqn.params)


def _maps() -> list[Example]:
    from corejax_lax_basic import lax
    from corejax_parallel.collectives.reductions import psum
    from corejax_parallel.mapping.shard_map import shard_map

    mesh, spec, replicated = _mesh(), PartitionSpec(AXIS), PartitionSpec()
    x, w = np.ones((2 * mesh.size, 3), F32), np.ones((2 * mesh.size, 2), F32)
    summed = shard_map(
        lambda x, w: psum(lax.dot_general(lax.sin(x), w, (((0,), (0,)), ((), ()))), AXIS),
        mesh=mesh,
        in_specs=spec,
        out_specs=replicated,
    )
    blocks = shard_map(lambda x, y: x * y, mesh=mesh, in_specs=(spec, replicated), out_specs=spec)
    p = find_primitive("shard_map")
    assert p is not None
    return [_of_program(p, summed, x, w), _of_program(p, blocks, x, np.ones((2, 3), F32))]


def _pmaps() -> list[Example]:
    from corejax_lax_basic import lax
    from corejax_parallel.collectives.reductions import psum
    from corejax_parallel.mapping.pmap import pmap

    mesh = _mesh()
    mapped = pmap(lambda x, y: lax.sin(x) * psum(x * y, AXIS), AXIS, in_axes=(1, None), devices=list(mesh.device_tuple))
    x = np.ones((2, mesh.size), F32)
    call = stage_closed(lambda *args: [mapped(*args)], [get_aval(x), get_aval(np.ones(2, F32))])
    eqns = [eqn for eqn in call.jaxpr.eqns if eqn.primitive.name == "xla_pmap"]
    return [Example(tuple(atom.aval for atom in eqn.invars), eqn.params) for eqn in eqns]


def _partitioned() -> list[Example]:
    from corejax_lax_basic import lax
    from corejax_parallel.partitioning.custom_partitioning import custom_partitioning, custom_partitioning_p

    def sines(x: Any) -> Any:
        return lax.sin(x)

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        return mesh, sines, result.sharding, (result.sharding,)

    fun = custom_partitioning(sines)
    fun.def_partition(partition, sharding_rule="i j -> i j")
    example = _of_program(custom_partitioning_p, fun, np.ones((4, 2), F32))
    return [replace(example, skip={"text": "the partitioning is a Python function"})]


_MAKERS: dict[str, Callable[[], list[Example]]] = {
    "all_gather": _gathers,
    "all_gather_invariant": _gathers,
    "all_to_all": _exchanges,
    "axis_index": _indices,
    "custom_partitioning": _partitioned,
    "pmax": _reductions,
    "pmin": _reductions,
    "ppermute": _permutations,
    "psum": _reductions,
    "pvary": lambda: _collective((3,), (2, 3), axis_name=(AXIS,)),
    "ragged_all_to_all": _ragged,
    "reduce_scatter": _scatters,
    "shard_map": _maps,
    "xla_pmap": _pmaps,
}
