"""Axes of type Explicit: types say over which of them each dimension of an array is split (`aval.explicit_sharding`).

If the types of operands say it, so do the types of results. An elementwise primitive has the axes of its operands;
others have a split rule, or keep the axes of the dimensions that are a batch by their vmap rule. All other dimensions
are whole: shardings are about places, and no value depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, abstract_eval_rules
from corejax.extend.messages import ShardingTypeError, user_line
from corejax.extend.plugins import exported
from corejax.extend.transforms import OptionalRules
from corejax_parallel.types.split_rules import SPLIT_RULES, Axes, either_axes, split_axes

split_rules = OptionalRules("split", lambda primitive, rule: abstract_eval_rules.changed.send(primitive))
"""`rule(*avals, **params) -> axes of each dimension of the result`, or a list of these for several results. The
axes of an operand are `split_axes(aval)`. A name that is there twice stays where it is first."""


def results_shardings(
    primitive: Primitive, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, Any]
) -> list[Any]:
    """Return the shardings of results whose operands have shardings over one mesh.

    Raises:
        ShardingTypeError: operands are over different meshes, or elementwise ones split one dimension differently.
        TypeError: a split rule returns axes of other dimensions than results have.
    """
    first, *others = [aval.explicit_sharding for aval in avals if aval.explicit_sharding is not None]
    for other in others:
        if other.mesh != first.mesh:
            raise _refused(primitive, avals, "are over different meshes", "reshard one to the other's mesh")
    axes = _axes_of_results(primitive, avals, outs, params) or [((),) * out.ndim for out in outs]
    if [len(each) for each in axes] != [out.ndim for out in outs]:
        raise TypeError(
            f"the split rule of primitive {primitive.name!r} gives {axes}: it has to give axes, a tuple of names, for "
            f"each dimension of {', '.join(out.str_short() for out in outs)}"
        )
    sizes = dict(first.mesh.shape_tuple)
    return [first.with_axes(_fitting(out, each, sizes)) for out, each in zip(outs, axes, strict=True)]


def _axes_of_results(
    primitive: Primitive, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, Any]
) -> Sequence[Sequence[Axes | None]] | None:
    if "elementwise" in primitive.tags:
        return [_axes_of_elements(primitive, avals, outs[0])] * len(outs)
    rule = split_rules.get(primitive) or SPLIT_RULES.get(primitive.name)
    if rule is None:
        return _axes_by_factors(primitive, avals, params)
    axes = rule(*avals, **params)
    return axes if primitive.multiple_results else [axes]  # type: ignore[no-any-return]


def _axes_of_elements(primitive: Primitive, avals: Sequence[ShapedArray], out: ShapedArray) -> Sequence[Axes | None]:
    axes: Sequence[Axes | None] = ((),) * out.ndim
    for aval in avals:
        if aval.explicit_sharding is None or aval.shape != out.shape:
            continue
        own = split_axes(aval)
        if any(x and y and x != y for x, y in zip(axes, own, strict=True)):
            raise _refused(primitive, avals, "are split over different axes", "reshard one as the other")
        taken = {name for names in axes for name in names or ()}
        axes = [x or (y if y is None or taken.isdisjoint(y) else x) for x, y in zip(axes, own, strict=True)]
    return axes


def _axes_by_factors(
    primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]
) -> list[list[Any]] | None:
    """Return, for dimensions that are a batch by the vmap rule, the axes of the first operand that has any."""
    factors_of = exported("sharding.factors_of")
    found = None if factors_of is None else factors_of(primitive, [aval.refined(None) for aval in avals], params)
    if found is None:
        return None
    axes: list[Any] = [()] * len(found.sizes)
    for aval, factors in zip(avals, found.operands, strict=True):
        for names, factor in zip(split_axes(aval), factors, strict=True):
            if factor is not None:
                axes[factor] = either_axes(axes[factor], names)
    return [[() if factor is None else axes[factor] for factor in factors] for factors in found.results]


def _fitting(out: ShapedArray, axes: Sequence[Axes | None], sizes: Mapping[Any, int]) -> tuple[Axes | None, ...]:
    """Return the axes, each name only where it is first, and only if the axes divide the dimension."""
    used: set[Any] = set()
    found: list[Axes | None] = []
    for n, names in zip(out.shape, axes, strict=True):
        taken = names and used.isdisjoint(names) and n % math.prod(sizes[name] for name in names) == 0
        used.update(names if names and taken else ())
        found.append(names if taken or names is None else ())
    return tuple(found)


def _refused(primitive: Primitive, avals: Sequence[ShapedArray], what: str, advice: str) -> ShardingTypeError:
    types = ", ".join(aval.str_short() for aval in avals)
    return ShardingTypeError(
        f"primitive {primitive.name!r} at {user_line()}: its operands {what}: {types}. To say what is "
        f"meant, {advice}: corejax.sharding.reshard(x, corejax.P(...))"
    )


def sizes_texts(shape: Sequence[Any], axes: Sequence[Axes | None]) -> list[str]:
    """Return sizes with the axes that they are split over: `8@x`, `8@(x,y)`."""
    return [
        repr(n) if not names else f"{n!r}@{names[0]}" if len(names) == 1 else f"{n!r}@({','.join(names)})"
        for n, names in zip(shape, axes, strict=True)
    ]
