"""Types for annotations of translation rules: the StableHLO builder `ctx`, and the values that it makes.

A rule `(ctx, in_avals, in_vals, **params) -> value` (a list of values where the primitive has `multiple_results`) gets
a `TranslationContext` and one `TranslationValue` for each operand. A backend provides the classes; authors import
neither it nor jaxlib. Operations and their attributes: the StableHLO specification, https://openxla.org/stablehlo/spec.

    @xla_translations.register(erfcx_p)
    def erfcx_translation(ctx: TranslationContext, in_avals, in_vals):
        (x,), (aval,) = in_vals, in_avals
        grown = ctx.op("exponential", ctx.op("multiply", x, x, out=aval), out=aval)
        return ctx.op("multiply", grown, ctx.op("chlo.erfc", x, out=aval), out=aval)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from corejax.core.avals import ShapedArray

if TYPE_CHECKING:
    from corejax.ir import ClosedJaxpr


class TranslationValue(Protocol):
    """A value in the program under construction: the result of an operation, or an argument.

    Attributes:
        aval: its type; a weak type has no meaning here.
    """

    aval: ShapedArray


class TranslationContext(Protocol):
    """Appends StableHLO operations to a function.

    Attributes:
        platform: what is compiled for, `"cpu"` or `"cuda"`.
        in_elementwise: whether what is written is the decomposition of an elementwise primitive, which the compiler
            makes one loop of if its operations let it.
    """

    platform: str

    @property
    def in_elementwise(self) -> bool: ...

    def op(
        self,
        name: str,
        *operands: Any,
        out: ShapedArray | Sequence[ShapedArray],
        attrs: str = "",
        regions: Sequence[str] = (),
    ) -> Any:
        """Append an operation.

        Args:
            name: of StableHLO (`"add"`), or a dotted one of another dialect (`"chlo.erf"`).
            operands: values.
            out: type of the result, or a list of types.
            attrs: the body of the attribute dictionary as MLIR text, `"dimension = 0 : i64"`; arrays of integers are
                written by `i64`: `f"permutation = {ctx.i64(axes)}"`.
            regions: made by `region`.

        Returns:
            A value, or a list of values where `out` is a list.
        """

    def i64(self, values: Iterable[int]) -> str:
        """An array attribute of 64-bit integers as MLIR text: `array<i64: 1, 0>`."""

    def region(self, arg_avals: Sequence[ShapedArray], body: Callable[..., Any]) -> str:
        """A region for `op`: `body(ctx, *args)` gives the value or values that it returns."""

    def constant(self, value: Any, dtype: Any = None) -> Any:
        """A constant from a NumPy array (of its shape) or a scalar, converted to `dtype` if given."""

    def full(self, aval: ShapedArray, value: Any) -> Any:
        """A constant of the shape and dtype of `aval` with the scalar `value` everywhere."""

    def broadcast_in_dim(self, x: Any, shape: Sequence[int], dims: Sequence[int]) -> Any:
        """`x` in a larger shape: its axis `i` becomes axis `dims[i]`, of the same size or from size 1."""

    def expand_scalars(self, vals: Sequence[Any], shape: Sequence[int]) -> list[Any]:
        """Operands of an elementwise primitive brought to one shape: scalars are broadcast, others stay."""

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """The elements of `x` in another shape of the same size."""

    def convert(self, x: Any, dtype: Any) -> Any:
        """`x` converted elementwise (StableHLO `convert`)."""

    def call(self, closed: ClosedJaxpr, vals: Sequence[Any], name: str = "f") -> list[Any]:
        """Call a program as a private function, which is written once for each program object."""

    def function(self, closed: ClosedJaxpr, name: str = "f") -> str:
        """The symbol of a private function for a program, for attributes: `f"decomposition = @{symbol}"`."""

    def mesh_symbol(self, mesh: Any) -> str:
        """The symbol of a mesh, for operations of the Shardy dialect; the program then runs on its devices."""

    def sharding_text(self, sharding: Any, ndim: int, closed: bool = True) -> str:
        """A sharding of values of `ndim` dimensions, for the same: `<@mesh, [{"x"}, {}]>`.

        Where it is not closed, the compiler may split dimensions further.
        """

    def inline(self, closed: ClosedJaxpr, vals: Sequence[Any]) -> list[Any]:
        """Write a program's operations here; gives its results."""
