"""StableHLO of `name`: nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import xla_translations
from corejax_control_flow.markers.name import name_p


@xla_translations.register(name_p)
def name_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, name: str) -> Any:
    """The operand."""
    return in_vals[0]
