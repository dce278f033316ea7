"""Programs evaluated on NumPy arrays from end to end, nothing boxed in between.

`eval_jaxpr` comes here where all values are concrete; impl rules of primitives that carry programs do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np

from corejax import observe
from corejax.array import Array, as_array, host_value, is_spread
from corejax.attribution import attribute_to_rule
from corejax.avals import ShapedArray, get_aval
from corejax.interpreters import evaluation, large_operations
from corejax.interpreters.impl_results import as_promised, check_count
from corejax.interpreters.written_operations import writes_programs
from corejax.ir.interpret import concrete_runner, host_literal, last_uses
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from corejax.ownership import SOLE, in_own_memory, owned
from corejax.trace import Tracer, state

RUNS = 3  # of a program, before it is written out as a Python function

_ndarray = np.ndarray


def eval_jaxpr_on_host(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program on NumPy arrays; for impl rules of higher-order primitives.

    Args:
        closed: the program.
        args: NumPy arrays of its argument types.

    Returns:
        NumPy arrays.

    Raises:
        TypeError: there are more or fewer; the program failed, and their types are others.
    """
    jaxpr = closed.jaxpr
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"eval_jaxpr_on_host: a program of {len(jaxpr.invars)} arguments was given {len(args)}")
    try:
        return _run_program(jaxpr, [*(host_value(c) for c in closed.consts), *map(_read_only, args)])
    except Exception as error:
        _check_types(jaxpr.invars, args, error)
        raise


