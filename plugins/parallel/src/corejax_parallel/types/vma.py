"""Manual axes: the axes of a mesh that `shard_map` maps over, along which values may differ.

The type of a value has the axes along which the value may differ (`aval.vma`). A value that is the same along an axis
counts as a single value there, and its cotangent as a single cotangent: the sum of the contributions of all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from corejax.extend import Primitive, ShapedArray, abstract_eval_rules, get_aval
from corejax.extend.transforms import DecidedBy, axes_in_scope

Names = frozenset[Any]


class ManualAxes(NamedTuple):
    """An entry of the axes in scope for axes that types track: `aval.vma` has them if the value may differ.

    Attributes:
        names: the axes.
        vary: `(x, names) -> x`, with these axes added to the type's `vma`.
        total: `(x, names) -> sum of x along these axes`.
    """

    names: Names
    vary: Callable[[Any, tuple[Any, ...]], Any]
    total: Callable[[Any, tuple[Any, ...]], Any]


def manual_axes(name: Any) -> ManualAxes | None:
    """Return the entry of the innermost axis of this name, or None if types do not track it.

    If control flow depends on a value that differs along the axis, devices may take different branches. A sum along the
    axis would wait for devices that do not take part, so `total` then returns each device's own value.
    """
    decided = False
    for bound, size in reversed(axes_in_scope()):
        if type(bound) is DecidedBy:
            refinement: Any = bound.refinement  # a `MeshAxes`
            decided = decided or name in refinement.vma
        elif type(bound) is ManualAxes:
            if name in bound.names:
                return bound._replace(total=lambda x, names: x) if decided else bound
        elif size is not None and bound == name:
            return None
    return None


def vary(x: Any, names: Iterable[Any]) -> Any:
    """Add axes that types track to the `vma` of a value's type."""
    vma = get_aval(x).vma
    for name in sorted(names, key=str):  # sorted, so that all processes trace the same program
        axes = None if name in vma else manual_axes(name)
        if axes is not None:
            x = axes.vary(x, (name,))
    return x


def sum_cotangent(ct: Any, vma: Names) -> Any:
    """Sum a cotangent along the axes along which it may differ and its primal value, by `vma`, does not."""
    for name in sorted(get_aval(ct).vma - vma, key=str):
        axes = manual_axes(name)
        if axes is not None:
            ct = axes.total(ct, (name,))
    return ct


def vma_of_results(primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Names:
    """Return the axes along which results may differ because operands may.

    The rules of collectives determine the `vma` of their results themselves, because a collective may return the same
    value everywhere, and so do the operations of a decomposition from which types are inferred. The types of a program
    determine it for the axes that they mention.
    """
    rule = abstract_eval_rules.rule_of(primitive)
    if rule is not None and rule.derived:
        return frozenset()
    vma: Names = frozenset().union(*(aval.vma for aval in avals))
    if "higher_order" not in primitive.tags:
        return vma if "collective" not in primitive.tags else frozenset()
    listed = [x for value in params.values() for x in (value if isinstance(value, tuple | list) else (value,))]
    programs = [x for x in listed if hasattr(x, "in_avals")]
    named = [aval.vma for p in programs for aval in (*p.in_avals, *p.out_avals)]
    return vma.difference(*named) if programs else frozenset()


def vma_text(vma: Names) -> str:
    """Return the text of manual axes: `{V:i}`, or `{V:(i, j)}`."""
    names = sorted(name if isinstance(name, str) and name.isidentifier() else repr(name) for name in vma)
    return f"{{V:{names[0] if len(names) == 1 else '(' + ', '.join(names) + ')'}}}"
