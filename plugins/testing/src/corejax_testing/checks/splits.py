"""Partial evaluation: every split into known and unknown operands, put together again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    eval_jaxpr,
    jvp_jaxpr,
    partial_eval_flat,
    partial_eval_jaxpr,
    partition_list,
    select_list,
)
from corejax_testing.arrays import compare, direction
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check

_MOST = 5


def _run(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return eval_jaxpr(program.jaxpr, program.consts, args)


def _check_split(program: ClosedJaxpr, args: Sequence[Any], unknowns: Sequence[bool], what: str) -> None:
    known, unknown, unknown_outs, count = partial_eval_jaxpr(program, unknowns)
    first = _run(known, partition_list(unknowns, args)[0])
    outs_known, residuals = first[: len(first) - count], first[len(first) - count :]
    outs_unknown = _run(unknown, [*residuals, *(x for x, u in zip(args, unknowns, strict=True) if u)])
    sources = {True: iter(outs_unknown), False: iter(outs_known)}
    together = [next(sources[u]) for u in unknown_outs]
    for i, (got, right) in enumerate(zip(host(together), host(_run(program, args)), strict=True)):
        compare(got, right, f"result {i} {what} with operands {[k for k, u in enumerate(unknowns) if u]} unknown",
                "partial_eval_jaxpr")  # fmt: skip


@check("partial_eval", "partial_eval")
def check_partial_eval(call: Call, rng: np.random.Generator) -> None:
    """Run with some operands unknown and finished later, it computes what it does at once, for every choice."""
    count, wanted = len(call.values), host(call(*call.values))
    for mask in itertools.product((False, True), repeat=min(count, _MOST)):
        unknowns = [*mask, *[False] * (count - len(mask))]
        avals = [a if u else None for a, u in zip(call.avals, unknowns, strict=True)]
        jaxpr, residuals, outs, unknown_outs = partial_eval_flat(call, call.values, avals)
        later = iter(eval_jaxpr(jaxpr, residuals, select_list(unknowns, call.values)))
        together = [next(later) if u else x for x, u in zip(outs, unknown_outs, strict=True)]
        for i, (got, right) in enumerate(zip(host(together), wanted, strict=True)):
            compare(got, right, f"result {i} with operands {[k for k, u in enumerate(unknowns) if u]} unknown",
                    "partial_eval")  # fmt: skip


@check("splits", "partial_eval_jaxpr")
def check_splits(call: Call, rng: np.random.Generator) -> None:
    """A program split into known and unknown parts computes what the whole does, for every split."""
    closed = call.closed()
    count = len(call.values)
    for mask in itertools.product((False, True), repeat=min(count, _MOST)):
        _check_split(closed, call.values, [*mask, *[False] * (count - len(mask))], "of the program")
    nonzeros = call.moves
    if not any(nonzeros):
        return
    moved, _ = jvp_jaxpr(closed, nonzeros)
    ts = [direction(rng, x) for x, moves in zip(call.values, nonzeros, strict=True) if moves]
    _check_split(moved, [*call.values, *ts], [False] * count + [True] * len(ts), "of its jvp program")
