"""What a translation context writes of where values are, over several devices: Shardy's operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corejax.extend import ShapedArray
from corejax_xla_backend._lowering.custom_calls import quoted
from corejax_xla_backend._lowering.types import SlicedValue, Value


class Placing:
    """Methods of `TranslationContext`; its attributes are there."""

    __slots__ = ()

    def mesh_symbol(self, mesh: Any) -> str:
        """The symbol of a mesh (with `shape_tuple` and `device_tuple`), for Shardy's operations: `@mesh`."""
        return self.module.meshes.symbol(mesh)

    def sharding_text(self, sharding: Any, ndim: int, closed: bool = True) -> str:
        """A sharding of values of `ndim` dimensions, for Shardy's operations: `<@mesh, [{"x"}, {}]>`.

        Where it is not closed, the compiler may split dimensions further.
        """
        return self.module.meshes.sharding(sharding, ndim, closed)

    def apart(self, vals: Sequence[Value]) -> list[Value]:
        """Values that are laid out anew, of which none is a slice by itself.

        XLA's partitioner remembers what a slice that every device has whole was made of as all of the operand, and
        takes it for the operand where that is to be whole, too. A slice behind a barrier is not laid out.
        """
        divides = self.module.meshes.divides
        return [
            self.op("optimization_barrier", v, out=v.aval) if divides and type(v) is SlicedValue else v for v in vals
        ]

    def undivided(self, x: Value, dims: Iterable[int] | None = None) -> Value:
        """The same value, of which each device has some dimensions (all unless given) whole.

        For operations that XLA's partitioner computes wrongly where these are split.
        """
        text = self.module.meshes.whole(x.aval.ndim, dims)
        attrs = f"sharding = #sdy.sharding{text}"
        return self.op("sdy.sharding_constraint", x, out=x.aval, attrs=attrs) if text else x

    def manual_computation(
        self,
        mesh: Any,
        axes: tuple[Any, ...],
        vals: Sequence[Value],
        in_texts: Sequence[str],
        out_texts: Sequence[str],
        out: Sequence[ShapedArray],
        block_avals: Sequence[ShapedArray],
        body: Callable[..., Any],
    ) -> list[Value]:
        """Append Shardy's `manual_computation`: `body(ctx, *blocks)` for each element of some axes of a mesh.

        Args:
            mesh: the mesh.
            axes: names of the axes.
            vals: the whole operands.
            in_texts, out_texts: how operands and results are cut into blocks: `<@mesh, [{"x"}, {}]>`.
            out: types of the whole results.
            block_avals: types of the operands' blocks.
            body: gives the results' blocks.
        """
        around = self.module.manual
        outer = () if around is None else around[1]
        self.module.enter(mesh, (*outer, *axes))
        try:
            region = self._region(block_avals, body, "sdy", vals)
        finally:
            self.module.enter(*(around or (None, ())))
        named = ", ".join(map(quoted, axes))
        attrs = (
            f"in_shardings = #sdy.sharding_per_value<[{', '.join(in_texts)}]>, "
            f"out_shardings = #sdy.sharding_per_value<[{', '.join(out_texts)}]>, "
            f"manual_axes = #sdy<manual_axes{{{named}}}>"
        )
        return self.op("sdy.manual_computation", *vals, out=list(out), attrs=attrs, regions=[region])  # type: ignore[no-any-return]
