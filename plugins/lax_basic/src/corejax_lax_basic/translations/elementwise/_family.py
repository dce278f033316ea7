"""StableHLO of rows that are a single operation, and of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import Primitive, dtypes, xla_translations
from corejax_lax_basic._base.accuracy import AccuracyMode, Tolerance
from corejax_lax_basic.elementwise._complex_ends import ENDS
from corejax_lax_basic.elementwise._family import STABLEHLO
from corejax_lax_basic.translations.elementwise.complex_ends import with_ends

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def expanded(ctx: TranslationContext, vals: Sequence[Any]) -> list[Any]:
    """Broadcast scalars to the shape of the arrays beside them, so that elementwise operands have one shape."""
    first = vals[0].aval.shape
    for v in vals:
        if v.aval.shape != first:
            operands: list[Any] = ctx.expand_scalars(vals, max((v.aval.shape for v in vals), key=len))
            return operands
    return list(vals)


def one_op(primitive: Primitive, name: str) -> Callable[..., Any]:
    """Return the rule of an elementwise primitive that is one operation."""
    expensive = name in EXPENSIVE
    divides = name in ("divide", "remainder")
    has_ends = primitive.name in ENDS

    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, accuracy: Any = None) -> Any:
        vals = in_vals if len(in_vals) == 1 else expanded(ctx, in_vals)
        if divides and dtypes.is_integer(vals[0].aval.dtype):
            return _divide_integers(ctx, name, *vals)
        attrs = "" if accuracy is None else accuracy_text(accuracy)
        out = ctx.op(name, *vals, out=primitive.abstract(tuple(in_avals), {})[0], attrs=attrs)
        if has_ends:
            out = with_ends(ctx, primitive.name, vals[0], out)
        return fusible(ctx, out) if expensive and ctx.in_elementwise else out

    return rule


def _divide_integers(ctx: TranslationContext, name: str, x: Any, y: Any) -> Any:
    """Return a quotient or remainder of integers; if `y` is zero, all bits set or `x`.

    XLA's division has the same results, except for two constants: XLA divides these while it compiles, which ends the
    process. If the divisor is a constant other than zero, XLA removes the selections.
    """
    vanishes = ctx.compare("EQ", y, ctx.full(y.aval, 0))
    divisor = ctx.op("select", vanishes, ctx.full(y.aval, 1), y, out=y.aval)
    otherwise = ctx.full(x.aval, -1) if name == "divide" else x
    return ctx.op("select", vanishes, otherwise, ctx.op(name, x, divisor, out=x.aval), out=x.aval)


# Operations that XLA's fusions do not compute twice.
EXPENSIVE = {
    *("atan2", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic"),
    *("power", "remainder", "rsqrt", "sine", "sqrt", "tan", "tanh"),
}
_WIDTHS = {"float32": (8, 23), "float64": (11, 52)}  # bits of exponent and mantissa


def fusible(ctx: TranslationContext, x: Any) -> Any:
    """Wrap an expensive operation's result, so that XLA compiles a larger elementwise function as one fusion.

    If such a result is used twice, XLA's CPU compiler makes several fusions of the operations before it, and repeats
    their common part in each of them: a chain of a few special functions took ten times as long to compile and to run.
    Here the second use is that of `reduce_precision` to the result's own precision, which is the same number.
    """
    if x.aval.dtype.name not in _WIDTHS:
        return x
    exponent, mantissa = _WIDTHS[x.aval.dtype.name]
    attrs = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
    return ctx.op("reduce_precision", x, out=x.aval, attrs=attrs)


def accuracy_text(accuracy: Tolerance | AccuracyMode | None) -> str:
    """Return the attribute `result_accuracy`, or an empty string for the default accuracy."""
    if accuracy is None or accuracy is AccuracyMode.DEFAULT:
        return ""
    limits, mode = "", "HIGHEST"
    if isinstance(accuracy, Tolerance):
        limits = f"atol = {accuracy.atol:.17e}, rtol = {accuracy.rtol:.17e}, ulps = {accuracy.ulps}, "
        mode = "TOLERANCE"
    named = f"mode = #stablehlo.result_accuracy_mode<{mode}>"
    return f"result_accuracy = #stablehlo.result_accuracy<{limits}{named}>"


def translate_rows(primitives: Iterable[Primitive]) -> None:
    """Register the rules of those primitives that are rows of the table, unless they are registered already."""
    for primitive in primitives:
        if primitive in STABLEHLO and not _is_translated(primitive):
            xla_translations.register(primitive, one_op(primitive, STABLEHLO[primitive]))


def _is_translated(primitive: Primitive) -> bool:
    rule = xla_translations.rule_of(primitive)
    while rule is not None and rule.provenance.module != __name__:
        rule = rule.overridden
    return rule is not None
