"""Dead code elimination: with some results unused, what is left computes the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, dce_jaxpr, jvp_jaxpr, jvp_rules
from corejax.extend.programs import check_jaxpr, dce_rules, eval_jaxpr, select_list
from corejax_testing.arrays import compare, direction
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.variations import at_small_integers

RULE = "dce"
_MOST = 4  # results whose choices are all gone through


def choices_of_used(count: int) -> Iterator[list[bool]]:
    """Which results are used: every choice where they are few; else each alone, all but each, none."""
    if count <= _MOST:
        yield from (list(mask) for mask in itertools.product((True, False), repeat=count))
        return
    yield [False] * count
    for one in range(count):
        yield [k == one for k in range(count)]
        yield [k != one for k in range(count)]


@check("dce", RULE, limit=6)
def check_dce(call: Call, rng: np.random.Generator) -> None:
    """With some results unused, what dce leaves is well typed and computes the others; in its jvp program too."""
    closed = call.closed()
    if len(closed.out_avals) < 2 and not any(eqn.primitive in dce_rules for eqn in closed.eqns):
        raise NotApplicable("one result and no dce rule: all of it or nothing")
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
        require_well_typed(small, f"what dce leaves for results {names}{what}")
        some = select_list(used_inputs, args)
        got = host(eval_jaxpr(small.jaxpr, small.consts, some))
        for k, out, right in zip(names, got, (every[k] for k in names), strict=True):
            compare(out, right, f"result {k}{what}, with results {names} used,", RULE)


def require_well_typed(program: ClosedJaxpr, what: str) -> None:
    """Require that a program is one.

    Raises:
        CheckFailure: it is not; the dce rule is at fault.
    """
    try:
        check_jaxpr(program)
    except (TypeError, ValueError) as error:
        hint = "the flags of used operands say which operands the smaller equation has"
        raise CheckFailure(f"{what} is not well typed: {error}", RULE, hint) from error
