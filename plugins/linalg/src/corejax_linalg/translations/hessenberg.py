"""XLA translation of `hessenberg`."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax_linalg.primitives.hessenberg import hessenberg_p
from corejax_linalg.translations._kernels import info_of, kernel, on_cpu


@on_cpu(hessenberg_p)
def _by_lapack(ctx: Any, out: Any, a: Any) -> Any:
    last = np.int32(a.aval.shape[-1])
    return kernel(ctx, "gehrd", a, out=[*out, info_of(a.aval)], in_place=[(0, 0)], low=np.int32(1), high=last)[:2]
