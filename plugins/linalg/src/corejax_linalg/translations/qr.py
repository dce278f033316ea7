"""XLA translations of `geqrf` and `geqp3`, and of `qr`, which is its decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import xla_translations
from corejax_linalg.primitives.qr import geqp3_p, geqrf_p, qr_p
from corejax_linalg.translations._kernels import kernel, on_cpu


@on_cpu(geqrf_p)
def _geqrf(ctx: Any, out: Any, a: Any) -> Any:
    return kernel(ctx, "geqrf", a, out=out, in_place=[(0, 0)])


@on_cpu(geqp3_p)
def _geqp3(ctx: Any, out: Any, a: Any) -> Any:
    free = ctx.full(out[1], 0)  # no column has to be first
    packed, order, taus = kernel(ctx, "geqp3", a, free, out=out, in_place=[(0, 0), (1, 1)])
    return [packed, ctx.op("subtract", order, ctx.full(out[1], np.int32(1)), out=out[1]), taus]


xla_translations.register(qr_p, by="decomposition")
