"""StableHLO of slices and padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import xla_translations
from corejax_lax_basic.shape.slicing import pad_p, slice_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(slice_p)
def slice(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, start_indices: Any, limit_indices: Any, strides: Any
) -> Any:
    """Lower to `slice`."""
    return ctx.slice(in_vals[0], start_indices, limit_indices, strides)


@xla_translations.register(pad_p)
def pad(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, padding_config: Any) -> Any:
    """Lower to `pad`."""
    operand, value = in_vals
    return ctx.pad(operand, padding_config, value)
