"""Check partial evaluation and dead-code elimination."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, dce_jaxpr, jvp_jaxpr, jvp_rules
from corejax.extend.programs import check_jaxpr, dce_rules, eval_jaxpr, select_list
from corejax_testing.arrays import compare, compare_each, direction
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.parts import finished_later, in_halves, named
from corejax_testing.variations import at_small_integers


@check("partial_eval", "partial_eval")
def check_partial_eval(call: Call, rng: np.random.Generator) -> None:
    """Check that partial evaluation followed by the staged rest computes the same, for all choices of unknowns."""
    wanted = host(call(*call.values))
    for unknowns in call.choices_of_unknown():
        got = finished_later(call, call.values, call.avals, unknowns)
        compare_each(host(got), wanted, "result", f" {named(unknowns)}", "partial_eval")


@check("splits", "partial_eval_jaxpr")
def check_splits(call: Call, rng: np.random.Generator) -> None:
    """Check that the known and the unknown half of a program together compute the same, for every split."""
    closed = call.closed()
    for unknowns in call.choices_of_unknown():
        _check_split(closed, call.values, unknowns, "of the program")
    nonzeros = call.moves
    if not any(nonzeros):
        return
    moved, _ = jvp_jaxpr(closed, nonzeros)
    ts = [direction(rng, x) for x, moves in zip(call.values, nonzeros, strict=True) if moves]
    _check_split(moved, [*call.values, *ts], [False] * len(call.values) + [True] * len(ts), "of its jvp program")


def _check_split(program: ClosedJaxpr, args: Sequence[Any], unknowns: Sequence[bool], what: str) -> None:
    wanted = eval_jaxpr(program.jaxpr, program.consts, args)
    got = in_halves(program, args, unknowns)
    compare_each(host(got), host(wanted), "result", f" {what} {named(unknowns)}", "partial_eval_jaxpr")


DCE = "dce"
_MOST = 4  # the number of results for which all choices are tried


def choices_of_used(count: int) -> Iterator[list[bool]]:
    """Yield flags of used results: every choice if there are few; else each alone, all but each, none."""
    if count <= _MOST:
        yield from (list(mask) for mask in itertools.product((True, False), repeat=count))
        return
    yield [False] * count
    for one in range(count):
        yield [k == one for k in range(count)]
        yield [k != one for k in range(count)]


@check("dce", DCE, limit=6)
def check_dce(call: Call, rng: np.random.Generator) -> None:
    """Check that dce with unused results leaves a well-typed program of the others, also after jvp."""
    closed = call.closed()
    if len(closed.out_avals) < 2 and not any(eqn.primitive in dce_rules for eqn in closed.eqns):
        raise NotApplicable("it has one result and no dce rule, so dce keeps all of it or nothing")
    with_jvp = jvp_rules.find(call.primitive) is not None
    for number, there in enumerate(at_small_integers(call)):
        _check_pruned(closed, there.values, "")
        nonzeros = there.moves
        if with_jvp and any(nonzeros) and not number:
            ts = [direction(rng, there.values[i]) for i in there.inexact]
            _check_pruned(jvp_jaxpr(closed, nonzeros)[0], [*there.values, *ts], " of its jvp program")


def _check_pruned(closed: ClosedJaxpr, args: Sequence[Any], what: str) -> None:
    every = host(eval_jaxpr(closed.jaxpr, closed.consts, args))
    for used in choices_of_used(len(every)):
        small, used_inputs = dce_jaxpr(closed, used)
        names = [k for k, keep in enumerate(used) if keep]
        require_well_typed(small, f"the program that dce leaves for results {names}{what}")
        some = select_list(used_inputs, args)
        got = host(eval_jaxpr(small.jaxpr, small.consts, some))
        for k, out, right in zip(names, got, (every[k] for k in names), strict=True):
            compare(out, right, f"result {k}{what}, with results {names} used,", DCE)


def require_well_typed(program: ClosedJaxpr, what: str) -> None:
    """Require a program after dce to be well typed.

    Raises:
        CheckFailure: the program is not well typed; the dce rule is at fault.
    """
    try:
        check_jaxpr(program)
    except (TypeError, ValueError) as error:
        hint = "the flags of used operands must match the operands of the smaller equation"
        raise CheckFailure(f"{what} is not well typed: {error}", DCE, hint) from error
