"""Partial evaluation: every split into known and unknown operands, put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, jvp_jaxpr
from corejax.extend.programs import eval_jaxpr
from corejax_testing.arrays import compare_each, direction
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check
from corejax_testing.parts import finished_later, in_halves, named


@check("partial_eval", "partial_eval")
def check_partial_eval(call: Call, rng: np.random.Generator) -> None:
    """Run with some operands unknown and finished later, it computes what it does at once, for every choice."""
    wanted = host(call(*call.values))
    for unknowns in call.choices_of_unknown():
        got = finished_later(call, call.values, call.avals, unknowns)
        compare_each(host(got), wanted, "result", f" {named(unknowns)}", "partial_eval")


@check("splits", "partial_eval_jaxpr")
def check_splits(call: Call, rng: np.random.Generator) -> None:
    """A program split into known and unknown parts computes what the whole does, for every split."""
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
