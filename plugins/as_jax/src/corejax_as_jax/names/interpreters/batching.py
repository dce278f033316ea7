"""`jax.interpreters.batching`."""

from typing import Any as _Any

from corejax.extend import defbroadcasting, defvectorized
from corejax.extend import move_batch_axis as _move_batch_axis
from corejax.extend.transforms import BatchTrace, BatchTracer
from corejax_as_jax.absent import no_op as register_vmappable
from corejax_as_jax.absent import no_op as unregister_vmappable
from corejax_as_jax.rules import AxisData, axis_primitive_batchers, fancy_primitive_batchers, primitive_batchers

not_mapped = None
NotMapped = type(None)


def bdim_at_front(x: _Any, bdim: int | None, size: int, mesh_axis: _Any = None) -> _Any:
    """Return a batch with its axis in front."""
    return _move_batch_axis(size, bdim, 0, x)


def broadcast(x: _Any, size: int, axis: int, mesh_axis: _Any = None) -> _Any:
    """Return `size` copies along a new axis."""
    return _move_batch_axis(size, None, axis, x)
