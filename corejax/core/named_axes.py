"""Named axes: the active mapped axes, by the names that collectives use.

`vmap(axis_name=)`, `pmap` and `shard_map` bind names. The thread's state holds them beside the trace stack.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from corejax.base.restoring import Restoring
from corejax.core.avals import Refinement
from corejax.core.trace import MappedAxis as MappedAxis
from corejax.core.trace import set_contexts, state
from corejax.errors import UnboundAxisError


class DecidedBy(NamedTuple):
    """An entry of the axes in scope: a value with this refinement controls which operations run in the block."""

    refinement: Refinement


class _NamedAxes(Restoring):
    __slots__ = ("axes", "earlier")

    def __init__(self, axes: Sequence[tuple[object, int | None]]) -> None:
        self.axes = tuple(axes)
        self.earlier = (state.axis_env, state.contexts)

    def __enter__(self) -> None:
        axis_env, contexts = self.earlier = (state.axis_env, state.contexts)
        state.axis_env = (*axis_env, *self.axes)
        set_contexts(contexts + 1)

    def restore(self) -> None:
        """Restore the earlier axes."""
        state.axis_env, contexts = self.earlier
        set_contexts(contexts)


def named_axes(axes: Sequence[tuple[object, int | None]]) -> Restoring:
    """Bind names and sizes of mapped axes, which collectives may use, for a `with` block.

    An entry of size None is not an axis, but another condition that programs traced in the block depend on.

    Raises:
        TypeError: an entry is not a pair of a name and a size.
        ValueError: a size is negative.
    """
    for axis in axes:
        if not isinstance(axis, tuple | list) or len(axis) != 2:
            raise TypeError(f"named_axes takes pairs of a name and a size, such as ('rows', 4), got {axis!r}")
        if isinstance(axis[1], int) and axis[1] < 0:
            raise ValueError(f"named_axes: the size of an axis is not negative, got {axis!r}")
    return _NamedAxes(axes)


def decided_by(refinement: Refinement) -> Restoring:
    """Declare that a value with a refinement controls which operations of a `with` block run, or how often."""
    return _NamedAxes([(DecidedBy(refinement), None)])


def axes_in_scope() -> tuple[tuple[Any, int | None], ...]:
    """Return names and sizes of the active named axes, outermost first; caches of traced programs have them in keys."""
    return state.axis_env


def axis_size_of(name: object, what: str = "a collective") -> int:
    """Return the size of the innermost axis of a name; `what` is the name of the calling function, for messages.

    Raises:
        UnboundAxisError: no active axis has that name; the message lists the active axes.
        TypeError: `name` is not hashable.
    """
    for bound, size in reversed(state.axis_env):
        if size is not None and bound == name:
            return int(size)
    if not isinstance(name, Hashable):
        raise TypeError(f"{what}: the name of an axis is a string or another hashable value, got {name!r}")
    raise unbound_axis(name, what, [bound for bound, size in state.axis_env if size is not None])


def axis_of_rule() -> MappedAxis:
    """Return the names of the mapped axis that the running vmap rule handles; without names outside of vmap rules."""
    return state.rule_axis or MappedAxis()


def unbound_axis(name: object, what: str, bound: Sequence[object]) -> UnboundAxisError:
    """Return the error for an axis name that no transformation binds, for rules to raise."""
    if not bound and any(name == there and size is not None for there, size in state.axis_env):
        return UnboundAxisError(
            f"{what}: named_axes binds the name {name!r}, but no transformation maps the axis: the transformation that "
            f"calls named_axes has to interpret primitives such as {what}"
        )
    known = ", ".join(repr(n) for n in dict.fromkeys(bound))
    advice = f"active axes: {known}" if known else "no named axis is active"
    return UnboundAxisError(
        f"{what}: no axis is named {name!r}; {advice}. Names are bound by vmap(..., axis_name={name!r}), pmap and "
        "shard_map"
    )
