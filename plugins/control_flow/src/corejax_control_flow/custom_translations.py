"""StableHLO of `custom_linear_solve`, and why `custom_lin` has none; calls of one program have theirs by `defcall`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, split_list, xla_translations
from corejax_control_flow.custom_vjp_rules import custom_lin_p, no_forward_mode
from corejax_control_flow.linear_solve import custom_linear_solve_p


@xla_translations.register(custom_linear_solve_p)
def custom_linear_solve_translation(
    ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, const_lengths: Any, solve: ClosedJaxpr, **params: Any
) -> list[Any]:
    """The solver."""
    _, _, consts, _, b = split_list(in_vals, const_lengths)
    return ctx.inline(solve, [*consts, *b])  # type: ignore[no-any-return]


@xla_translations.register(custom_lin_p)
def custom_lin_translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, name: str, **params: Any) -> list[Any]:
    """Refuses.

    Raises:
        TypeError: always.
    """
    raise no_forward_mode(name)
