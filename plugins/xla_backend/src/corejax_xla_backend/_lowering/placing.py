"""Methods of a translation context that place values over several devices by Shardy's operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corejax.extend import ShapedArray
from corejax_xla_backend._lowering.custom_calls import quoted
from corejax_xla_backend._lowering.function import Function
from corejax_xla_backend._lowering.types import SlicedValue, Value


class Placing(Function):
    """Methods of `TranslationContext`."""

    __slots__ = ()

    def mesh_symbol(self, mesh: Any) -> str:
        """Return the symbol of a mesh (with `shape_tuple` and `device_tuple`) for Shardy's operations: `@mesh`."""
        return self.module.meshes.symbol(mesh)

    def sharding_text(self, sharding: Any, ndim: int, closed: bool = True) -> str:
        """Return the text of a sharding of `ndim` dimensions for Shardy's operations: `<@mesh, [{"x"}, {}]>`.

        If the sharding is not closed, the compiler may split dimensions further.
        """
        return self.module.meshes.sharding(sharding, ndim, closed)

    def behind_barriers(self, vals: Sequence[Value]) -> list[Value]:
        """Return values that may be resharded, with each slice behind an optimization barrier.

        XLA's partitioner caches a replicated slice as if it were its whole operand, and then uses the slice if the
        operand itself must be replicated. The barrier keeps the slice itself from being resharded.
        """
        divides = self.module.meshes.divides
        return [
            self.op("optimization_barrier", v, out=v.aval) if divides and type(v) is SlicedValue else v for v in vals
        ]

    def undivided(self, x: Value, dims: Iterable[int] | None = None) -> Value:
        """Return a value with some dimensions (by default all) replicated on every device.

        For operations that XLA's partitioner computes wrongly if these dimensions are split.
        """
        text = self.module.meshes.replicated_sharding(x.aval.ndim, dims)
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
        """Append Shardy's `manual_computation`: `body(ctx, *blocks)` runs for each element of some axes of a mesh.

        Args:
            mesh: the mesh.
            axes: names of the axes.
            vals: the global operands.
            in_texts: for each array that stores operands, the sharding that cuts it into blocks: `<@mesh, [{"x"}]>`.
            out_texts: the same for the results.
            out: types of the global results.
            block_avals: types of the operands' blocks.
            body: returns the results' blocks.
        """
        enclosing = self.module.manual
        outer_axes = () if enclosing is None else enclosing[1]
        self.module.enter(mesh, (*outer_axes, *axes))
        try:
            region = self._region(block_avals, body, "sdy", vals)
        finally:
            self.module.enter(*(enclosing or (None, ())))
        axis_names = ", ".join(map(quoted, axes))
        attrs = (
            f"in_shardings = #sdy.sharding_per_value<[{', '.join(in_texts)}]>, "
            f"out_shardings = #sdy.sharding_per_value<[{', '.join(out_texts)}]>, "
            f"manual_axes = #sdy<manual_axes{{{axis_names}}}>"
        )
        return self.op("sdy.manual_computation", *vals, out=list(out), attrs=attrs, regions=[region])
