"""StableHLO of `conv_general_dilated`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, xla_translations
from corejax_lax_basic._base.small_ints import SMALL_INT_BYTES
from corejax_lax_basic.convolution.conv import conv_general_dilated_p
from corejax_lax_basic.translations._padding import padding_text
from corejax_lax_basic.translations.elementwise.complex_numbers import part
from corejax_lax_basic.translations.linear.dot import precision_text

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _numbers(numbers: Any) -> str:
    """Write dimension numbers as StableHLO's text: `[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`."""

    def axes(spec: Any, letters: str) -> str:
        names = {axis: letters[i] if i < 2 else str(i - 2) for i, axis in enumerate(spec)}
        return f"[{', '.join(names[i] for i in range(len(spec)))}]"

    lhs, rhs, out = numbers
    return f"#stablehlo.conv<{axes(lhs, 'bf')}x{axes(rhs, 'oi')}->{axes(out, 'bf')}>"


def _attributes(ctx: TranslationContext, precision: Any, params: dict[str, Any]) -> str:
    padding = params["padding"]
    reversal = f"array<i1: {', '.join(['false'] * len(padding))}>" if padding else "array<i1>"
    return (
        f"batch_group_count = {params['batch_group_count']} : i64, "
        f"dimension_numbers = {_numbers(params['dimension_numbers'])}, "
        f"feature_group_count = {params['feature_group_count']} : i64, "
        f"lhs_dilation = {ctx.i64(params['lhs_dilation'])}, "
        f"padding = {padding_text(padding)}, "
        f"precision_config = [{precision_text(precision)}], "
        f"rhs_dilation = {ctx.i64(params['rhs_dilation'])}, "
        f"window_reversal = {reversal}, "
        f"window_strides = {ctx.i64(params['window_strides'])}"
    )


@xla_translations.register(conv_general_dilated_p)
def conv_general_dilated(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, precision: Any = None, **params: Any
) -> Any:
    """Lower to `convolution`, with sums in the preferred element type; a complex one is four real ones."""
    out = conv_general_dilated_p.abstract(tuple(in_avals), params)[0]
    out = ShapedArray(out.shape, out.dtype)
    if 0 in (*in_vals[0].aval.shape, *in_vals[1].aval.shape, *out.shape):
        return ctx.full(out, 0)
    undivided = _undivided_dimensions(**params)
    lhs, rhs = (ctx.undivided(x, dims) for x, dims in zip(in_vals, undivided, strict=False))
    lhs, params = _crop(ctx, lhs, params)
    return ctx.undivided(_convolution(ctx, lhs, rhs, out, _attributes(ctx, precision, params)), undivided[2])


def _undivided_dimensions(
    *, dimension_numbers: Any, feature_group_count: int, batch_group_count: int, **params: Any
) -> list[tuple[int, ...]]:
    """Return the dimensions of both operands and of the result that must not be split over devices.

    If windows or groups are split, and other devices hold copies or split another dimension, XLA's partitioner sums
    over all of them, or ends the process. The dimensions that it may split are those of a matrix product: the batch,
    and features if they are one group.
    """
    lhs, rhs, out = (tuple(spec) for spec in dimension_numbers)
    if feature_group_count > 1:
        return [lhs[1:], rhs, out[1:]]
    if batch_group_count > 1:
        return [lhs, rhs, out]
    return [lhs[2:], rhs[2:], out[2:]]


def _crop(ctx: TranslationContext, lhs: Any, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Apply negative padding to the operand, and return the params of the remaining convolution.

    XLA on CPUs reads beyond the operand if one end of an axis is cropped and the other one padded.
    """
    axes, padding = params["dimension_numbers"].lhs_spec[2:], list(params["padding"])
    config = [(0, 0, 0)] * lhs.aval.ndim
    for i, axis in enumerate(axes):
        if min(padding[i]) < 0 and params["lhs_dilation"][i] == 1:
            config[axis], padding[i] = (*padding[i], 0), (0, 0)
    return (ctx.pad(lhs, config), params | {"padding": tuple(padding)}) if any(map(any, config)) else (lhs, params)


def _convolution(ctx: TranslationContext, lhs: Any, rhs: Any, out: ShapedArray, attrs: str) -> Any:
    if out.dtype in SMALL_INT_BYTES:  # XLA has no convolutions of these dtypes
        wide = np.dtype(np.int32)
        lhs, rhs = ctx.convert(lhs, wide), ctx.convert(rhs, wide)
        return ctx.convert(ctx.op("convolution", lhs, rhs, out=out.update(dtype=wide), attrs=attrs), out.dtype)
    if not dtypes.is_complex(out.dtype):
        if ctx.platform == "cpu":  # products are exact in the wider type; GPUs have units for narrow operands
            lhs, rhs = ctx.convert(lhs, out.dtype), ctx.convert(rhs, out.dtype)
        return ctx.op("convolution", lhs, rhs, out=out, attrs=attrs)
    # XLA has no convolution of complex numbers on GPUs, and a slow one on CPUs.
    half = out.update(dtype=dtypes.real_dtype_of(out.dtype))

    def product(a: str, b: str) -> Any:
        x, y = (_part(ctx, a, lhs, half.dtype), _part(ctx, b, rhs, half.dtype))
        return ctx.op("convolution", x, y, out=half, attrs=attrs)

    real = ctx.op("subtract", product("real", "real"), product("imag", "imag"), out=half)
    imag = ctx.op("add", product("real", "imag"), product("imag", "real"), out=half)
    return ctx.op("complex", real, imag, out=out)


def _part(ctx: TranslationContext, which: str, x: Any, dtype: np.dtype[Any]) -> Any:
    """Return the real or imaginary part of a complex or real value."""
    if not dtypes.is_complex(x.aval.dtype):
        return ctx.convert(x, dtype) if which == "real" else ctx.full(x.aval.update(dtype=dtype), 0)
    return ctx.convert(part(ctx, which, x), dtype)
