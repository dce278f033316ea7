"""Types that say how arrays are split over a mesh: over its axes of type Explicit.

A type's sharding (`ShapedArray.sharding`) is another plugin's. What is read of it here: `mesh`; `dimension_axes(ndim)`,
for each dimension the names of the axes, None where the compiler may choose; `with_axes(axes)`, of the same mesh;
`place(x)`, a value laid out so. Equal ones are mostly the same object.

Types that come out of an application of a primitive say how it is split where those of its operands do. An elementwise
primitive has its operands' axes; others have a split rule (`split_rules`), or one that a plugin derives. What no rule
tells of is whole: shardings are about places, and no value depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corejax import source_info
from corejax.avals import ShapedArray, get_aval
from corejax.errors import ShardingTypeError
from corejax.rules import OptionalRules
from corejax.seams import Slot

if TYPE_CHECKING:
    from corejax.primitive import Primitive

Axes = tuple[Any, ...]
Derived = Callable[["Primitive", Sequence[ShapedArray], Mapping[str, Any]], "Sequence[Sequence[Axes | None]] | None"]


def _forget_types(primitive: Primitive, rule: Any) -> None:
    primitive._memo.clear()


split_rules = OptionalRules("split", _forget_types)
"""`rule(*avals, **params) -> axes of each dimension of the result`, or a list of these where there are several results.
Those of an operand are `split_axes(aval)`. A name that is there twice stays where it is first."""

_derived: Slot[Derived] = Slot("the rule for how results are split")


def derives_splits(rule: Derived) -> Derived:
    """Have the axes of results found by a function where a primitive has no split rule: `(primitive, avals, params)`.

    It gives axes as a rule for several results does, or None if it knows nothing.

    Raises:
        DuplicateRegistrationError: another function is registered.
    """
    return _derived.provide(rule)


def split_axes(aval: ShapedArray) -> tuple[Axes | None, ...]:
    """The axes that each dimension is split over, by the type; None where the compiler may choose."""
    return ((),) * aval.ndim if aval.sharding is None else aval.sharding.dimension_axes(aval.ndim)


def either_axes(x: Axes | None, y: Axes | None) -> Axes | None:
    """The axes of a dimension that two values have in common: those of the one that has any."""
    return x or (y if y or x == () else x)


def with_dimension(aval: ShapedArray, dim: int, names: Axes) -> Any:
    """The sharding of a type with one more dimension, split over those of the names that split no other."""
    axes = split_axes(aval)
    used = {name for each in axes for name in each or ()}
    free = tuple(name for name in names if name in aval.sharding.mesh.explicit_axes and name not in used)
    return aval.sharding.with_axes((*axes[:dim], free, *axes[dim:]))


def placed_as(x: Any, sharding: Any) -> Any:
    """A value laid out as a type's sharding says; as it is where that is None."""
    if sharding is None or get_aval(x).sharding == sharding:
        return x
    return sharding.place(x)


def results_laid_out(
    primitive: Primitive, avals: Sequence[ShapedArray], outs: tuple[ShapedArray, ...], params: Mapping[str, Any]
) -> tuple[ShapedArray, ...]:
    """The types of results with what operands' types say of axes; of a program's they say it already.

    Raises:
        ShardingTypeError: operands are over different meshes, or elementwise ones split one dimension differently.
    """
    if not primitive.tags.isdisjoint(("higher_order", "collective", "placing")):
        return outs
    first, *others = [aval.sharding for aval in avals if aval.sharding is not None]
    for other in others:
        if other.mesh != first.mesh:
            raise _refused(primitive, avals, "are over different meshes", "reshard one to the other's mesh")
    if "elementwise" in primitive.tags:
        found: Sequence[Any] | None = [_of_elements(primitive, avals, outs[0])] * len(outs)
    elif (rule := split_rules.get(primitive)) is not None:
        given = rule(*avals, **params)
        found = given if primitive.multiple_results else [given]
    else:
        found = _derived.value(primitive, avals, params) if _derived.value is not None else None
    axes = found or [((),) * out.ndim for out in outs]
    if [len(each) for each in axes] != [out.ndim for out in outs]:
        raise TypeError(
            f"the split rule of primitive {primitive.name!r} gives {axes}: it has to give axes, a tuple of names, for "
            f"each dimension of {', '.join(out.str_short() for out in outs)}"
        )
    sizes = dict(first.mesh.shape_tuple)
    return tuple([out.laid_out(first.with_axes(_fitting(out, a, sizes))) for out, a in zip(outs, axes, strict=True)])


def _of_elements(primitive: Primitive, avals: Sequence[ShapedArray], out: ShapedArray) -> Sequence[Axes | None]:
    axes: Sequence[Axes | None] = ((),) * out.ndim
    for aval in avals:
        if aval.sharding is None or aval.shape != out.shape:
            continue
        own = split_axes(aval)
        if any(x and y and x != y for x, y in zip(axes, own, strict=True)):
            raise _refused(primitive, avals, "are split over different axes", "reshard one as the other")
        taken = {name for names in axes for name in names or ()}
        axes = [x or (y if y is None or taken.isdisjoint(y) else x) for x, y in zip(axes, own, strict=True)]
    return axes


def _fitting(out: ShapedArray, axes: Sequence[Axes | None], sizes: Mapping[Any, int]) -> tuple[Axes | None, ...]:
    """Each name where it is first, of axes that divide the dimension."""
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
        f"primitive {primitive.name!r} at {source_info.user_line()}: its operands {what}: {types}. To say what is "
        f"meant, {advice}: corejax.sharding.reshard(x, corejax.P(...))"
    )
