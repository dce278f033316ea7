"""Conversion of a traced body from weakly typed to strongly typed carries, without tracing it again.

A loop's first carry may be a Python number, which is weakly typed. Its body is traced on that type first, and only then
is it known whether the body returns a strong type. Tracing it a second time would double the time for each level of a
nest of loops. Mostly the second trace would differ from the first in the weak types of variables only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Jaxpr, JaxprEqn, ShapedArray, Var
from corejax.extend.programs import Literal, subjaxprs
from corejax_control_flow.programs.tracing import Traced


def with_strong_carries(traced: Traced, avals: Sequence[ShapedArray]) -> Traced | None:
    """The traced body with first arguments of other types, which differ from its own in weak type only.

    Returns:
        The body. None where the weak type mattered: a weakly typed value was converted to another dtype, or a primitive
        does not take the strong type.
    """
    old = traced.jaxpr
    key = ("strong carries", tuple(avals))
    if key not in old.memo:  # kept with the jaxpr, so that transformations of it are made once
        old.memo[key] = _strong(old, [*avals, *(v.aval for v in old.invars[len(avals) :])])
    found = old.memo[key]
    return None if found is None else traced._replace(jaxpr=found)


def _strong(old: Jaxpr, avals: Sequence[ShapedArray]) -> Jaxpr | None:
    new: dict[Var, Any] = {}
    invars = [_bound(v, aval, new) for v, aval in zip(old.invars, avals, strict=True)]
    eqns: list[JaxprEqn] = []
    for eqn in old.eqns:
        if not any(type(v) is Var and v in new for v in eqn.invars):
            eqns.append(eqn)
            continue
        if _decides(eqn):
            return None
        operands = [_literal(eqn, v) if type(v) is Literal else new.get(v, v) for v in eqn.invars]
        if _converts(eqn) and operands[0].aval is eqn.outvars[0].aval:
            new[eqn.outvars[0]] = operands[0]
            continue
        try:
            avals_out = eqn.primitive.abstract(tuple(v.aval for v in operands), eqn.params)
        except (TypeError, ValueError):
            return None
        outvars = [_bound(v, aval, new) for v, aval in zip(eqn.outvars, avals_out, strict=True)]
        eqns.append(eqn.replace(invars=operands, outvars=outvars))
    outvars = [new.get(v, v) if type(v) is Var else v for v in old.outvars]
    return Jaxpr(old.constvars, invars, eqns, outvars, old.debug_info)


def _bound(v: Var, aval: ShapedArray, new: dict[Var, Any]) -> Var:
    """A variable in place of `v` if its type is another."""
    if v.aval is aval:
        return v
    new[v] = fresh = Var(aval)
    return fresh


def _literal(eqn: JaxprEqn, literal: Literal) -> Literal:
    """A literal beside a strongly typed operand is strongly typed; operands of higher-order primitives stay weak."""
    if "higher_order" in eqn.primitive.tags:
        return literal
    return Literal(literal.val, literal.aval.strip_weak_type())


def _converts(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name == "convert_element_type"


def _decides(eqn: JaxprEqn) -> bool:
    """Whether a weakly typed value is converted to another dtype, in the equation or in its programs."""
    if _converts(eqn):
        operand, out = eqn.invars[0].aval, eqn.outvars[0].aval
        return bool(operand.weak_type and operand.dtype != out.dtype)
    return any(_decides(inner) for program in subjaxprs(eqn.params) for inner in program.eqns)
