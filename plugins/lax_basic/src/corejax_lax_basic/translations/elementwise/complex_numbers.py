"""StableHLO of complex conjugates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic.elementwise.complex_numbers import conj_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def part(ctx: TranslationContext, name: str, x: Any) -> Any:
    """Return the real or imaginary part of a complex value."""
    return ctx.op(name, x, out=x.aval.update(dtype=dtypes.real_dtype_of(x.aval.dtype)))


@xla_translations.register(conj_p)
def _conj(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    re, im = part(ctx, "real", x), part(ctx, "imag", x)
    return ctx.op("complex", re, ctx.op("negate", im, out=im.aval), out=x.aval)
