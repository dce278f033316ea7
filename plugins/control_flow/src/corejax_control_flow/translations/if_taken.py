"""StableHLO of `if_taken`: nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import xla_translations
from corejax_control_flow.branches.if_taken import if_taken_p


@xla_translations.register(if_taken_p)
def if_taken_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any]) -> Any:
    """The operand."""
    return in_vals[0]
