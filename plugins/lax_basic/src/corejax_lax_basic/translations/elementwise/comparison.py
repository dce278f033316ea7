"""StableHLO of comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corejax.extend import xla_translations
from corejax_lax_basic.elementwise import comparison
from corejax_lax_basic.translations.elementwise._family import expanded

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _comparison(direction: str) -> Callable[..., Any]:
    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
        return ctx.compare(direction, *expanded(ctx, in_vals))

    return rule


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    xla_translations.register(getattr(comparison, f"{_name}_p"), _comparison(_name.upper()))
