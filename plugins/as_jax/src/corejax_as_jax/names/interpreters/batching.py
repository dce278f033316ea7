"""`jax.interpreters.batching`."""

from corejax.extend import defbroadcasting, defvectorized
from corejax.extend import move_batch_axis as _move_batch_axis
from corejax.extend.transforms import BatchTrace, BatchTracer
from corejax_as_jax.absent import no_op as register_vmappable
from corejax_as_jax.absent import no_op as unregister_vmappable
from corejax_as_jax.rules import AxisData, axis_primitive_batchers, fancy_primitive_batchers, primitive_batchers

not_mapped = None
NotMapped = type(None)


def bdim_at_front(x, bdim, size, mesh_axis=None):
    """Return a batch with its axis in front."""
    return _move_batch_axis(x, size, bdim, 0)


def broadcast(x, size, axis, mesh_axis=None):
    """Return `size` copies along a new axis."""
    return _move_batch_axis(x, size, None, axis)
