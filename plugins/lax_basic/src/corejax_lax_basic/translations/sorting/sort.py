"""StableHLO of `sort`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, xla_translations
from corejax_lax_basic.sorting.sort import sort_p
from corejax_lax_basic.translations._widening import orderable, widened
from corejax_lax_basic.translations.sorting.total_order import compare_total

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _key_parts(ctx: TranslationContext, x: Any) -> list[Any]:
    """Return a key as values that the total order sorts: both zeros become 0.0, all NaNs one NaN.

    A complex number becomes its parts, after a rank that puts NaNs last: 1 for NaN in the imaginary part, 2 in the real
    part, 3 in both.
    """
    x = orderable(ctx, x)
    aval = x.aval
    if dtypes.is_complex(aval.dtype):
        real = aval.update(dtype=dtypes.real_dtype_of(aval.dtype))
        parts = [ctx.op(name, x, out=real) for name in ("real", "imag")]
        ranks = [
            ctx.op("select", ctx.compare("NE", v, v), ctx.full(real, rank), ctx.full(real, 0), out=real)
            for v, rank in zip(parts, (2, 1), strict=True)
        ]
        return [ctx.op("add", *ranks, out=real), *(key for v in parts for key in _key_parts(ctx, v))]
    if not dtypes.is_float(aval.dtype):
        return [x]
    zero, nan = (ctx.constant(np.array(value, aval.dtype)) for value in (0, np.nan))
    positive = ctx.op("select", ctx.compare("EQ", x, zero), zero, x, out=aval)
    return [ctx.op("select", ctx.compare("NE", x, x), nan, positive, out=aval)]


def _precedes(num_keys: int) -> Any:
    """Return the body of a comparator; its operands come in pairs."""

    def body(ctx: TranslationContext, *pairs: Any) -> Any:
        flag = ShapedArray((), dtypes.bool_)
        keys = [[_key_parts(ctx, pairs[2 * i + side]) for i in range(num_keys)] for side in (0, 1)]
        firsts, seconds = ([part for parts in side for part in parts] for side in keys)
        out = None
        for x, y in zip(reversed(firsts), reversed(seconds), strict=True):
            less = compare_total(ctx, "LT", x, y)
            if out is not None:
                ties = ctx.op("and", compare_total(ctx, "EQ", x, y), out, out=flag)
                less = ctx.op("or", less, ties, out=flag)
            out = less
        return out

    return body


@xla_translations.register(sort_p)
def sort(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, dimension: int, is_stable: bool, num_keys: int
) -> Any:
    """Lower to `sort` with a comparator for the keys."""
    operands = [widened(ctx, v) for v in in_vals]
    scalars = [ShapedArray((), v.aval.dtype) for v in operands for _ in range(2)]
    attrs = f"dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}"
    outs = [v.aval for v in operands]
    results = ctx.op("sort", *operands, out=outs, attrs=attrs, regions=[ctx.region(scalars, _precedes(num_keys))])
    return [ctx.convert(v, aval.dtype) for v, aval in zip(results, in_avals, strict=True)]
