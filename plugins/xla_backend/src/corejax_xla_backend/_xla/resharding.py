"""Values to several devices, and from some of them to others."""

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
    """Return a buffer over the devices of a sharding, of a NumPy array that is not written to, or of another buffer.

    Raises:
        ValueError: the sharding says more than the array has dimensions, or a size does not divide.
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
    """The buffer with its parts elsewhere on the same devices, moved by XLA; all processes that have parts call it."""
    ndim, devices = buffer.aval.ndim, start.device_tuple
    to = end
    if end.device_tuple != devices:  # in a program all shardings number the devices alike
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
