"""Programs on NumPy arrays, as the engine runs them: step by step by numbered places, then as a generated function.

A program that runs for the first time is planned: its variables become places in a list, so that running it looks
nothing up. After `RUNS` runs, a small one is generated as a Python function (`codegen`); if that raises, the program is
run step by step once more, which says where. Both hold what rules return against the types of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Jaxpr, JaxprEqn, ShapedArray, Var, attribute_to_rule, observe
from corejax.extend.speed import (
    SOLE,
    as_promised,
    check_size,
    evaluation,
    host_literal,
    in_own_memory,
    last_uses,
)
from corejax_eager import large

RUNS = 3  # of a program, before a function is generated

_ndarray = np.ndarray


class _Step(NamedTuple):
    """An equation whose variables are places in a list of values.

    Attributes:
        eqn: the equation.
        primitive, params: its own.
        places: of the operands.
        out: place of the only result; None if there are several, or if the equation may be compiled.
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
    """A program in places: constants, arguments, `literals`, then `results` results.

    Attributes:
        literals, steps, results, outs: the equations, in places.
        atoms: what `literals` are the values of.
        runs: how often it was run, up to `RUNS`.
        function: the generated function, if there is one.
        rules: the impl rules that it was generated with, and their version.
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

    def generated(self, jaxpr: Jaxpr) -> Callable[..., list[Any]] | None:
        """Return the function generated with the rules in force; None before the program has run a few times."""
        rules = (evaluation.host_rules, evaluation.rules_version)
        if self.rules[0] is not rules[0] or self.rules[1] != rules[1]:
            self.runs, self.function, self.rules = 0, None, rules
        if self.runs < RUNS:
            self.runs += 1
            if self.runs == RUNS and not observe.watched:
                from corejax_eager import codegen

                self.function = codegen.generate(jaxpr, self.atoms, rules[0])
        return self.function


def generate_on_arrays(
    jaxpr: Jaxpr, known: Sequence[Any], avals: Sequence[ShapedArray], structure: Any
) -> Callable[..., Any] | None:
    """Generate a function of `Array`s from a program, with the rules in force; see `codegen.generate_on_arrays`."""
    from corejax_eager import codegen  # in no first operation

    return codegen.generate_on_arrays(jaxpr, _planned(jaxpr).atoms, evaluation.host_rules, known, avals, structure)


def _planned(jaxpr: Jaxpr) -> _Plan:
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
            check_size(eqn.primitive, v.aval, eqn.source_info)
            places[v] = len(places)
        alone = eqn.outvars[0] if not eqn.primitive.multiple_results else None
        if any(v.aval.size >= large.SIZE for v in (*eqn.invars, *eqn.outvars)) or large.is_compiled_equation(eqn):
            alone = None
        out, aval = (None, None) if alone is None else (first, alone.aval)
        operands = tuple(places[v] for v in eqn.invars)
        gone = tuple(places[v] for v in dead)
        steps.append(_Step(eqn, eqn.primitive, eqn.params, operands, out, aval, first, gone))
    plan = _Plan(literals, steps, len(places) - start, [places[v] for v in jaxpr.outvars])
    jaxpr.memo["host_plan"] = plan
    return plan


def run_plan(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on NumPy arrays; as `evaluation.run_program`."""
    plan = _planned(jaxpr)
    function = plan.generated(jaxpr)
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
                found = large.evaluate_equation(eqn, rule, [env[i] for i in places])
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
