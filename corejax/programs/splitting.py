"""Split the equations of a program into those that depend on known arguments only and the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.ir.dce import equations_mismatch
from corejax.ir.jaxpr import Jaxpr, JaxprEqn
from corejax.rules import partial_eval_jaxpr_rules
from corejax.rules.run_rule import mismatch, shown


def split_equations(jaxpr: Jaxpr, unknowns: Sequence[bool]) -> tuple[list[JaxprEqn], list[JaxprEqn], set[Any]]:
    """Return the equations of the known and of the unknown half, and the unknown variables; rules split equations."""
    unknown_vars: set[Any] = {v for v, u in zip(jaxpr.invars, unknowns, strict=True) if u}
    eqns1: list[JaxprEqn] = []
    eqns2: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        unks_in = [v in unknown_vars for v in eqn.invars]
        if not any(unks_in):
            eqns1.append(eqn)
            continue
        rule = partial_eval_jaxpr_rules.table.get(eqn.primitive)
        if rule is None:
            unknown_vars.update(eqn.outvars)
            eqns2.append(eqn)
            continue
        split = rule(unks_in, eqn)
        if not isinstance(split, list | tuple) or len(split) != 4:
            raise _bad_split(eqn, f"{shown(split)} instead of (eqn_known, eqn_unknown, unknowns_out, residuals)")
        eqn1, eqn2, unks_out, _ = split
        # The known half is one equation or a list, because a loop's rule moves invariant equations before the loop.
        known = [] if eqn1 is None else eqn1 if isinstance(eqn1, list) else [eqn1]
        unknown = [] if eqn2 is None else [eqn2]
        _check_split(eqn, known, unknown, unks_out, unknown_vars)
        unknown_vars.update(v for v, u in zip(eqn.outvars, unks_out, strict=True) if u)
        eqns1.extend(known)
        eqns2.extend(unknown)
    return eqns1, eqns2, unknown_vars


def _bad_split(eqn: JaxprEqn, problem: str) -> TypeError:
    return mismatch(partial_eval_jaxpr_rules, eqn.primitive, problem, eqn.source_info)


def _check_split(
    eqn: JaxprEqn, known: list[JaxprEqn], unknown: list[JaxprEqn], unks_out: Sequence[bool], unknown_vars: set[Any]
) -> None:
    """Check the equations into which a rule splits one: they bind its outputs, and the known half uses known values.

    Raises:
        TypeError: they do not; the message names the rule.
    """
    if not isinstance(unks_out, list | tuple) or len(unks_out) != len(eqn.outvars):
        raise _bad_split(eqn, f"{shown(unks_out)} as unknowns_out, for {len(eqn.outvars)} results")
    for v in (v for e in known for v in e.invars):
        if v in unknown_vars:
            raise _bad_split(eqn, f"an eqn_known that uses an unknown operand of type {v.aval.str_short()}")
    problem = equations_mismatch([*known, *unknown], eqn.invars, ())
    if problem is not None:
        raise _bad_split(eqn, problem)
    bound_in = [{v for e in eqns for v in e.outvars} for eqns in (known, unknown)]
    for i, (v, unk) in enumerate(zip(eqn.outvars, unks_out, strict=True)):
        if v not in bound_in[bool(unk)]:
            which = "eqn_unknown" if unk else "eqn_known"
            raise _bad_split(eqn, f"no {which} that binds result {i}, which unknowns_out says is {which[4:]}")


def unzipped(jaxpr: Jaxpr, unknowns: Sequence[bool]) -> Jaxpr | None:
    """Split equations with known and unknown results, known halves first; return None if no equation is split."""
    known, unknown, _ = split_equations(jaxpr, unknowns)
    own = set(map(id, jaxpr.eqns))
    if all(id(eqn) in own for eqn in (*known, *unknown)):
        return None
    return Jaxpr(jaxpr.constvars, jaxpr.invars, [*known, *unknown], jaxpr.outvars, jaxpr.debug_info)
