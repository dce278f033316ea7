"""Programs evaluated on NumPy arrays from end to end, nothing boxed in between.

`eval_jaxpr` comes here where all values are concrete; impl rules of primitives that carry programs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from corejax.array import Array, as_array, host_value
from corejax.attribution import attribute_to_rule
from corejax.interpreters import evaluation
from corejax.interpreters.impl_results import as_promised, check_count
from corejax.ir.interpret import last_uses, set_concrete_runner
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from corejax.ownership import SOLE, in_own_memory, owned
from corejax.trace import Tracer, state

_ndarray = np.ndarray


def eval_jaxpr_on_host(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program on NumPy arrays; for impl rules of higher-order primitives.

    Args:
        closed: the program.
        args: NumPy arrays of its argument types.

    Returns:
        NumPy arrays.
    """
    return _run_program(closed.jaxpr, [*(host_value(c) for c in closed.consts), *map(_read_only, args)])


def _read_only(x: Any) -> Any:
    """An argument that a rule of the program cannot write to; its owner still can."""
    if type(x) is _ndarray and x.flags.writeable:
        x = x.view()
        x.setflags(write=False)
    return x


def _literals(jaxpr: Jaxpr) -> dict[Any, Any]:
    found = jaxpr.memo.get("host_literals")
    if found is None:
        for eqn in jaxpr.eqns:  # once for each program, too
            for v in eqn.outvars:
                evaluation.check_size(eqn.primitive, v.aval, eqn.source_info)
        atoms = [*jaxpr.outvars, *(v for eqn in jaxpr.eqns for v in eqn.invars)]
        found = {v: np.array(host_value(v.val), dtype=v.aval.dtype) for v in atoms if type(v) is not Var}
        for value in found.values():
            value.setflags(write=False)
        jaxpr.memo["host_literals"] = found
    return found


def _results(eqn: JaxprEqn, rule: Any, operands: list[Any]) -> list[Any]:
    """Results of an equation whose rule gives several, or wants `Array`s, or may be another one (`rule` is None)."""
    primitive = eqn.primitive
    if rule is None:
        arrays = [Array(x, v.aval) for x, v in zip(operands, eqn.invars, strict=True)]
        return [o._fetch() for o in evaluation.evaluate_on_arrays(primitive, arrays, eqn.params)]
    out = rule(*operands, **eqn.params)
    check_count(primitive, out, len(eqn.outvars), eqn.source_info)
    outs = list(out)
    del out
    found = [
        as_promised(primitive, o, v.aval, eqn.source_info)
        for o, v in zip(owned(outs, operands), eqn.outvars, strict=True)
    ]
    for value in found:
        value.setflags(False)  # type: ignore[call-arg]
    return found


def _run_program(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))
    env.update(_literals(jaxpr))
    rules, left_by = evaluation.host_rules, evaluation.left_by
    try:
        for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
            primitive = eqn.primitive
            rule = rules.get(primitive)
            operands = [env[v] for v in eqn.invars]
            if primitive in left_by and eqn.outvars[0].aval.size >= evaluation.LARGE_OPERATION:
                rule = None
            if rule is None or primitive.multiple_results:
                env.update(zip(eqn.outvars, _results(eqn, rule, operands), strict=True))
            else:
                out = rule(*operands, **eqn.params)
                v = eqn.outvars[0]
                aval = v.aval
                if type(out) is _ndarray and out.dtype is aval.dtype and out.shape == aval.shape:
                    sole = getrefcount(out) <= SOLE
                    if not sole or out.base is not None:
                        out = in_own_memory(out, operands, sole)
                else:
                    out = as_promised(primitive, out, aval, eqn.source_info)
                out.setflags(False)  # type: ignore[call-arg]
                env[v] = out
            for v in dead:
                del env[v]
    except Exception as error:
        attribute_to_rule(error, primitive, eqn.source_info, "impl")
        raise
    return [env[v] for v in jaxpr.outvars]


def _run_concrete(jaxpr: Jaxpr, values: list[Any]) -> list[Any] | None:
    if type(state.trace) is not evaluation.EvalTrace or any(isinstance(x, Tracer) for x in values):
        return None
    outs = evaluation.run_quietly(_run_program, (jaxpr, [host_value(as_array(x)) for x in values]))
    return [Array(o, v.aval) for o, v in zip(outs, jaxpr.outvars, strict=True)]


set_concrete_runner(_run_concrete)
