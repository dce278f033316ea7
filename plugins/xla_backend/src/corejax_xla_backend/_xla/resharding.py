"""Moving values to a sharding over several devices, and from one sharding to another."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from corejax.extend import Backend, ClosedJaxpr, ShapedArray, stage_closed
from corejax.extend.devices import DEFAULT_OPTIONS, Target
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._programs import compiled
from corejax_xla_backend.sharding import Sharding, TiledSharding, check_fits


def put_sharded(backend: Backend, value: Any, aval: ShapedArray, sharding: Sharding) -> Any:
    """Return a buffer over the devices of a sharding, from an immutable NumPy array or another buffer.

    Raises:
        ValueError: the sharding has more dimensions than the array, or does not divide a size.
    """
    check_fits("device", sharding, aval.shape)
    place = _jaxlib.placement(sharding, aval.ndim)
    if isinstance(value, np.ndarray):
        return _jaxlib.put_parts(value, aval, place)
    moved = _jaxlib.move_parts(value, place)
    if moved is None and _jaxlib.is_spread(value):
        start = _jaxlib.device_of(value)
        if start.device_set == sharding.device_set and not _jaxlib.is_deleted(value):
            return by_program(backend, value, start, sharding)
    return _jaxlib.place_parts(value, place) if moved is None else moved


def by_program(backend: Backend, buffer: Any, start: Sharding, end: Sharding) -> Any:
    """Reshard a buffer over the same devices by a compiled program; all processes that hold parts must call this."""
    ndim, devices = buffer.aval.ndim, start.device_tuple
    to = end
    if end.device_tuple != devices:  # all shardings of a program must have the devices in one order
        position = {device: i for i, device in enumerate(devices)}
        to = TiledSharding(devices, np.array([position[d] for d in end.device_tuple])[end.tiles(ndim)])
    options = DEFAULT_OPTIONS._replace(devices=devices, in_shardings=(start,), out_shardings=(to,), binds=True)
    program = _identity(ShapedArray(buffer.aval.shape, buffer.aval.dtype, buffer.aval.weak_type))
    executable = compiled(program, "reshard", Target(backend, devices[0].platform), options)
    (moved,) = executable.run([buffer])
    return moved if to is end else _jaxlib.renumbered(moved, _jaxlib.placement(end, ndim))


@lru_cache(maxsize=4096)
def _identity(aval: ShapedArray) -> ClosedJaxpr:
    return stage_closed(lambda x: [x], [aval])
