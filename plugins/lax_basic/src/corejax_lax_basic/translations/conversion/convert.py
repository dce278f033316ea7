"""StableHLO of convert_element_type; and of stop_gradient, stage and copy, which add no operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic.conversion.convert import convert_element_type_p, stop_gradient_p
from corejax_lax_basic.conversion.identity import copy_p, stage_p
from corejax_lax_basic.translations.elementwise.complex_numbers import part

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(convert_element_type_p)
def _convert_element_type(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, new_dtype: Any, weak_type: bool
) -> Any:
    (x,) = in_vals
    if dtypes.is_bool(new_dtype) and not dtypes.is_bool(x.aval.dtype):
        return ctx.compare("NE", x, ctx.full(x.aval, 0))  # XLA's convert to i1 would take the lowest bit
    if dtypes.is_bool(x.aval.dtype) and dtypes.is_inexact(new_dtype):
        # XLA rewrites a product or quotient with a converted boolean as a selection, which drops NaN and signs.
        out = x.aval.update(dtype=new_dtype)
        return ctx.op("select", x, ctx.full(out, 1), ctx.full(out, 0), out=out)
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(new_dtype):
        x = part(ctx, "real", x)
    if x.aval.dtype.name == "float4_e2m1fn" and dtypes.is_integer(new_dtype):
        x = ctx.convert(x, np.dtype(np.float32))  # XLA treats the largest number as infinite
    return ctx.convert(x, new_dtype)


@xla_translations.register(stop_gradient_p)
@xla_translations.register(stage_p)
@xla_translations.register(copy_p)
def _identity(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    return in_vals[0]
