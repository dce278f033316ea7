"""StableHLO of sums, maxima and minima of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import xla_translations
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic.reductions._family import Fold
from corejax_lax_basic.translations.reductions._combination import combination
from corejax_lax_basic.translations.windows._reduce_window import reduce_window
from corejax_lax_basic.windows.reduce_window import WINDOWED


def _folding(fold: Fold) -> Callable[..., Any]:
    """The rule of a reduction by one operation; where it rounds, 16-bit floats are accumulated in float32."""

    def rule(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        (x,) = in_vals
        dtype = x.aval.dtype
        if fold.wide and dtype in NARROW_FLOATS:
            x = ctx.convert(x, np.dtype(np.float32))
        initial = ctx.constant(fold.neutral(x.aval.dtype))
        return ctx.convert(reduce_window(ctx, [x], [initial], combination(fold), **params)[0], dtype)

    return rule


for _primitive, _fold in WINDOWED.items():
    xla_translations.register(_primitive, _folding(_fold))
