"""StableHLO of `fft`, an operation of up to three axes: more are transformed three by three."""

from __future__ import annotations

from typing import Any

from corejax.extend import ShapedArray, xla_translations
from corejax_fft.fft import FftType, fft_p

_MOST = 3  # axes of one operation


def _operation(ctx: Any, x: Any, kind: FftType, lengths: tuple[int, ...]) -> Any:
    """The transform of the last axes, up to three."""
    out = fft_p.abstract((ShapedArray(x.aval.shape, x.aval.dtype),), {"fft_type": kind, "fft_lengths": lengths})[0]
    attrs = f"fft_length = {ctx.i64(lengths)}, fft_type = #stablehlo<fft_type {kind.name}>"
    together = range(out.ndim - len(lengths), out.ndim)  # XLA's partitioner refuses some that are split, or aborts
    return ctx.undivided(ctx.op("fft", ctx.undivided(x, together), out=out, attrs=attrs), together)


def _transposed(ctx: Any, x: Any, order: list[int]) -> Any:
    aval = ShapedArray(tuple(x.aval.shape[i] for i in order), x.aval.dtype)
    return ctx.op("transpose", x, out=aval, attrs=f"permutation = {ctx.i64(order)}")


def _before_the_last(ctx: Any, x: Any, kind: FftType, count: int, last: int) -> Any:
    """The complex transform of `count` axes that stand before the `last` ones."""
    ndim = len(x.aval.shape)
    start, end = ndim - last - count, ndim - last
    order = [*range(start), *range(end, ndim), *range(start, end)]
    back = [order.index(i) for i in range(ndim)]
    lengths = x.aval.shape[start:end]
    return _transposed(ctx, _complex(ctx, _transposed(ctx, x, order), kind, lengths), back)


def _complex(ctx: Any, x: Any, kind: FftType, lengths: tuple[int, ...]) -> Any:
    """FFT or IFFT of the last axes, however many."""
    if len(lengths) > _MOST:
        x = _before_the_last(ctx, x, kind, len(lengths) - _MOST, _MOST)
    return _operation(ctx, x, kind, lengths[-_MOST:])


@xla_translations.register(fft_p)
def fft(ctx: Any, in_avals: Any, in_vals: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    """`fft`; cuFFT's real ones have one axis, for in several it takes halves to be symmetric along each."""
    (x,) = in_vals
    out = fft_p.abstract(tuple(in_avals), {"fft_type": fft_type, "fft_lengths": fft_lengths})[0]
    if not out.size:
        return ctx.full(out, 0)
    if fft_type in (FftType.FFT, FftType.IFFT):
        return _complex(ctx, x, fft_type, fft_lengths)
    together = 1 if ctx.platform != "cpu" else _MOST
    rest = max(0, len(fft_lengths) - together)
    if fft_type is FftType.RFFT:
        x = _operation(ctx, x, fft_type, fft_lengths[rest:])
        return _before_the_last(ctx, x, FftType.FFT, rest, len(fft_lengths) - rest) if rest else x
    if rest:
        x = _before_the_last(ctx, x, FftType.IFFT, rest, len(fft_lengths) - rest)
    return _operation(ctx, x, fft_type, fft_lengths[rest:])
