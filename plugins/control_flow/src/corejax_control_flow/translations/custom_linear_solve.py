"""StableHLO of `custom_linear_solve`: its solver, in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, split_list, xla_translations
from corejax_control_flow.solvers.custom_linear_solve import custom_linear_solve_p


@xla_translations.register(custom_linear_solve_p)
def custom_linear_solve_translation(
    ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, const_lengths: Any, solve: ClosedJaxpr, **params: Any
) -> list[Any]:
    """The solver."""
    _, _, consts, _, b = split_list(in_vals, const_lengths)
    return ctx.inline(solve, [*consts, *b])  # type: ignore[no-any-return]
