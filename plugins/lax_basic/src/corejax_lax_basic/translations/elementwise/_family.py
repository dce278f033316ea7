"""StableHLO of what tables of elementwise primitives say is one operation, and of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Primitive, xla_translations
from corejax_lax_basic._base.accuracy import AccuracyMode, Tolerance
from corejax_lax_basic.elementwise._family import STABLEHLO


def expanded(ctx: Any, vals: Sequence[Any]) -> list[Any]:
    """Elementwise operands in one shape: scalars beside arrays are broadcast."""
    first = vals[0].aval.shape
    for v in vals:
        if v.aval.shape != first:
            return ctx.expand_scalars(vals, max((v.aval.shape for v in vals), key=len))  # type: ignore[no-any-return]
    return list(vals)


def one_op(primitive: Primitive, name: str) -> Callable[..., Any]:
    """The rule of an elementwise primitive that is one operation."""

    def rule(ctx: Any, in_avals: Any, in_vals: Any, *, accuracy: Any = None) -> Any:
        vals = in_vals if len(in_vals) == 1 else expanded(ctx, in_vals)
        return ctx.op(name, *vals, out=primitive.abstract(tuple(in_avals), {})[0], attrs=accuracy_text(accuracy))

    return rule


def accuracy_text(accuracy: Tolerance | AccuracyMode | None) -> str:
    """The attribute `result_accuracy`; nothing where the usual accuracy is asked for."""
    if accuracy is None or accuracy is AccuracyMode.DEFAULT:
        return ""
    limits, mode = "", "HIGHEST"
    if isinstance(accuracy, Tolerance):
        limits = f"atol = {accuracy.atol:.17e}, rtol = {accuracy.rtol:.17e}, ulps = {accuracy.ulps}, "
        mode = "TOLERANCE"
    named = f"mode = #stablehlo.result_accuracy_mode<{mode}>"
    return f"result_accuracy = #stablehlo.result_accuracy<{limits}{named}>"


def compare(ctx: Any, direction: str, x: Any, y: Any) -> Any:
    """The operation `compare` on values of one type."""
    return ctx.compare(direction, x, y)


for _primitive, _name in STABLEHLO.items():
    xla_translations.register(_primitive, one_op(_primitive, _name))
