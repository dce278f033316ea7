"""`MeshAxes`: the refinement of types by the axes of a mesh, which the kernel carries in each type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from corejax.extend import Primitive, ShapedArray, get_aval
from corejax_parallel.types.explicit import results_shardings, sizes_texts
from corejax_parallel.types.vma import sum_cotangent, vary, vma_of_results, vma_text


class MeshAxes(NamedTuple):
    """A refinement of a type by the axes of a mesh; `corejax.extend.types.Refinement` specifies the methods.

    Attributes:
        vma: the manual axes along which values may differ.
        sharding: the explicit sharding, a `NamedSharding` over a mesh without devices; None if the type has none.
    """

    vma: frozenset[Any] = frozenset()
    sharding: Any = None

    @property
    def of_any_shape(self) -> MeshAxes | None:
        """The refinement that holds for any shape: the manual axes without the sharding."""
        return _refinement(self.vma, None)

    def of_results(
        self, primitive: Primitive, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, Any]
    ) -> tuple[ShapedArray, ...]:
        """Refine the types of results; programs, collectives and resharding determine their shardings themselves."""
        names = vma_of_results(primitive, avals, params)
        outs = tuple([with_vma(aval, aval.vma | names) for aval in outs])
        complete = not primitive.tags.isdisjoint(("higher_order", "collective", "placing"))
        if complete or all(aval.explicit_sharding is None for aval in avals):
            return outs
        shardings = results_shardings(primitive, avals, outs, params)
        return tuple([with_sharding(aval, sharding) for aval, sharding in zip(outs, shardings, strict=True)])

    def conform(self, x: Any, aval: ShapedArray, *, cotangent: bool) -> Any:
        """Convert a value to a type: vary it along manual axes and reshard it.

        A cotangent is first summed along the axes along which it may differ and the primal value does not.
        """
        if cotangent:
            x = sum_cotangent(x, aval.vma)
        x = vary(x, aval.vma)
        sharding = aval.explicit_sharding
        return x if sharding is None or get_aval(x).explicit_sharding == sharding else sharding.place(x)

    def join(self, other: MeshAxes) -> MeshAxes:
        """Return the union of the manual axes, with the first sharding that is not None."""
        return MeshAxes(self.vma | other.vma, other.sharding if self.sharding is None else self.sharding)

    def without_axis(self, dim: int) -> tuple[MeshAxes | None, tuple[Any, ...]]:
        """Remove a dimension; return the refinement and the axes that split the dimension."""
        if self.sharding is None:
            return self, ()
        axes = self.sharding.spec.axes()
        return MeshAxes(self.vma, self.sharding.with_axes(axes[:dim] + axes[dim + 1 :])), axes[dim] or ()

    def with_axis(self, dim: int, names: tuple[Any, ...]) -> MeshAxes | None:
        """Insert a dimension, split over the names that are Explicit axes and split no other dimension."""
        if self.sharding is None:
            return self
        axes = self.sharding.spec.axes()
        used = {name for each in axes for name in each or ()}
        free = tuple(name for name in names if name in self.sharding.mesh.explicit_axes and name not in used)
        return MeshAxes(self.vma, self.sharding.with_axes((*axes[:dim], free, *axes[dim:])))

    def text(self, shape: Sequence[Any]) -> str:
        """Return a text such as `[8@x,4]{V:i}`: sizes with the axes that split them, then the manual axes."""
        axes = ((),) * len(shape) if self.sharding is None else self.sharding.dimension_axes(len(shape))
        return f"[{','.join(sizes_texts(shape, axes))}]{vma_text(self.vma) if self.vma else ''}"


def _refinement(names: frozenset[Any], sharding: Any) -> MeshAxes | None:
    return MeshAxes(names, sharding) if names or sharding is not None else None


def with_vma(aval: ShapedArray, names: Iterable[Any]) -> ShapedArray:
    """Return the type with these manual axes, along which its values may differ, and no others."""
    vma = frozenset(names)
    return aval if vma == aval.vma else aval.refined(_refinement(vma, aval.explicit_sharding))


def with_sharding(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return the type with this explicit sharding, or without one for None."""
    return aval if sharding is aval.explicit_sharding else aval.refined(_refinement(aval.vma, sharding))
