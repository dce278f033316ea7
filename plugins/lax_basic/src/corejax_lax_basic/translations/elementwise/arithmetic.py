"""StableHLO of maxima and minima."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic.elementwise.arithmetic import max_p, min_p
from corejax_lax_basic.translations.elementwise._family import expanded

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def extremum(ctx: TranslationContext, name: str, x: Any, y: Any) -> Any:
    """Lower to `maximum` or `minimum`; complex numbers in lexicographic order, and NaN if either is, as in NumPy."""
    if not dtypes.is_complex(x.aval.dtype):
        return ctx.op(name, x, y, out=x.aval)
    real = x.aval.update(dtype=dtypes.real_dtype_of(x.aval.dtype))
    wins = "GT" if name == "maximum" else "LT"
    parts = [[ctx.op(part, v, out=real) for v in (x, y)] for part in ("real", "imag")]
    by_real, by_imag = (ctx.compare(wins, *p) for p in parts)
    ties = ctx.compare("EQ", *parts[0])
    first = ctx.op("select", ties, by_imag, by_real, out=ties.aval)
    x_nan, y_nan = (ctx.compare("NE", v, v) for v in (x, y))
    first = ctx.op("and", first, ctx.op("not", y_nan, out=ties.aval), out=ties.aval)
    first = ctx.op("or", first, x_nan, out=ties.aval)
    return ctx.op("select", first, x, y, out=x.aval)


def _extremum(name: str) -> Callable[..., Any]:
    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
        return extremum(ctx, name, *expanded(ctx, in_vals))

    return rule


xla_translations.register(max_p, _extremum("maximum"))
xla_translations.register(min_p, _extremum("minimum"))
