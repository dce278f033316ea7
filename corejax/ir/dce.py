"""Dead code elimination: dropping equations whose outputs nobody uses and that have no effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Var
from corejax.journal import Table

DceRule = Callable[[list[bool], JaxprEqn], tuple[list[bool], JaxprEqn | None]]

# primitive -> rule(used_outputs, eqn) -> (used_inputs, eqn or None), for higher-order primitives
dce_rules: dict[Any, DceRule] = Table("dce")


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Drop what the used outputs do not need; equations with effects stay.

    Args:
        jaxpr: the program.
        used_outputs: one flag for each output; unused outputs are dropped.
        instantiate: arguments to keep although nothing uses them, one flag each or one for all.

    Returns:
        The smaller program, and for each argument whether it was kept. Constvars are all kept.
    """
    if len(used_outputs) != len(jaxpr.outvars):
        raise ValueError(f"{len(used_outputs)} flags were given for {len(jaxpr.outvars)} outputs")
    keep = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live: set[Any] = {v for v in outvars if type(v) is Var}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in live for v in eqn.outvars]
        kept: JaxprEqn | None = eqn
        rule = dce_rules.get(eqn.primitive)
        if rule is not None and not all(used):
            used_inputs, kept = rule(used, eqn)
        elif not any(used) and not eqn.effects:
            kept = None
        if kept is not None:
            eqns.append(kept)
            live.update(v for v in kept.invars if type(v) is Var)
    used_inputs = [v in live or k for v, k in zip(jaxpr.invars, keep, strict=True)]
    invars = [v for v, used in zip(jaxpr.invars, used_inputs, strict=True) if used]
    return Jaxpr(jaxpr.constvars, invars, eqns[::-1], outvars, jaxpr.debug_info), used_inputs


def dce(jaxpr: Jaxpr) -> Jaxpr:
    """Drop what no output needs; arguments and outputs stay as they are."""
    return dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)[0]
