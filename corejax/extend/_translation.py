"""Types for annotations of translation rules: the StableHLO builder `ctx`, and the values that it creates.

A rule `(ctx, in_avals, in_vals, **params) -> value` (a list of values if the primitive has `multiple_results`) takes a
`TranslationContext` and one `TranslationValue` for each operand. A backend provides the classes, so that authors import
neither it nor jaxlib. The StableHLO specification describes the operations: https://openxla.org/stablehlo/spec.

    @xla_translations.register(erfcx_p)
    def erfcx_translation(ctx: TranslationContext, in_avals, in_vals):
        (x,), (aval,) = in_vals, in_avals
        grown = ctx.op("exponential", ctx.op("multiply", x, x, out=aval), out=aval)
        return ctx.op("multiply", grown, ctx.op("chlo.erfc", x, out=aval), out=aval)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from corejax.core.avals import Avals, Shape, ShapedArray

if TYPE_CHECKING:
    from corejax.ir import ClosedJaxpr

Types: TypeAlias = ShapedArray | Avals  # of one result, or of several


class TranslationValue(Protocol):
    """A value in the program under construction: the result of an operation, or an argument.

    Attributes:
        aval: its type; weak types are ignored.
    """

    aval: ShapedArray


class TranslationContext(Protocol):
    """Appends StableHLO operations to a function.

    Attributes:
        platform: the platform to compile for, `"cpu"` or `"cuda"`.
        in_elementwise: whether the decomposition of an elementwise primitive is being translated, which the compiler
            can fuse into one loop.
        module: the module under construction; `module.meshes` are the meshes of devices that it runs on.
    """

    platform: str
    module: Any

    @property
    def in_elementwise(self) -> bool:
        """Whether the decomposition of an elementwise primitive is being translated."""

    def op(
        self, name: str, *operands: TranslationValue, out: Types, attrs: str = "", regions: Sequence[str] = ()
    ) -> Any:
        """Append an operation.

        Args:
            name: the name of a StableHLO operation (`"add"`), or with the prefix of another dialect (`"chlo.erf"`).
            operands: values.
            out: the type of the result, or a list of types.
            attrs: the body of the attribute dictionary as MLIR text, `"dimension = 0 : i64"`; `i64` formats arrays of
                integers: `f"permutation = {ctx.i64(axes)}"`.
            regions: regions built by `region`.

        Returns:
            A value, or a list of values if `out` is a list.
        """

    def i64(self, values: Iterable[int]) -> str:
        """Return an array attribute of 64-bit integers as MLIR text: `array<i64: 1, 0>`."""

    def region(self, arg_avals: Avals, body: Callable[..., object]) -> str:
        """Build a region for `op`; `body(ctx, *args)` returns the value or values that the region returns."""

    def constant(self, value: object, dtype: object = None) -> TranslationValue:
        """Append a constant of a NumPy array's shape and values, or a scalar one, converted to `dtype` if given."""

    def full(self, aval: ShapedArray, value: object) -> TranslationValue:
        """Append a constant of the shape and dtype of `aval` filled with the scalar `value`."""

    def broadcast_in_dim(self, x: TranslationValue, shape: Shape, dims: Sequence[int]) -> TranslationValue:
        """Broadcast `x` to `shape`: its axis `i` becomes axis `dims[i]` and has the same size or size 1."""

    def expand_scalars(self, vals: Sequence[TranslationValue], shape: Shape) -> list[TranslationValue]:
        """Broadcast the scalars among the operands of an elementwise primitive to `shape`."""

    def reshape(self, x: TranslationValue, shape: Shape) -> TranslationValue:
        """Reshape `x` to a shape of the same size."""

    def convert(self, x: TranslationValue, dtype: object) -> TranslationValue:
        """Convert the elements of `x` to a dtype (StableHLO `convert`)."""

    def compare(self, direction: str, x: TranslationValue, y: TranslationValue) -> TranslationValue:
        """Compare two values of one type elementwise by `"EQ"`, `"NE"`, `"LT"`, `"LE"`, `"GT"` or `"GE"`."""

    def slice(
        self, x: TranslationValue, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> TranslationValue:
        """Return `x[starts[0]:limits[0]:strides[0], ...]`, with one entry per axis and all indices within bounds."""

    def pad(
        self, x: TranslationValue, config: Sequence[tuple[int, int, int]], value: TranslationValue | None = None
    ) -> TranslationValue:
        """Pad with a scalar (zero by default); `config` has the padding before, after and between elements by axis."""

    def undivided(self, x: TranslationValue, dims: Iterable[int] | None = None) -> TranslationValue:
        """Return `x` with some dimensions (by default all) replicated on every device."""

    def written(self, operand: TranslationValue, update: TranslationValue) -> TranslationValue:
        """Return an update in a form that an operation can safely write to a window of an operand."""

    def call(self, closed: ClosedJaxpr, vals: Sequence[TranslationValue], name: str = "f") -> list[TranslationValue]:
        """Call a program as a private function, which is emitted once for each program object."""

    def function(self, closed: ClosedJaxpr, name: str = "f") -> str:
        """Return the symbol of a private function for a program, for attributes: `f"decomposition = @{symbol}"`."""

    def packed(self, aval: ShapedArray, parts: Sequence[TranslationValue]) -> TranslationValue:
        """Return the value of a value type that the values `parts` store."""

    def parts(self, values: Iterable[TranslationValue]) -> list[TranslationValue]:
        """Return values of arrays only: a value of a value type is replaced by those of the arrays that store it."""

    def mesh_symbol(self, mesh: object) -> str:
        """Return the symbol of a mesh, for operations of the Shardy dialect; the program then runs on its devices."""

    def sharding_text(self, sharding: object, ndim: int, closed: bool = True) -> str:
        """Return a sharding of values of `ndim` dimensions as text of the Shardy dialect: `<@mesh, [{"x"}, {}]>`.

        If it is not `closed`, the compiler may shard dimensions further.
        """

    def inline(self, closed: ClosedJaxpr, vals: Sequence[TranslationValue]) -> list[TranslationValue]:
        """Append a program's operations in place and return its results."""
