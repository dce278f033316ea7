"""StableHLO of reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, xla_translations
from corejax_lax_basic.reductions import reduce as reductions
from corejax_lax_basic.reductions.reduce import Axes, neutral_element
from corejax_lax_basic.translations.elementwise._family import compare
from corejax_lax_basic.translations.elementwise.arithmetic import extremum

_NARROW = (np.dtype(np.float16), dtypes.dtype("bfloat16"))


def _reduced(aval: ShapedArray, axes: Axes) -> ShapedArray:
    return ShapedArray(tuple(d for i, d in enumerate(aval.shape) if i not in axes), aval.dtype)


def _reduce(ctx: Any, x: Any, axes: Axes, initial: Any, body: Callable[..., Any]) -> Any:
    scalar = ShapedArray((), x.aval.dtype)
    attrs = f"dimensions = {ctx.i64(axes)}"
    regions = [ctx.region([scalar, scalar], body)]
    return ctx.op("reduce", x, ctx.constant(initial), out=_reduced(x.aval, axes), attrs=attrs, regions=regions)


def _folding(name: str, op: str) -> Callable[..., Any]:
    """The rule of a reduction by one operation; sums and products of 16-bit floats are accumulated in float32."""

    def body(ctx: Any, x: Any, y: Any) -> Any:
        return extremum(ctx, op, x, y) if op in ("maximum", "minimum") else ctx.op(op, x, y, out=x.aval)

    def rule(ctx: Any, in_avals: Any, in_vals: Any, *, axes: Axes) -> Any:
        (x,) = in_vals
        dtype = x.aval.dtype
        if dtype in _NARROW and op in ("add", "multiply"):
            x = ctx.convert(x, np.dtype(np.float32))
        return ctx.convert(_reduce(ctx, x, axes, neutral_element(name, x.aval.dtype), body), dtype)

    return rule


def _index_of(name: str, wins: str) -> Callable[..., Any]:
    """The rule of argmax and argmin: a reduction of (value, index) pairs, on which any order of folding agrees."""

    def rule(ctx: Any, in_avals: Any, in_vals: Any, *, axes: Axes, index_dtype: Any) -> Any:
        (x,) = in_vals
        index = ShapedArray(x.aval.shape, index_dtype)
        value_0, index_0 = ShapedArray((), x.aval.dtype), ShapedArray((), index_dtype)

        def body(ctx: Any, x: Any, i: Any, y: Any, j: Any) -> list[Any]:
            flag = ShapedArray((), dtypes.bool_)
            better = compare(ctx, wins, x, y)
            same = compare(ctx, "EQ", x, y)
            if dtypes.is_float(x.aval.dtype):  # NaN is better than a number and the same as NaN
                x_nan, y_nan = compare(ctx, "NE", x, x), compare(ctx, "NE", y, y)
                y_number = ctx.op("not", y_nan, out=flag)
                better = ctx.op("or", better, ctx.op("and", x_nan, y_number, out=flag), out=flag)
                same = ctx.op("or", same, ctx.op("and", x_nan, y_nan, out=flag), out=flag)
            earlier = ctx.op("and", same, compare(ctx, "LT", i, j), out=flag)
            take = ctx.op("or", better, earlier, out=flag)
            return [ctx.op("select", take, x, y, out=x.aval), ctx.op("select", take, i, j, out=i.aval)]

        numbers = ctx.op("iota", out=index, attrs=f"iota_dimension = {axes[0]} : i64")
        worst = ctx.constant(neutral_element("reduce_max" if name == "argmax" else "reduce_min", x.aval.dtype))
        last = ctx.constant(np.array(dtypes.iinfo(index_dtype).max, index_dtype))  # gives way to any element
        outs = [_reduced(x.aval, axes), _reduced(index, axes)]
        attrs = f"dimensions = {ctx.i64(axes)}"
        regions = [ctx.region([value_0, index_0, value_0, index_0], body)]
        return ctx.op("reduce", x, numbers, worst, last, out=outs, attrs=attrs, regions=regions)[1]

    return rule


# fmt: off
xla_translations.register(reductions.reduce_sum_p,  _folding("reduce_sum",  "add"))
xla_translations.register(reductions.reduce_prod_p, _folding("reduce_prod", "multiply"))
xla_translations.register(reductions.reduce_max_p,  _folding("reduce_max",  "maximum"))
xla_translations.register(reductions.reduce_min_p,  _folding("reduce_min",  "minimum"))
xla_translations.register(reductions.reduce_and_p,  _folding("reduce_and",  "and"))
xla_translations.register(reductions.reduce_or_p,   _folding("reduce_or",   "or"))
xla_translations.register(reductions.argmax_p,      _index_of("argmax", "GT"))
xla_translations.register(reductions.argmin_p,      _index_of("argmin", "LT"))
# fmt: on
