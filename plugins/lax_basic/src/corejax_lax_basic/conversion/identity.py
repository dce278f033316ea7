"""stage: a value as part of the recorded program; copy: the same elements in newly allocated memory.

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
    """Return `x` as a traced value inside of a traced function, and as an array elsewhere.

    A Python number or a NumPy array is a constant of the program that uses it; a staged one acts as an argument.

    Args:
        x: array, or Python number, which stays weakly typed.

    Raises:
        TypeError: `x` is neither.
    """
    return x if isinstance(x, Tracer) else stage_p.bind(x)


def copied(x: Any) -> Any:
    """Return an array with the same value, which stays valid if the other one is donated.

    Memory on the host, or viewed by the host, is shared by both: no program writes to such memory. A traced value is
    its own copy, and so is an array while a program is recorded.
    """
    if type(x) is not Array or in_context() or current_trace() is not bottom_trace():
        return x
    if is_spread(x):
        return copy_p.bind(x)
    return beside(Array(x._fetch(), x.aval), x)


def beside(out: Any, x: Any) -> Any:
    """Return an array on the device that another array is bound to; unchanged if that one is bound to none."""
    if type(out) is not Array or type(x) is not Array or is_spread(x):
        return out
    buffer = device_buffer(x)
    backend = None if buffer is None else backends.of_buffer(buffer)
    if backend is None:
        return out
    place = bound_device(x, backend)
    return out if place is None else placed(out, backend, place)


def _identity(x: Any) -> Any:
    return x


stage_p = Primitive(
    "stage",
    impl=_identity,
    abstract_eval=takes("stage", 1)(_identity),
    linear_in=(0,),
    tags=("elementwise", "structural", "cheap"),
    doc="Return the operand, as a value of the recorded program.",
)
copy_p = Primitive(
    "copy",
    impl=lambda x: x.copy(),
    abstract_eval=takes("copy", 1)(_identity),
    linear_in=(0,),
    tags=("elementwise", "structural"),
    doc="Copy the operand's elements to newly allocated memory.",
)
deflinear(stage_p, lambda ct, x: [ct])
deflinear(copy_p, lambda ct, x: [copy_p.bind(ct)])
for _primitive in (stage_p, copy_p):
    defvectorized(_primitive)
