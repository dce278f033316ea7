"""StableHLO of `empty` and of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import ShapedArray, xla_translations
from corejax_lax_basic.creation.empty import TOKEN, after_all_p, create_token_p, empty_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(empty_p)
def empty(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, shape: Any, dtype: Any) -> Any:
    """Lower to zeros."""
    return ctx.full(ShapedArray(shape, dtype), 0)


@xla_translations.register(create_token_p)
def create_token(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    """Lower to an array without elements."""
    return ctx.full(TOKEN, 0)


@xla_translations.register(after_all_p)
def after_all(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
    """Lower to a barrier that waits for all operands."""
    tokens = list(in_vals) or [ctx.full(TOKEN, 0)]
    return ctx.op("optimization_barrier", *tokens, out=[TOKEN] * len(tokens))[0]
