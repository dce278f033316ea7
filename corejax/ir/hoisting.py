"""`hoist_literals`: every literal a constant with a binder, as in programs that have no literals."""

from __future__ import annotations

from typing import Any

from corejax.ir.interpret import literal_value
from corejax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, Var
from corejax.ir.values import literal_scalar


def hoist_literals(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with a constvar in place of each distinct literal: the same function of its arguments.

    Literals of the same type and bits share a constvar. New constvars follow those of the program, in order
    of first use. Programs in parameters stay as they are.
    """
    jaxpr = closed.jaxpr
    constvars: dict[Any, Var] = {}
    consts: list[Any] = []

    def hoisted(atom: Atom) -> Var:
        if not isinstance(atom, Literal):
            return atom
        key = (atom.aval, literal_scalar(atom).tobytes())
        if key not in constvars:
            constvars[key] = Var(atom.aval)
            consts.append(literal_value(atom))
        return constvars[key]

    eqns = [
        eqn.replace(invars=[hoisted(v) for v in eqn.invars]) if any(type(v) is Literal for v in eqn.invars) else eqn
        for eqn in jaxpr.eqns
    ]
    outvars = [hoisted(v) for v in jaxpr.outvars]
    binders = [*jaxpr.constvars, *constvars.values()]
    return ClosedJaxpr(Jaxpr(binders, jaxpr.invars, eqns, outvars, jaxpr.debug_info), [*closed.consts, *consts])
