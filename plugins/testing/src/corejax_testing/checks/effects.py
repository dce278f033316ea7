"""Check that effects are neither lost nor repeated.

Effects must survive dce and partial evaluation under every transformation. To see how a higher-order primitive treats
effects of the programs in its parameters, the check inserts a probe into them: a primitive without results that counts
its evaluations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import corejax
from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Primitive,
    Var,
    dce_jaxpr,
    get_aval,
    jvp_rules,
    partial_eval_jaxpr,
    primitives,
    stage_closed,
    vmap_rules,
)
from corejax.extend.plugins import exported
from corejax.extend.programs import dce, eval_jaxpr, select_list
from corejax.extend.transforms import partial_eval_flat
from corejax_testing.arrays import direction
from corejax_testing.calls import Call, host
from corejax_testing.checks.compiled import has_backend
from corejax_testing.checks.registry import check
from corejax_testing.checks.splits import DCE, choices_of_used
from corejax_testing.finite import Function
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.parts import finished_later, in_halves, named
from corejax_testing.variations import at_small_integers


@check("effects", None, limit=2)
def check_effects(call: Call, rng: np.random.Generator) -> None:
    """Check that effects stay if results are unused, also under vmap, jvp, vjp and jit, and in bodies of cond, scan."""
    if not call.primitive.effects:
        raise NotApplicable("it has no effects")
    missing = call.primitive.effects - set(map(str, call.closed().jaxpr.effects))
    if missing:
        raise CheckFailure(f"its program lacks its effects {sorted(missing)}")
    for name, rule, fun, args in _programs(call, rng):

        def unused(*values: Any, fun: Function = fun) -> list[Any]:
            fun(*values)
            return []

        avals = tuple(get_aval(x) for x in args)
        _require_effect(stage_closed(unused, avals), call, name, rule)


def _programs(call: Call, rng: np.random.Generator) -> Iterator[tuple[str, str | None, Function, Any]]:
    """Yield transformed applications: a name, the rule at fault, the function and its arguments."""
    yield "", None, call, call.values
    if has_backend():
        yield "jitted ", "xla_translation", corejax.jit(lambda *a: call(*a)), call.values
    if call.values and vmap_rules.find(call.primitive) is not None:
        yield "batched ", "vmap", corejax.vmap(call.__call__), [np.stack([x, x]) for x in call.values]
    if jvp_rules.find(call.primitive) is not None:
        try:
            fun, xs, _ = call.moving()
        except NotApplicable:
            pass
        else:
            ts, cts = [direction(rng, x) for x in xs], [np.ones_like(y) for y in host(fun(*xs))]
            yield "differentiated (jvp) ", "jvp", lambda *a: corejax.jvp(fun, a, tuple(ts)), xs
            yield "differentiated (vjp) ", "jvp", _pullback(fun, cts), xs
    if exported("lax.cond") is not None and call.values:
        yield "conditional ", None, lambda *a: corejax.lax.cond(True, call, call, *a), call.values
        rows = [np.stack([x, x]) for x in call.values]
        yield "scanned ", None, lambda *a: corejax.lax.scan(lambda c, row: (c, call(*row)), (), a), rows


def _pullback(fun: Function, cts: list[Any]) -> Callable[..., Any]:
    return lambda *a: corejax.vjp(lambda *x: fun(*x), *a)[1](cts)


def _require_effect(program: ClosedJaxpr, call: Call, name: str, rule: str | None) -> None:
    trimmed = dce(program.jaxpr)
    if not any(call.primitive.effects & set(map(str, eqn.effects)) for eqn in trimmed.eqns):
        raise CheckFailure(f"dce removes the {name}application with its effects", rule, "bind a primitive with the "
                           "same effects in the rule")  # fmt: skip


_MOST = 4  # the number of operands for which all choices are tried
_FIRST, _LAST = "at the beginning of", "at the end of"  # the places of effects in a program
_counts: Counter[str] = Counter()


def _count(*operands: Any, at: str) -> list[Any]:
    _counts[at] += 1
    return []


probe_p: Primitive = Primitive(
    "corejax_testing.probe", multiple_results=True, effects=("corejax_testing.probe",), impl=_count,
    abstract_eval=lambda *operands, at: [], jvp=lambda primals, tangents, at: (probe_p.bind(*primals, at=at), []),
    doc="Counts its evaluations.",
)  # fmt: skip
del primitives[probe_p.name]  # keep this check's own tool out of listings and look-ups


@check("kept_effects", "partial_eval_jaxpr", limit=6)
def check_kept_effects(call: Call, rng: np.random.Generator) -> None:
    """Check that partial evaluation and dce keep effects, including those of programs in parameters."""
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
        raise NotApplicable(f"its programs may not have effects: {error}") from error
    if not any(before):
        raise NotApplicable("none of its programs is evaluated")
    for each, counts in zip(calls, before, strict=True):
        _check_dce(program, each, counts)
        _check_splits(program, each, counts)
        _check_partial_eval(planted, each, counts)


# -- effects of the primitive itself -------------------------------------------------------------------------------


def _check_own_effects(call: Call) -> None:
    """Require exactly one half of its program to have the effects, for every split."""
    program, effects = call.closed(), call.primitive.effects
    for unknowns in call.choices_of_unknown(_MOST):
        known, unknown, _, _ = partial_eval_jaxpr(program, unknowns)
        halves = [half for half in (known, unknown) if effects <= half.effects]
        if len(halves) != 1:
            times = "lost" if not halves else "in both halves, and would happen twice"
            raise CheckFailure(f"{named(unknowns)}, its effects are {times}", "partial_eval_jaxpr",
                               "exactly one of the two equations must have the effects of the original")  # fmt: skip
        if any(unknowns) and known.effects.isdisjoint(effects):
            avals = [a if u else None for a, u in zip(call.avals, unknowns, strict=True)]
            jaxpr = partial_eval_flat(call, call.values, avals)[0]
            if not effects <= jaxpr.effects:
                raise CheckFailure(f"{named(unknowns)}, its effects are lost", "partial_eval",
                                   "record an equation with the same effects")  # fmt: skip


# -- effects of programs in parameters -----------------------------------------------------------------------------


def with_probes(call: Call) -> Call | None:
    """Return the application with an effect in each program of its parameters, or None if it has no programs."""
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
    """Evaluate a program and return how often the effects at each place happen."""
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
    """Compare the effects of partial evaluation for each choice of unknown operands."""
    for unknowns in call.choices_of_unknown(_MOST):
        _counts.clear()
        finished_later(planted, call.values, call.avals, unknowns)
        _compare(dict(_counts), before, named(unknowns), "partial_eval")


def _compare(after: dict[str, int], before: dict[str, int], what: str, rule: str) -> None:
    for at in sorted({*before, *after}):
        got, wanted = after.get(at, 0), before.get(at, 0)
        if not min(wanted, 1) <= got <= wanted:  # a loop that is split may run fewer turns
            hint = "keep equations whose programs have effects, and in the programs the equations with the effects"
            raise CheckFailure(f"an effect {at} a program in its parameters happens {got} times {what}; {wanted} is "
                               "right", rule, hint)  # fmt: skip
