"""StableHLO of the parts of complex numbers."""

from __future__ import annotations

from typing import Any

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic.elementwise.complex_numbers import complex_p, conj_p, imag_p, real_p


def part(ctx: Any, name: str, x: Any) -> Any:
    """The real or imaginary part of a complex value."""
    return ctx.op(name, x, out=x.aval.update(dtype=dtypes.real_dtype_of(x.aval.dtype)))


@xla_translations.register(real_p)
def _real(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    return part(ctx, "real", *in_vals)


@xla_translations.register(imag_p)
def _imag(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    return part(ctx, "imag", *in_vals)


@xla_translations.register(conj_p)
def _conj(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    re, im = part(ctx, "real", x), part(ctx, "imag", x)
    return ctx.op("complex", re, ctx.op("negate", im, out=im.aval), out=x.aval)


@xla_translations.register(complex_p)
def _complex(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    shape = next((v.aval.shape for v in in_vals if v.aval.ndim), ())
    re, im = ctx.expand_scalars(in_vals, shape)
    return ctx.op("complex", re, im, out=re.aval.update(dtype=dtypes.complex_dtype_of(re.aval.dtype)))
