"""`pvary`: a value that is the same along manual axes, as one that may differ; `pcast`, which users call.

pvary : a[s] -> a[s], the value itself. Where types tell along which axes values may differ, its cotangent, one of each
element, is summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, deflinear
from corejax.extend.transforms import collective_rules
from corejax_parallel.collectives._axes import elementwise_along_others, names_of, on_leaves
from corejax_parallel.types.refinement import with_vma
from corejax_parallel.types.vma import ManualAxes, manual_axes, vary

_TO = ("varying", "reduced", "unreduced")


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """The value itself, of a type that says that it may differ along named axes.

    In a function that `shard_map` maps with `check_vma=True`, the derivative by a value that is the same along an axis
    is the sum of what all elements of the axis make of it; by `pcast(x, axis_name, to="varying")` it is each element's
    own. Elsewhere there are no such types, and nothing happens.

    Args:
        x: a pytree of arrays.
        axis_name: a name that is bound, or a tuple of names.
        to: "varying"; "reduced" and "unreduced" change nothing.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is no array.
        ValueError: `to` is another word.
    """
    names = names_of("pcast", axis_name)
    if to not in _TO:
        raise ValueError(f'pcast: to is "varying" or "reduced", got {to!r}')
    return on_leaves("pcast", lambda leaf: vary(leaf, names) if to == "varying" else leaf, x)


# -- primitive and rules -----------------------------------------------------------------------------------------


pvary_p = Primitive(
    "pvary",
    abstract_eval=lambda x, *, axis_name: with_vma(x, x.vma.union(axis_name)),
    impl=lambda x, *, axis_name: x,
    tags=("collective",),
    doc="The value itself, of a type that says that it may differ along named axes.",
)


def _transpose(ct: Any, x: Any, *, axis_name: tuple[Any, ...]) -> list[Any]:
    """The sum, where types tell; elsewhere what each element makes of its own."""
    for name in axis_name:
        axes = manual_axes(name)
        if axes is not None:
            ct = axes.total(ct, (name,))
    return [ct]


deflinear(pvary_p, _transpose)


@collective_rules.register(pvary_p)
def _over_axis(this: Any, axis_size: int, vals: Any, dims: Any, *, axis_name: tuple[Any, ...]) -> tuple[Any, Any]:
    rest = tuple([name for name in axis_name if name != this])
    return (pvary_p.bind(vals[0], axis_name=rest) if rest else vals[0]), dims[0]


elementwise_along_others(pvary_p)


# -- for functions of blocks -------------------------------------------------------------------------------------


def _vary(x: Any, names: tuple[Any, ...]) -> Any:
    return pvary_p.bind(x, axis_name=names)


def _total(x: Any, names: tuple[Any, ...]) -> Any:
    from corejax_parallel.collectives.reductions import psum_p

    return psum_p.bind(x, axis_name=names, axis_index_groups=None)


def told_along(names: Sequence[Any]) -> ManualAxes:
    """Says that types tell along these axes whether values may differ."""
    return ManualAxes(frozenset(names), _vary, _total)
