"""`MeshAxes`: the refinement of types over the axes of a mesh, which the kernel carries with a type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from corejax.extend import Primitive, ShapedArray, get_aval
from corejax_parallel.types.explicit import results_shardings, sizes_texts
from corejax_parallel.types.vma import sum_cotangent, vary, vma_of_results, vma_text


class MeshAxes(NamedTuple):
    """What a type says of the axes of a mesh; see `corejax.extend.types.Refinement` for the methods.

    Attributes:
        vma: the manual axes along which values may differ.
        sharding: over which axes of type Explicit dimensions are split, a `NamedSharding` over a mesh without devices;
            None if the type does not say it.
    """

    vma: frozenset[Any] = frozenset()
    sharding: Any = None

    @property
    def of_any_shape(self) -> MeshAxes | None:
        """The manual axes."""
        return _refinement(self.vma, None)

    def of_results(
        self, primitive: Primitive, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Mapping[str, Any]
    ) -> tuple[ShapedArray, ...]:
        """Refine the types of results, unless a program, a collective or a sharding has said all of it."""
        names = vma_of_results(primitive, avals, params)
        outs = tuple([with_vma(aval, aval.vma | names) for aval in outs])
        complete = not primitive.tags.isdisjoint(("higher_order", "collective", "placing"))
        if complete or all(aval.explicit_sharding is None for aval in avals):
            return outs
        shardings = results_shardings(primitive, avals, outs, params)
        return tuple([with_sharding(aval, sharding) for aval, sharding in zip(outs, shardings, strict=True)])

    def conform(self, x: Any, aval: ShapedArray, *, cotangent: bool) -> Any:
        """Sum a cotangent along axes along which it differs and the primal does not; then vary and place the value."""
        if cotangent:
            x = sum_cotangent(x, aval.vma)
        x = vary(x, aval.vma)
        sharding = aval.explicit_sharding
        return x if sharding is None or get_aval(x).explicit_sharding == sharding else sharding.place(x)

    def join(self, other: MeshAxes) -> MeshAxes:
        """A value may differ along axes along which one may, and is split as the first says, if that says it."""
        return MeshAxes(self.vma | other.vma, other.sharding if self.sharding is None else self.sharding)

    def without_axis(self, dim: int) -> tuple[MeshAxes | None, tuple[Any, ...]]:
        """The names are those over which the dimension is split."""
        if self.sharding is None:
            return self, ()
        axes = self.sharding.spec.axes()
        return MeshAxes(self.vma, self.sharding.with_axes(axes[:dim] + axes[dim + 1 :])), axes[dim] or ()

    def with_axis(self, dim: int, names: tuple[Any, ...]) -> MeshAxes | None:
        """The dimension is split over those of the names that are of type Explicit and split no other one."""
        if self.sharding is None:
            return self
        axes = self.sharding.spec.axes()
        used = {name for each in axes for name in each or ()}
        free = tuple(name for name in names if name in self.sharding.mesh.explicit_axes and name not in used)
        return MeshAxes(self.vma, self.sharding.with_axes((*axes[:dim], free, *axes[dim:])))

    def text(self, shape: Sequence[Any]) -> str:
        """`[8@x,4]{V:i}`: sizes with the axes that they are split over, then the manual axes."""
        axes = ((),) * len(shape) if self.sharding is None else self.sharding.dimension_axes(len(shape))
        return f"[{','.join(sizes_texts(shape, axes))}]{vma_text(self.vma) if self.vma else ''}"


def _refinement(names: frozenset[Any], sharding: Any) -> MeshAxes | None:
    return MeshAxes(names, sharding) if names or sharding is not None else None


def with_vma(aval: ShapedArray, names: Iterable[Any]) -> ShapedArray:
    """Return the type of values that may differ along these manual axes, and along no other."""
    found = frozenset(names)
    return aval if found == aval.vma else aval.refined(_refinement(found, aval.explicit_sharding))


def with_sharding(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return the type of arrays with this sharding over axes of type Explicit; None if the type does not say it."""
    return aval if sharding is aval.explicit_sharding else aval.refined(_refinement(aval.vma, sharding))
