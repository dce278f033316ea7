"""Effects under partial evaluation and inside programs: none is lost, none happens more often.

What a higher-order primitive does with effects of the programs in its parameters is seen by putting some there: a
primitive without results that counts how often it is evaluated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, Var, dce_jaxpr, partial_eval_jaxpr, primitives
from corejax.extend.programs import eval_jaxpr, select_list
from corejax.extend.transforms import partial_eval_flat
from corejax_testing.calls import Call
from corejax_testing.checks.dead_code import RULE as DCE
from corejax_testing.checks.dead_code import choices_of_used
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.parts import finished_later, in_halves, named
from corejax_testing.variations import at_small_integers

_MOST = 4  # operands whose choices are all gone through
_FIRST, _LAST = "at the beginning of", "at the end of"  # where effects are put in a program
_counts: Counter[str] = Counter()


def _count(*operands: Any, at: str) -> list[Any]:
    _counts[at] += 1
    return []


probe_p = Primitive(
    "corejax_testing.probe", multiple_results=True, effects=("corejax_testing.probe",), impl=_count,
    abstract_eval=lambda *operands, at: [], jvp=lambda primals, tangents, at: (probe_p.bind(*primals, at=at), []),
    doc="Counts how often it is evaluated.",
)  # fmt: skip
del primitives[probe_p.name]  # a tool of this check, and nobody's to list or to find


@check("kept_effects", "partial_eval_jaxpr", limit=6)
def check_kept_effects(call: Call, rng: np.random.Generator) -> None:
    """Partial evaluation keeps effects; so do it and dce for effects of programs in parameters."""
    if call.primitive.effects:
        _check_own_effects(call)
        return
    planted = with_probes(call)
    if planted is None:
        raise NotApplicable("it has no effects, and no programs in its parameters")
    try:
        program = planted.closed()
        calls = list(at_small_integers(planted))
        before = [_evaluated(program, each.values) for each in calls]
    except NotImplementedError as error:
        raise NotApplicable(f"its programs have no effects: {error}") from error
    if not any(before):
        raise NotApplicable("none of its programs is evaluated")
    for each, counts in zip(calls, before, strict=True):
        _check_dce(program, each, counts)
        _check_splits(program, each, counts)
        _check_partial_eval(planted, each, counts)


# -- effects of the primitive itself -------------------------------------------------------------------------------


def _check_own_effects(call: Call) -> None:
    """Of the two halves of its program one has the effects, for every split."""
    program, effects = call.closed(), call.primitive.effects
    for unknowns in call.choices_of_unknown(_MOST):
        known, unknown, _, _ = partial_eval_jaxpr(program, unknowns)
        halves = [half for half in (known, unknown) if effects <= half.effects]
        if len(halves) != 1:
            times = "lost" if not halves else "in both halves, and would happen twice"
            raise CheckFailure(f"{named(unknowns)}, its effects are {times}", "partial_eval_jaxpr",
                               "one of the two equations has the effects of the whole")  # fmt: skip
        if any(unknowns) and known.effects.isdisjoint(effects):
            avals = [a if u else None for a, u in zip(call.avals, unknowns, strict=True)]
            jaxpr = partial_eval_flat(call, call.values, avals)[0]
            if not effects <= jaxpr.effects:
                raise CheckFailure(f"{named(unknowns)}, its effects are lost", "partial_eval",
                                   "record an equation with the same effects")  # fmt: skip


# -- effects of programs in parameters -----------------------------------------------------------------------------


def with_probes(call: Call) -> Call | None:
    """The application with effects in each of the programs in its parameters; None where there are no programs."""
    if "higher_order" not in call.primitive.tags:
        return None
    params = {name: _with_probes(value) for name, value in call.params.items()}
    return None if all(params[k] is call.params[k] for k in params) else replace(call, params=params)


def _with_probes(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return ClosedJaxpr(_with_probes(value.jaxpr), value.consts)
    if isinstance(value, Jaxpr):
        variables = [v for v in (*value.outvars, *value.invars) if isinstance(v, Var)]
        first = JaxprEqn(probe_p, [], [], {"at": _FIRST})
        last = JaxprEqn(probe_p, variables[:1], [], {"at": _LAST})
        eqns = [first, *value.eqns, last]
        return Jaxpr(value.constvars, value.invars, eqns, value.outvars, value.debug_info)
    if isinstance(value, tuple) and any(isinstance(item, ClosedJaxpr | Jaxpr) for item in value):
        return tuple(_with_probes(item) for item in value)
    return value


def _evaluated(program: ClosedJaxpr, args: Sequence[Any]) -> dict[str, int]:
    """How often effects happen, by where they are; a rule may run one of a primitive's programs for another."""
    _counts.clear()
    eval_jaxpr(program.jaxpr, program.consts, args)
    return dict(_counts)


def _check_dce(program: ClosedJaxpr, call: Call, before: dict[str, int]) -> None:
    for used in choices_of_used(len(program.out_avals)):
        small, used_inputs = dce_jaxpr(program, used)
        after = _evaluated(small, select_list(used_inputs, call.values))
        _compare(after, before, f"with results {[k for k, u in enumerate(used) if u]} used, after dce", DCE)


def _check_splits(program: ClosedJaxpr, call: Call, before: dict[str, int]) -> None:
    for unknowns in call.choices_of_unknown(_MOST):
        _counts.clear()
        in_halves(program, call.values, unknowns)
        _compare(dict(_counts), before, f"split {named(unknowns)}", "partial_eval_jaxpr")


def _check_partial_eval(planted: Call, call: Call, before: dict[str, int]) -> None:
    """Run with some operands unknown and finished later: what is known may have effects and no results."""
    for unknowns in call.choices_of_unknown(_MOST):
        _counts.clear()
        finished_later(planted, call.values, call.avals, unknowns)
        _compare(dict(_counts), before, named(unknowns), "partial_eval")


def _compare(after: dict[str, int], before: dict[str, int], what: str, rule: str) -> None:
    for at in sorted({*before, *after}):
        got, wanted = after.get(at, 0), before.get(at, 0)
        if not min(wanted, 1) <= got <= wanted:  # fewer turns of a loop are enough for some that are split
            hint = "an equation whose program has effects stays, and so does the program's equation with the effect"
            raise CheckFailure(f"an effect {at} a program in its parameters happens {got} times {what}; {wanted} is "
                               "right", rule, hint)  # fmt: skip
