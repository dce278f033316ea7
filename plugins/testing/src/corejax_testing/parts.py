"""Evaluate programs in known and unknown halves, and list their equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, ShapedArray, merge_lists, partial_eval_jaxpr, partition_list
from corejax.extend.programs import eval_jaxpr, select_list, subjaxprs
from corejax.extend.transforms import partial_eval_flat


def in_halves(program: ClosedJaxpr, args: Sequence[Any], unknowns: Sequence[bool]) -> list[Any]:
    """Evaluate a program as its known half followed by its unknown half."""
    known, unknown, unknown_outs, count = partial_eval_jaxpr(program, unknowns)
    given, late = partition_list(unknowns, args)
    first = eval_jaxpr(known.jaxpr, known.consts, given)
    outs, residuals = first[: len(first) - count], first[len(first) - count :]
    return merge_lists(unknown_outs, outs, eval_jaxpr(unknown.jaxpr, unknown.consts, [*residuals, *late]))


def finished_later(
    fun: Callable[..., Sequence[Any]], args: Sequence[Any], avals: Sequence[ShapedArray], unknowns: Sequence[bool]
) -> list[Any]:
    """Evaluate the known part of a function now and the staged rest afterwards."""
    given = [a if u else None for a, u in zip(avals, unknowns, strict=True)]
    jaxpr, residuals, outs, unknown_outs = partial_eval_flat(fun, args, given)
    known = [x for x, u in zip(outs, unknown_outs, strict=True) if not u]
    return merge_lists(unknown_outs, known, eval_jaxpr(jaxpr, residuals, select_list(unknowns, args)))


def named(unknowns: Sequence[bool]) -> str:
    """Return a phrase that lists the unknown operands."""
    return f"with operands {[i for i, u in enumerate(unknowns) if u]} unknown"


def every_eqn(program: ClosedJaxpr | Jaxpr) -> Iterator[JaxprEqn]:
    """Yield all equations, including those of nested programs."""
    for eqn in program.eqns:
        yield eqn
        for inner in subjaxprs(eqn.params):
            yield from every_eqn(inner)


def size_of(program: ClosedJaxpr | Jaxpr) -> int:
    """Return the number of equations, including those of nested programs."""
    return sum(1 for _ in every_eqn(program))
