"""`pvary`, which marks a value as possibly different along manual axes, and its public function `pcast`.

pvary : a[s] -> a[s], the identity. Its transpose sums the cotangents of all elements, along the axes that types track.
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
    """Return the value with a type that marks it as possibly different along named axes.

    In a function that `shard_map` maps with `check_vma=True`, the derivative with respect to a value that is the same
    along an axis is the sum over all elements of the axis. The derivative with respect to
    `pcast(x, axis_name, to="varying")` is each element's own. Elsewhere, types do not track axes, and `pcast` has no
    effect.

    Args:
        x: a pytree of arrays.
        axis_name: a bound name, or a tuple of names.
        to: "varying"; "reduced" and "unreduced" have no effect.

    Raises:
        NameError: a name is not bound.
        TypeError: a leaf is not an array.
        ValueError: `to` is unknown.
    """
    names = names_of("pcast", axis_name)
    if to not in _TO:
        raise ValueError(f'pcast: to must be "varying" or "reduced", got {to!r}')
    return on_leaves("pcast", lambda leaf: vary(leaf, names) if to == "varying" else leaf, x)


# -- primitive and rules -----------------------------------------------------------------------------------------


pvary_p = Primitive(
    "pvary",
    abstract_eval=lambda x, *, axis_name: with_vma(x, x.vma.union(axis_name)),
    impl=lambda x, *, axis_name: x,
    tags=("collective",),
    doc="Return the value with a type that marks it as possibly different along named axes.",
)


def _transpose(ct: Any, x: Any, *, axis_name: tuple[Any, ...]) -> list[Any]:
    """Sum the cotangent along the axes that types track; along others, each element keeps its own cotangent."""
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


def tracked_axes(names: Sequence[Any]) -> ManualAxes:
    """Return the entry of the axes in scope by which types track whether values differ along these axes."""
    return ManualAxes(frozenset(names), _vary, _total)
