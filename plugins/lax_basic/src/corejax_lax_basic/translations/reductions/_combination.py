"""StableHLO of two elements combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax_lax_basic.reductions._family import Fold
from corejax_lax_basic.translations.elementwise.arithmetic import extremum


def combination(fold: Fold) -> Callable[..., Any]:
    """What a region of two scalars computes."""
    name = str(fold.stablehlo)

    def combine(ctx: Any, x: Any, y: Any) -> Any:
        return extremum(ctx, name, x, y) if name in ("maximum", "minimum") else ctx.op(name, x, y, out=x.aval)

    return combine
