"""Translations of `pack` and `unpack`, which append no operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import xla_translations
from corejax_lax_basic.values.pack import pack_p, unpack_p


@xla_translations.register(pack_p)
def pack_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, type: Any) -> Any:
    """Return the values of the parts as one value."""
    return ctx.packed(type, in_vals)


@xla_translations.register(unpack_p)
def unpack_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any]) -> list[Any]:
    """Return the values of the parts."""
    return list(ctx.parts(in_vals))