def _check_types(binders: Sequence[Var], values: Sequence[Any], error: Exception) -> None:
    """Raise what is the matter if a program failed because its values are of other types than its variables."""
    wanted, given = [v.aval for v in binders], [get_aval(x) for x in values]
    if any((a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(wanted, given, strict=True)):
        takes, got = (", ".join(a.str_short() for a in avals) for avals in (wanted, given))
        advice = "abstract eval of a primitive with a program holds its operands against `program.in_avals`"
        raise TypeError(f"a program that takes ({takes}) was given ({got}); {advice}") from error


def _read_only(x: Any) -> Any:
    """An argument that a rule of the program cannot write to; its owner still can."""
    if type(x) is _ndarray and x.flags.writeable:
        x = x.view()
        x.setflags(write=False)
    return x


class _Step(NamedTuple):
    """An equation whose variables are places in a list of values.

    Attributes:
        eqn: the equation.
        primitive, params: its own.
        places: of the operands.
        out: place of the only result; None where there are several, or `large_operations` may have it.
        aval: type of the only result.
        first: place of the first result; the others follow it.
        dead: places of what nothing after it reads.
    """

    eqn: JaxprEqn
    primitive: Any
    params: dict[str, Any]
    places: tuple[int, ...]
    out: int | None
    aval: Any
    first: int
    dead: tuple[int, ...]


class _Plan:
    """A program as `_run_program` runs it. Places: constants, arguments, `literals`, then `results` results.

    Attributes:
        literals, steps, results, outs: the equations, in places.
        atoms: what `literals` are the values of.
        runs: how often it was run, up to `RUNS`.
        function: the program written out, if it is.
        rules: the impl rules that it was written with, and their version.
    """

    __slots__ = ("atoms", "function", "literals", "outs", "results", "rules", "runs", "steps")

    def __init__(self, literals: dict[Any, Any], steps: list[_Step], results: int, outs: list[int]) -> None:
        self.atoms = literals
        self.literals = list(literals.values())
        self.steps = steps
        self.results = results
        self.outs = outs
        self.runs = 0
        self.function: Callable[..., list[Any]] | None = None
        self.rules: tuple[Any, int] = (None, 0)

    def written(self, jaxpr: Jaxpr) -> Callable[..., list[Any]] | None:
        """The program written out with the rules in force, once it has been run a few times."""
        rules = (evaluation.host_rules, evaluation.rules_version)
        if self.rules[0] is not rules[0] or self.rules[1] != rules[1]:
            self.runs, self.function, self.rules = 0, None, rules
        if self.runs < RUNS:
            self.runs += 1
            if self.runs == RUNS and not observe.watched:
                from corejax.interpreters import host_functions

                self.function = host_functions.written_out(jaxpr, self.atoms, rules[0], _results)
        return self.function


@writes_programs
def written_out_on_arrays(
    jaxpr: Jaxpr, known: Sequence[Any], avals: Sequence[ShapedArray], structure: Any
) -> Callable[..., Any] | None:
    """A program as a function of `Array`s, with the rules in force; see there."""
    from corejax.interpreters import host_functions

    plan = jaxpr.memo.get("host_plan") or _plan(jaxpr)
    return host_functions.written_out_on_arrays(
        jaxpr, plan.atoms, evaluation.host_rules, _results, known, avals, structure
    )


def _plan(jaxpr: Jaxpr) -> _Plan:
    found = jaxpr.memo.get("host_plan")
    if found is not None:
        return found  # type: ignore[no-any-return]
    places: dict[Any, int] = {v: i for i, v in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    literals = {}
    for v in (*(v for eqn in jaxpr.eqns for v in eqn.invars), *jaxpr.outvars):
        if type(v) is not Var and v not in places:
            places[v] = len(places)
            literals[v] = value = host_literal(v)
            value.setflags(write=False)
    start = len(places)
    steps = []
    for eqn, dead in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        first = len(places)
        for v in eqn.outvars:
            evaluation.check_size(eqn.primitive, v.aval, eqn.source_info)
            places[v] = len(places)
        alone = eqn.outvars[0] if not eqn.primitive.multiple_results else None
        if any(
            v.aval.size >= evaluation.LARGE_OPERATION for v in (*eqn.invars, *eqn.outvars)
        ) or large_operations.is_left_equation(eqn):
            alone = None
        out, aval = (None, None) if alone is None else (first, alone.aval)
        operands = tuple(places[v] for v in eqn.invars)
        gone = tuple(places[v] for v in dead)
        steps.append(_Step(eqn, eqn.primitive, eqn.params, operands, out, aval, first, gone))
    plan = _Plan(literals, steps, len(places) - start, [places[v] for v in jaxpr.outvars])
    jaxpr.memo["host_plan"] = plan
    return plan


def _results(eqn: JaxprEqn, rule: Any, operands: list[Any]) -> list[Any]:
    """Results of an equation whose rule gives several or large ones, or wants `Array`s (`rule` is None)."""
    primitive = eqn.primitive
    if rule is None or not primitive.multiple_results:
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
    plan = jaxpr.memo.get("host_plan") or _plan(jaxpr)
    function = plan.written(jaxpr)
    if function is not None:
        try:
            return function(*values)
        except Exception:  # step by step, to say where
            pass
    env: list[Any] = [*values, *plan.literals, *(None,) * plan.results]
    rules = evaluation.host_rules
    try:
        for eqn, primitive, params, places, place, aval, first, dead in plan.steps:
            rule = rules.get(primitive)
            if rule is None or place is None:
                found = _results(eqn, rule, [env[i] for i in places])
                env[first : first + len(found)] = found
            else:
                if params:
                    out = rule(*[env[i] for i in places], **params)
                elif len(places) == 2:  # NumPy's functions take longer if they are given no keywords by `**`
                    out = rule(env[places[0]], env[places[1]])
                elif len(places) == 1:
                    out = rule(env[places[0]])
                else:
                    out = rule(*[env[i] for i in places])
                if type(out) is _ndarray and out.dtype is aval.dtype and out.shape == aval.shape:
                    sole = getrefcount(out) <= SOLE
                    if not sole or out.base is not None:
                        out = in_own_memory(out, [env[i] for i in places], sole)
                else:
                    out = as_promised(primitive, out, aval, eqn.source_info)
                out.setflags(False)  # type: ignore[call-arg]
                env[place] = out
                out = None
            for i in dead:
                env[i] = None
    except Exception as error:
        attribute_to_rule(error, primitive, eqn.source_info, "impl")
        raise
    return [env[i] for i in plan.outs]


def _run_concrete(jaxpr: Jaxpr, values: list[Any]) -> list[Any] | None:
    if type(state.trace) is not evaluation.EvalTrace or any(isinstance(x, Tracer) for x in values):
        return None
    if any(type(x) is Array and x._host is None and is_spread(x) for x in values):
        return None  # each operation goes where its operands are
    try:
        outs = evaluation.run_quietly(_run_program, (jaxpr, [host_value(as_array(x)) for x in values]))
    except Exception as error:
        _check_types(jaxpr.invars, [as_array(x) for x in values[len(jaxpr.constvars) :]], error)
        raise
    return [Array(o, v.aval) for o, v in zip(outs, jaxpr.outvars, strict=True)]


concrete_runner.provide(_run_concrete)
