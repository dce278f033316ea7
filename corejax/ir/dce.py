"""Dead-code elimination: drop equations that have no used outputs and no effects.

One backward pass keeps the set of live variables: an equation is kept if one of its outputs is live, and its operands
are then live. A `dce` rule trims the program in an equation's parameters if only some of its outputs are live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corejax.base.lists import select_list
from corejax.base.provenance import Provenance
from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Var
from corejax.messages.marks import mark
from corejax.messages.source_info import describe_source
from corejax.rules import OptionalRules

DceRule = Callable[[list[bool], JaxprEqn], tuple[list[bool], JaxprEqn | None]]

# primitive -> rule(used_outputs, eqn) -> (used_inputs, eqn or None), for higher-order primitives
dce_rules = OptionalRules("dce")


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Drop equations and arguments that the used outputs do not need; keep equations with effects.

    Args:
        jaxpr: the program.
        used_outputs: a flag for each output; unused outputs are dropped.
        instantiate: which unused arguments to keep, a flag for each or one for all.

    Returns:
        The smaller program, and for each argument whether it was kept. All constvars are kept.
    """
    if len(used_outputs) != len(jaxpr.outvars):
        raise ValueError(f"{len(used_outputs)} flags were given for {len(jaxpr.outvars)} outputs")
    keep = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    outvars = select_list(used_outputs, jaxpr.outvars)
    live: set[Any] = {v for v in outvars if type(v) is Var}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in live for v in eqn.outvars]
        kept: JaxprEqn | None = eqn
        rule = dce_rules.get(eqn.primitive)
        if rule is not None and not all(used):
            kept = _checked(eqn, used, rule, rule(used, eqn))
        elif not any(used) and not eqn.effects:
            kept = None
        if kept is not None:
            eqns.append(kept)
            live.update(v for v in kept.invars if type(v) is Var)
    used_inputs = [v in live or k for v, k in zip(jaxpr.invars, keep, strict=True)]
    invars = select_list(used_inputs, jaxpr.invars)
    return Jaxpr(jaxpr.constvars, invars, eqns[::-1], outvars, jaxpr.debug_info), used_inputs


def _checked(eqn: JaxprEqn, used: Sequence[bool], rule: DceRule, result: object) -> JaxprEqn | None:
    """Return the equation that a dce rule returned, or None, after checking that it binds the used outputs.

    Raises:
        TypeError: it does not; the message names the rule.
    """
    if not isinstance(result, list | tuple) or len(result) != 2:
        raise bad_equations("dce", eqn, rule, f"{result!r} instead of (used_inputs, eqn or None)")
    used_inputs, kept = result
    if not isinstance(used_inputs, list | tuple) or len(used_inputs) != len(eqn.invars):
        raise bad_equations("dce", eqn, rule, f"{used_inputs!r} as used_inputs, for {len(eqn.invars)} operands")
    wanted = select_list(used, eqn.outvars)
    problem = equations_mismatch([] if kept is None else [kept], eqn.invars, wanted)
    if problem is None and kept is None and eqn.effects:
        problem = "no equation, but the equation has effects"
    if problem is not None:
        raise bad_equations("dce", eqn, rule, problem)
    return kept  # type: ignore[no-any-return]  # checked just before


def equations_mismatch(eqns: Sequence[JaxprEqn], at_hand: Sequence[Any], wanted: Iterable[Var]) -> str | None:
    """Describe an error in equations that may use the atoms `at_hand` and must bind `wanted`; None if correct."""
    bound = {v for v in at_hand if type(v) is Var}
    made: set[Var] = set()
    for eqn in eqns:
        for v in eqn.invars:
            if type(v) is Var and v not in bound:
                return f"an equation that uses a variable of type {v.aval.str_short()} which is not available there"
        types = eqn.primitive.abstract(tuple(v.aval for v in eqn.invars), eqn.params)
        if [(a.shape, a.dtype) for a in types] != [(v.aval.shape, v.aval.dtype) for v in eqn.outvars]:
            results, binds = (", ".join(a.str_short() for a in each) for each in (types, [v.aval for v in eqn.outvars]))
            return f"an equation of {eqn.primitive.name!r} with results ({results}) that binds ({binds})"
        bound.update(eqn.outvars)
        made.update(eqn.outvars)
    missing = [v for v in wanted if v not in made]
    return f"no equation that binds a result of type {missing[0].aval.str_short()} which is needed" if missing else None


def bad_equations(kind: str, eqn: JaxprEqn, rule: Any, problem: str) -> TypeError:
    """Return the error for a rule that returned wrong equations."""
    name = eqn.primitive.name
    error = TypeError(
        f"primitive {name!r}: its {kind} rule (from {Provenance.of(rule)}) returned {problem}; it was needed for the "
        f"equation from {describe_source(eqn.source_info)}"
    )
    mark(error, eqn.primitive, kind)
    return error


def dce(jaxpr: Jaxpr) -> Jaxpr:
    """Drop equations that no output needs; keep all arguments and outputs."""
    return dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)[0]
