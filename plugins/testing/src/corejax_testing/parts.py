"""Partial evaluation, and what it took apart put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, ShapedArray, partial_eval_jaxpr, partition_list
from corejax.extend.programs import eval_jaxpr, select_list
from corejax.extend.transforms import partial_eval_flat


def in_halves(program: ClosedJaxpr, args: Sequence[Any], unknowns: Sequence[bool]) -> list[Any]:
    """The results by the known half of a program and then the unknown one."""
    known, unknown, unknown_outs, count = partial_eval_jaxpr(program, unknowns)
    given, late = partition_list(unknowns, args)
    first = eval_jaxpr(known.jaxpr, known.consts, given)
    outs, residuals = first[: len(first) - count], first[len(first) - count :]
    return _merged(unknown_outs, outs, eval_jaxpr(unknown.jaxpr, unknown.consts, [*residuals, *late]))


def finished_later(
    fun: Callable[..., Sequence[Any]], args: Sequence[Any], avals: Sequence[ShapedArray], unknowns: Sequence[bool]
) -> list[Any]:
    """The results of running a function with unknown operands, and the rest later."""
    given = [a if u else None for a, u in zip(avals, unknowns, strict=True)]
    jaxpr, residuals, outs, unknown_outs = partial_eval_flat(fun, args, given)
    known = [x for x, u in zip(outs, unknown_outs, strict=True) if not u]
    return _merged(unknown_outs, known, eval_jaxpr(jaxpr, residuals, select_list(unknowns, args)))


def named(unknowns: Sequence[bool]) -> str:
    """In words."""
    return f"with operands {[i for i, u in enumerate(unknowns) if u]} unknown"


def _merged(unknown_outs: Sequence[bool], known: Sequence[Any], unknown: Sequence[Any]) -> list[Any]:
    sources = {False: iter(known), True: iter(unknown)}
    return [next(sources[u]) for u in unknown_outs]
