"""StableHLO of `custom_lin`: there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import xla_translations
from corejax_control_flow.custom.custom_vjp_rules import custom_lin_p, no_forward_mode


@xla_translations.register(custom_lin_p)
def custom_lin_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, name: str, **params: Any) -> list[Any]:
    """Refuses.

    Raises:
        TypeError: always.
    """
    raise no_forward_mode(name)
