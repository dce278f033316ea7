"""`eval_jaxpr`: run a program. Under a transformation it rebinds each equation, so it is itself traceable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.base.seams import Slot
from corejax.core.array import Array
from corejax.core.trace import state
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from corejax.ir.values import literal_scalar
from corejax.messages.source_info import inside, scope_of
from corejax.rules.attribution import attribute_to_rule
from corejax.settings.config import config

# Runs a program on concrete values, on NumPy from end to end; returns None if some values are not concrete.
concrete_runner: Slot[Callable[[Jaxpr, list[Any]], list[Any] | None]] = Slot("the interpreter of concrete values")


def last_uses(jaxpr: Jaxpr) -> list[list[Var]]:
    """For each equation, the variables that nothing after it reads (memoised on the program)."""
    found = jaxpr.memo.get("last_uses")
    if found is None:
        seen = {v for v in jaxpr.outvars if type(v) is Var}
        found = []
        for eqn in reversed(jaxpr.eqns):
            dead = []
            for v in (*eqn.invars, *eqn.outvars):
                if type(v) is Var and v not in seen:
                    seen.add(v)
                    dead.append(v)
            found.append(dead)
        found.reverse()
        jaxpr.memo["last_uses"] = found
    return found


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Evaluate `jaxpr` on constants and arguments.

    Args:
        jaxpr: the program.
        consts: one value for each constvar.
        args: one value for each argument; their avals are those of the binders.

    Returns:
        The list of outputs.

    Raises:
        TypeError: the numbers of values and binders differ.
    """
    if len(consts) != len(jaxpr.constvars) or len(args) != len(jaxpr.invars):
        raise TypeError(
            f"a jaxpr with {len(jaxpr.constvars)} constvars and {len(jaxpr.invars)} arguments was given "
            f"{len(consts)} constants and {len(args)} arguments"
        )
    values = [*consts, *args]
    if concrete_runner.value is not None:
        outs = concrete_runner.value(jaxpr, values)
        if outs is not None:
            return outs
    env: dict[Var, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))
    previous = state.source
    scope = state.scope if previous is None else scope_of(previous)
    try:
        for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
            source = eqn.source_info
            state.source = source if source is None or not scope else inside(scope, source)
            operands = [env[v] if type(v) is Var else literal_value(v) for v in eqn.invars]
            outs = state.trace.process_primitive(eqn.primitive, operands, eqn.params)
            for v, value in zip(eqn.outvars, outs, strict=True):
                env[v] = value
            for v in dead:
                del env[v]
    except Exception as error:
        attribute_to_rule(error, eqn.primitive, eqn.source_info)
        raise
    finally:
        state.source = previous
    return [env[v] if type(v) is Var else literal_value(v) for v in jaxpr.outvars]


def literal_value(literal: Any) -> Any:
    """A value whose aval is the literal's own."""
    value, aval = literal.val, literal.aval
    is_python = type(value) in (bool, int, float, complex)
    # Under x64_compat a NumPy scalar would be taken for a user's, and made narrow.
    if is_python or aval.weak_type or (isinstance(value, np.generic) and config.x64_compat):
        return Array(host_literal(literal), aval)
    return value


def host_literal(literal: Any) -> np.ndarray[Any, Any]:
    """The same as a NumPy array."""
    return np.asarray(literal_scalar(literal), dtype=literal.aval.dtype)


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The program as a Python function from arguments to a list of outputs."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, args)
