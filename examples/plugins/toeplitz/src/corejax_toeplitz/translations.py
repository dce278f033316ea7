"""StableHLO translation: two forward transforms, a product, and an inverse transform, as in the impl rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_toeplitz.matvec import fft_length, matvec_p


@xla_translations.register(matvec_p)
def matvec_translation(ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any]) -> Any:
    """Translate to StableHLO's `fft`, of type RFFT and IRFFT for real numbers."""
    (d_aval, x_aval), dtype = in_avals, in_avals[0].dtype
    real = dtype.kind != "c"
    # The transforms support float32 and float64 only.
    wide = dtype if dtype in (np.float64, np.complex64, np.complex128) else np.dtype(np.float32)
    spectral = np.dtype(np.complex128 if wide in (np.float64, np.complex128) else np.complex64)
    length, batch = fft_length(d_aval), np.broadcast_shapes(d_aval.shape[:-1], x_aval.shape[:-1])
    bins = length // 2 + 1 if real else length

    def transform(kind: str, x: Any, out: ShapedArray) -> Any:
        attrs = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {ctx.i64([length])}"
        return ctx.op("fft", x, out=out, attrs=attrs)

    def forward(x: Any) -> Any:
        *leading, size = x.aval.shape
        filled = ctx.pad(ctx.convert(x, wide), [*((0, 0, 0) for _ in leading), (0, length - size, 0)])
        out = transform("RFFT" if real else "FFT", filled, ShapedArray((*leading, bins), spectral))
        return ctx.broadcast_in_dim(out, (*batch, bins), range(len(batch) + 1))

    aval = ShapedArray((*batch, bins), spectral)
    product = ctx.op("multiply", *map(forward, in_vals), out=aval)
    whole = transform("IRFFT" if real else "IFFT", product, ShapedArray((*batch, length), wide))
    size, m = d_aval.shape[-1], x_aval.shape[-1]
    wanted = ctx.slice(whole, [*(0 for _ in batch), m - 1], [*batch, size])
    return ctx.convert(wanted, dtype)
