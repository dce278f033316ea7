"""StableHLO of sums, maxima and minima of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import xla_translations
from corejax_lax_basic.reductions._family import Fold
from corejax_lax_basic.translations.reductions._combination import combination, folding
from corejax_lax_basic.translations.windows._reduce_window import reduce_window
from corejax_lax_basic.windows.reduce_window import WINDOWED


def _windows(fold: Fold) -> Callable[..., Any]:
    return lambda ctx, x, initial, **params: reduce_window(ctx, [x], [initial], combination(fold), **params)[0]


for _primitive, _fold in WINDOWED.items():
    xla_translations.register(_primitive, folding(_fold, _windows(_fold)))
