"""`eval_jaxpr` runs a program: it binds each equation again, so that transformations can trace it.

If all values are concrete, `concrete_runner` evaluates the program on NumPy arrays without boxing. Intermediate values
are deleted after their last use (`last_uses`), which frees memory as a Python function would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array
from corejax.base.seams import Slot
from corejax.core.trace import current_scope, state
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from corejax.ir.values import literal_scalar
from corejax.messages.source_info import inside
from corejax.rules.attribution import attribute_to_rule
from corejax.settings.config import config

# Runs a program on concrete values without boxing; returns None if some values are not concrete.
concrete_runner: Slot[Callable[[Jaxpr, list[Any]], list[Any] | None]] = Slot("the interpreter of concrete values")


def last_uses(jaxpr: Jaxpr) -> list[list[Var]]:
    """Return, for each equation, the variables that no later equation or output reads (memoised on the program)."""
    uses = jaxpr.memo.get("last_uses")
    if uses is None:
        seen = {v for v in jaxpr.outvars if type(v) is Var}
        uses = []
        for eqn in reversed(jaxpr.eqns):
            dead = []
            for v in (*eqn.invars, *eqn.outvars):
                if type(v) is Var and v not in seen:
                    seen.add(v)
                    dead.append(v)
            uses.append(dead)
        uses.reverse()
        jaxpr.memo["last_uses"] = uses
    return uses


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Evaluate `jaxpr` on constants and arguments.

    Args:
        jaxpr: the program.
        consts: one value for each constvar.
        args: one value for each argument, of the type of its binder.

    Returns:
        The list of outputs.

    Raises:
        TypeError: the number of values differs from the number of binders.
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
    previous, scope = state.source, current_scope()
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
    """Return the value of a literal as an operand of exactly the literal's type."""
    value, aval = literal.val, literal.aval
    is_python = type(value) in (bool, int, float, complex)
    # Under x64_compat, a NumPy scalar would be narrowed like a user's.
    if is_python or aval.weak_type or (isinstance(value, np.generic) and config.x64_compat):
        return Array(host_literal(literal), aval)
    return value


def host_literal(literal: Any) -> np.ndarray:
    """Return the value of a literal as a NumPy array."""
    return np.asarray(literal_scalar(literal), dtype=literal.aval.dtype)


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return a Python function from the program's arguments to the list of its outputs."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, args)
