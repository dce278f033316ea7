"""`remat2`: a program with inner values that the backward pass recomputes.

    remat2 : a -> b        given a program a -> b

Without differentiation it is equivalent to the program. Partial evaluation splits the program in two. The known half
saves its arguments and the values that the policy selects. The unknown half recomputes the other residuals from these;
its equation has `differentiated=True`.
"""

from __future__ import annotations

from typing import Any

from corejax.extend import ClosedJaxpr, Primitive, defcall, inlining
from corejax.extend.programs import CallChange, Policy
from corejax_control_flow.checkpoint.policies import nothing_saveable

remat_p = Primitive(
    "remat2",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=inlining("jaxpr"),
    doc=(
        "Run a program with inner values that the backward pass recomputes. Params: jaxpr, policy (None: no inner "
        "value is saved), prevent_cse, differentiated."
    ),
)


def _policy(params: dict[str, Any]) -> Policy:
    return params["policy"] or nothing_saveable


def _differentiated(change: CallChange, params: dict[str, Any]) -> dict[str, Any]:
    """Mark the unknown half as differentiated. It needs `prevent_cse` only if it recomputes something."""
    if change.kind != "unknown":
        return {}
    fence = params["prevent_cse"] and _recomputes(change.program, change.operands.count(None))
    return {"differentiated": True, "prevent_cse": fence}


def _recomputes(unknown: ClosedJaxpr, num_res: int) -> bool:
    """Return whether an equation of an unknown half depends on residuals only."""
    linear: set[Any] = set(unknown.jaxpr.invars[num_res:])
    for eqn in unknown.jaxpr.eqns:
        if linear.isdisjoint(eqn.invars):
            return True
        linear.update(eqn.outvars)
    return False


defcall(remat_p, "jaxpr", update=_differentiated, policy=_policy, inline=("known",), without=("xla_translation",))
