"""stage: a value as part of the program that is recorded; copy: the same elements in memory of their own.

stage : a -> a
copy  : a -> a
"""

from __future__ import annotations

from typing import Any

from corejax.extend import (
    Array,
    Primitive,
    Tracer,
    backends,
    bottom_trace,
    current_trace,
    deflinear,
    defvectorized,
)
from corejax.extend.devices import bound_device, is_spread, placed
from corejax.extend.transforms import in_context
from corejax.extend.types import device_buffer
from corejax_lax_basic._base.arity import takes

__all__ = ["beside", "copy_p", "stage", "stage_p"]


def stage(x: Any, /) -> Any:
    """`x` itself: inside of a traced function a traced value, elsewhere an array.

    A Python number or a NumPy array has to be known where it is used; staged, it is what an argument would be.

    Args:
        x: array, or Python number, which stays weakly typed.

    Raises:
        TypeError: `x` is neither.
    """
    return x if isinstance(x, Tracer) else stage_p.bind(x)


def copied(x: Any) -> Any:
    """An array with the same value, which stays when the other one is donated.

    What is on the host, or viewed there, is shared by both: no program writes to memory that somebody sees. A traced
    value is its own copy, and so is an array where a program is recorded.
    """
    if type(x) is not Array or in_context() or current_trace() is not bottom_trace():
        return x
    if is_spread(x):
        return copy_p.bind(x)
    return beside(Array(x._fetch(), x.aval), x)


def beside(out: Any, x: Any) -> Any:
    """Return an array on the device that another one is bound to; as it is if that one is bound to none."""
    if type(out) is not Array or type(x) is not Array or is_spread(x):
        return out
    buffer = device_buffer(x)
    backend = None if buffer is None else backends.of_buffer(buffer)
    place = None if backend is None else bound_device(x, backend)
    return out if place is None else placed(out, backend, place)


def _identity(x: Any) -> Any:
    return x


stage_p = Primitive(
    "stage",
    impl=_identity,
    abstract_eval=takes("stage", 1)(_identity),
    linear_in=(0,),
    tags=("elementwise", "structural", "cheap"),
    doc="The operand, as a value of the program that is recorded.",
)
copy_p = Primitive(
    "copy",
    impl=lambda x: x.copy(),
    abstract_eval=takes("copy", 1)(_identity),
    linear_in=(0,),
    tags=("elementwise", "structural"),
    doc="The operand's elements, in memory of their own.",
)
deflinear(stage_p, lambda ct, x: [ct])
deflinear(copy_p, lambda ct, x: [copy_p.bind(ct)])
for _primitive in (stage_p, copy_p):
    defvectorized(_primitive)
