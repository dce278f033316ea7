"""Named axes: the mapped axes that are in force, by the names that collectives use.

`vmap(axis_name=)`, `pmap` and `shard_map` bind names; they are in the thread's state beside the trace stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from corejax.avals import ShapedArray, get_aval
from corejax.explicit_axes import placed_as
from corejax.restoring import Restoring
from corejax.trace import set_contexts, state


class MappedAxis(NamedTuple):
    """What a mapped axis is called.

    Attributes:
        name: its name for collectives, or None.
        spmd: names of the axes of a mesh over which it is split.
    """

    name: Any = None
    spmd: tuple[Any, ...] = ()


class ManualAxes(NamedTuple):
    """Says, among the axes in scope, along which of them types tell whether values may differ (`ShapedArray.vma`).

    A value that is the same along an axis is one value there, and its cotangent one: the sum of what its uses give.

    Attributes:
        names: the axes.
        vary: `(x, names) -> x`, of a type that says that it may differ along them.
        total: `(x, names) -> sum of x along them`.
    """

    names: frozenset[Any]
    vary: Callable[[Any, tuple[Any, ...]], Any]
    total: Callable[[Any, tuple[Any, ...]], Any]


class _NamedAxes(Restoring):
    __slots__ = ("axes", "earlier")

    def __init__(self, axes: Sequence[tuple[Any, int | None]]) -> None:
        self.axes = tuple(axes)
        self.earlier = (state.axis_env, state.contexts)

    def __enter__(self) -> None:
        axis_env, contexts = self.earlier = (state.axis_env, state.contexts)
        state.axis_env = (*axis_env, *self.axes)
        set_contexts(contexts + 1)

    def restore(self) -> None:
        """As it was before."""
        state.axis_env, contexts = self.earlier
        set_contexts(contexts)


def named_axes(axes: Sequence[tuple[Any, int | None]]) -> Restoring:
    """Names and sizes of mapped axes that collectives may use, for a `with` block.

    What has the size None is no axis, but something else that programs traced in the block depend on.

    Raises:
        TypeError: an axis is no pair of a name and a size.
        ValueError: a size is negative.
    """
    for axis in axes:
        if not isinstance(axis, tuple | list) or len(axis) != 2:
            raise TypeError(f"named_axes takes pairs of a name and a size, such as ('rows', 4), got {axis!r}")
        if isinstance(axis[1], int) and axis[1] < 0:
            raise ValueError(f"named_axes: the size of an axis is not negative, got {axis!r}")
    return _NamedAxes(axes)


def axes_in_scope() -> tuple[tuple[Any, int | None], ...]:
    """Names and sizes of the named axes in force, outermost first: a program traced under them depends on them."""
    return state.axis_env


def axis_size_of(name: Any, what: str = "a collective") -> int:
    """Size of the innermost named axis of a name.

    Args:
        name: the axis's.
        what: the function that asks, for the message.

    Raises:
        NameError: no axis in force has that name; lists those that are.
        TypeError: it cannot be the name of an axis.
    """
    for bound, size in reversed(state.axis_env):
        if size is not None and bound == name:
            return int(size)
    try:
        hash(name)
    except TypeError:
        raise TypeError(
            f"{what}: the name of an axis is a string or another hashable value, got {name!r} of type "
            f"{type(name).__name__}"
        ) from None
    raise unbound_axis(name, what, [bound for bound, size in state.axis_env if size is not None])


def manual_axes(name: Any) -> ManualAxes | None:
    """What tells along the axis of this name, the innermost, whether values may differ; None where nothing does."""
    for bound, size in reversed(state.axis_env):
        if type(bound) is ManualAxes:
            if name in bound.names:
                return bound
        elif size is not None and bound == name:
            return None
    return None


def diverging(names: Iterable[Any]) -> Restoring:
    """For a `with` block: which operations run differs along these axes, so that nothing is summed along them.

    Elements that are elsewhere would be waited for. What is the same outside is each element's own there.
    """
    told = [(name, manual_axes(name)) for name in sorted(names, key=str)]
    return _NamedAxes(
        [(axes._replace(names=frozenset((name,)), total=_own), None) for name, axes in told if axes is not None]
    )


def _own(x: Any, names: tuple[Any, ...]) -> Any:
    return x


def varied(x: Any, names: Iterable[Any]) -> Any:
    """A value, of a type that says that it may differ along these axes too: those along which types tell."""
    vma = get_aval(x).vma
    for name in sorted(names, key=str):  # programs are the same in each process, where sets are in other orders
        axes = None if name in vma else manual_axes(name)
        if axes is not None:
            x = axes.vary(x, (name,))
    return x


def with_vma(ct: Any, vma: frozenset[Any]) -> Any:
    """The cotangent of what may differ along the axes `vma`: the sum along others, and of a type that says so.

    Along axes of which nothing tells whether values differ it stays as it is.
    """
    found = get_aval(ct).vma
    if found == vma:
        return ct
    for name in sorted(found - vma, key=str):
        axes = manual_axes(name)
        if axes is not None:
            ct = axes.total(ct, (name,))
    return varied(ct, vma - found)


def cotangent_as(ct: Any, aval: ShapedArray) -> Any:
    """The cotangent of a value of this type: as `with_vma`, and laid out as the value is."""
    found = get_aval(ct)
    if found is aval:
        return ct
    if found.vma != aval.vma:
        ct = with_vma(ct, aval.vma)
    return ct if aval.sharding is None else placed_as(ct, aval.sharding)


def axis_of_rule() -> MappedAxis:
    """Names of the mapped axis that a vmap rule is running for; outside of rules it has none."""
    return state.rule_axis or MappedAxis()


def unbound_axis(name: Any, what: str, bound: Sequence[Any]) -> NameError:
    """The error for an axis name that nothing binds, for rules to raise."""
    if not bound and any(name == there and size is not None for there, size in state.axis_env):
        return NameError(
            f"{what}: the axis {name!r} has a name here, but no transformation maps it: the one whose named_axes this "
            f"is has to interpret primitives such as {what}"
        )
    known = ", ".join(repr(n) for n in dict.fromkeys(bound))
    advice = f"axes in force here: {known}" if known else "no axis has a name here"
    return NameError(
        f"{what}: no axis is named {name!r}; {advice}. Names are bound by vmap(..., axis_name={name!r}), pmap and "
        "shard_map"
    )
