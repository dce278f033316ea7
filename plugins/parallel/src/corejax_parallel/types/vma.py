"""Manual axes: the axes of a mesh that `shard_map` maps over, along which values may differ.

A type says along which of them values may differ (`aval.vma`). A value that is the same along an axis is one value
there, and so is its cotangent: the sum of the contributions of all uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from corejax.extend import Primitive, ShapedArray, get_aval
from corejax.extend.transforms import DecidedBy, axes_in_scope

Names = frozenset[Any]


class ManualAxes(NamedTuple):
    """An entry of the axes in scope: along these axes, types say whether values may differ.

    Attributes:
        names: the axes.
        vary: `(x, names) -> x`, of a type that says that it may differ along them.
        total: `(x, names) -> sum of x along them`.
    """

    names: Names
    vary: Callable[[Any, tuple[Any, ...]], Any]
    total: Callable[[Any, tuple[Any, ...]], Any]


def manual_axes(name: Any) -> ManualAxes | None:
    """Return the entry that says whether values may differ along the innermost axis of this name, or None.

    If a value that differs along the axis decides which operations run, devices that decide otherwise do not take part:
    a sum along the axis would wait for them, so the total is each device's own value.
    """
    decided = False
    for bound, size in reversed(axes_in_scope()):
        if type(bound) is DecidedBy:
            decided = decided or name in bound.refinement.vma
        elif type(bound) is ManualAxes:
            if name in bound.names:
                return bound._replace(total=lambda x, names: x) if decided else bound
        elif size is not None and bound == name:
            return None
    return None


def vary(x: Any, names: Iterable[Any]) -> Any:
    """Return a value with a type that says that it may differ along these axes too, as far as types say it."""
    vma = get_aval(x).vma
    for name in sorted(names, key=str):  # programs are the same in each process, while sets are in other orders
        axes = None if name in vma else manual_axes(name)
        if axes is not None:
            x = axes.vary(x, (name,))
    return x


def sum_cotangent(ct: Any, vma: Names) -> Any:
    """Return a cotangent summed along the axes along which it differs and its primal value, by `vma`, does not."""
    for name in sorted(get_aval(ct).vma - vma, key=str):
        axes = manual_axes(name)
        if axes is not None:
            ct = axes.total(ct, (name,))
    return ct


def vma_of_results(primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Names:
    """Return the axes along which all results may differ, because operands may.

    Rules of collectives tell of all axes, and the types of programs of those that they name: what is computed of values
    that differ may be the same everywhere.
    """
    vma: Names = frozenset().union(*(aval.vma for aval in avals))
    if "higher_order" not in primitive.tags:
        return vma if "collective" not in primitive.tags else frozenset()
    listed = [x for value in params.values() for x in (value if isinstance(value, tuple | list) else (value,))]
    programs = [x for x in listed if hasattr(x, "in_avals")]
    named = [aval.vma for p in programs for aval in (*p.in_avals, *p.out_avals)]
    return vma.difference(*named) if programs else frozenset()


def vma_text(vma: Names) -> str:
    """Return `{V:i}`, or `{V:(i, j)}`."""
    names = sorted(name if isinstance(name, str) and name.isidentifier() else repr(name) for name in vma)
    return f"{{V:{names[0] if len(names) == 1 else '(' + ', '.join(names) + ')'}}}"
