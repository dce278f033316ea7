"""Axes of type Explicit: the type of an array has the axes that split each dimension (`aval.explicit_sharding`).

If the operands of a primitive have explicit shardings, so do its results. The results of an elementwise primitive have
the axes of its operands. Other primitives have a split rule, or keep the axes of the dimensions that are batch
dimensions by their vmap rule. All other dimensions are not split. A wrong choice costs communication only: no value
depends on a sharding.
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
"""The registry of split rules: `rule(*avals, **params) -> axes of each dimension of the result`.

A primitive with several results has a list of these. The axes of an operand are `split_axes(aval)`. If a rule returns
an axis twice, only its first occurrence counts.
"""


def results_shardings(
    primitive: Primitive, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, Any]
) -> list[Any]:
    """Return the explicit shardings of a primitive's results; at least one operand has an explicit sharding.

    Raises:
        ShardingTypeError: operands are sharded over different meshes, or the operands of an elementwise primitive split
            a dimension differently.
        TypeError: a split rule returns the wrong number of axes.
    """
    first, *others = [aval.explicit_sharding for aval in avals if aval.explicit_sharding is not None]
    for other in others:
        if other.mesh != first.mesh:
            raise _refused(primitive, avals, "are over different meshes", "reshard one to the other's mesh")
    axes = _axes_of_results(primitive, avals, outs, params) or [((),) * out.ndim for out in outs]
    if [len(each) for each in axes] != [out.ndim for out in outs]:
        raise TypeError(
            f"the split rule of primitive {primitive.name!r} gives {axes}: it must return axes, a tuple of names, for "
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
    return axes if primitive.multiple_results else [axes]


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
    """Return the axes of results for dimensions that are batch dimensions by the vmap rule.

    Such a dimension has the axes of the first operand that splits it. The result is None if the primitive has no
    factors.
    """
    factors_of = exported("sharding.factors_of")
    rule = None if factors_of is None else factors_of(primitive, [aval.refined(None) for aval in avals], params)
    if rule is None:
        return None
    axes: list[Any] = [()] * len(rule.sizes)
    for aval, factors in zip(avals, rule.operands, strict=True):
        for names, factor in zip(split_axes(aval), factors, strict=True):
            if factor is not None:
                axes[factor] = either_axes(axes[factor], names)
    return [[() if factor is None else axes[factor] for factor in factors] for factors in rule.results]


def _fitting(out: ShapedArray, axes: Sequence[Axes | None], sizes: Mapping[Any, int]) -> tuple[Axes | None, ...]:
    """Drop the axes of a dimension if an earlier dimension uses them or if they do not divide the dimension."""
    used: set[Any] = set()
    fitting: list[Axes | None] = []
    for n, names in zip(out.shape, axes, strict=True):
        fits = names and used.isdisjoint(names) and n % math.prod(sizes[name] for name in names) == 0
        used.update(names if names and fits else ())
        fitting.append(names if fits or names is None else ())
    return tuple(fitting)


def _refused(primitive: Primitive, avals: Sequence[ShapedArray], what: str, advice: str) -> ShardingTypeError:
    types = ", ".join(aval.str_short() for aval in avals)
    return ShardingTypeError(
        f"primitive {primitive.name!r} at {user_line()}: its operands {what}: {types}. To resolve this, {advice}: "
        "corejax.sharding.reshard(x, corejax.P(...))"
    )


def sizes_texts(shape: Sequence[Any], axes: Sequence[Axes | None]) -> list[str]:
    """Return texts of sizes with the axes that split them: `8@x`, `8@(x,y)`."""
    return [
        repr(n) if not names else f"{n!r}@{names[0]}" if len(names) == 1 else f"{n!r}@({','.join(names)})"
        for n, names in zip(shape, axes, strict=True)
    ]
