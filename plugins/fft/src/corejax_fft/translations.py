"""StableHLO of `fft`, an operation over at most three axes; more axes are transformed three at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import ShapedArray, xla_translations
from corejax_fft.fft import FftType, fft_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

_MAX_AXES = 3  # of one operation


def _operation(ctx: TranslationContext, x: Any, kind: FftType, lengths: tuple[int, ...]) -> Any:
    """Emit the transform of the last axes, at most three."""
    out = fft_p.abstract((ShapedArray(x.aval.shape, x.aval.dtype),), {"fft_type": kind, "fft_lengths": lengths})[0]
    attrs = f"fft_length = {ctx.i64(lengths)}, fft_type = #stablehlo<fft_type {kind.name}>"
    # XLA's partitioner rejects some transforms of sharded axes, or aborts, so the axes are kept on one device.
    together = range(out.ndim - len(lengths), out.ndim)
    return ctx.undivided(ctx.op("fft", ctx.undivided(x, together), out=out, attrs=attrs), together)


def _transposed(ctx: TranslationContext, x: Any, order: list[int]) -> Any:
    aval = ShapedArray(tuple(x.aval.shape[i] for i in order), x.aval.dtype)
    return ctx.op("transpose", x, out=aval, attrs=f"permutation = {ctx.i64(order)}")


def _leading_axes(ctx: TranslationContext, x: Any, kind: FftType, count: int, last: int) -> Any:
    """Emit the complex transform of `count` axes that precede the `last` ones."""
    ndim = len(x.aval.shape)
    start, end = ndim - last - count, ndim - last
    order = [*range(start), *range(end, ndim), *range(start, end)]
    back = [order.index(i) for i in range(ndim)]
    lengths = x.aval.shape[start:end]
    return _transposed(ctx, _complex(ctx, _transposed(ctx, x, order), kind, lengths), back)


def _complex(ctx: TranslationContext, x: Any, kind: FftType, lengths: tuple[int, ...]) -> Any:
    """Emit FFT or IFFT of any number of last axes."""
    if len(lengths) > _MAX_AXES:
        x = _leading_axes(ctx, x, kind, len(lengths) - _MAX_AXES, _MAX_AXES)
    return _operation(ctx, x, kind, lengths[-_MAX_AXES:])


@xla_translations.register(fft_p)
def fft(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> Any:
    """Translate `fft`; on GPUs real transforms have one axis, as cuFFT assumes symmetry along each of several."""
    (x,) = in_vals
    out = fft_p.abstract(tuple(in_avals), {"fft_type": fft_type, "fft_lengths": fft_lengths})[0]
    if not out.size:
        return ctx.full(out, 0)
    if fft_type in (FftType.FFT, FftType.IFFT):
        return _complex(ctx, x, fft_type, fft_lengths)
    at_once = 1 if ctx.platform != "cpu" else _MAX_AXES
    rest = max(0, len(fft_lengths) - at_once)
    if fft_type is FftType.RFFT:
        x = _operation(ctx, x, fft_type, fft_lengths[rest:])
        return _leading_axes(ctx, x, FftType.FFT, rest, len(fft_lengths) - rest) if rest else x
    if rest:
        x = _leading_axes(ctx, x, FftType.IFFT, rest, len(fft_lengths) - rest)
    return _operation(ctx, x, fft_type, fft_lengths[rest:])
