"""`cond`: of the branch that runs, what failed."""

from __future__ import annotations

import functools
from typing import Any

from corejax.extend import ClosedJaxpr, find_primitive, inline_closed, memoised, stage_closed
from corejax_checkify.interpreter import Checks, checked_jaxpr, checkify_rules
from corejax_checkify.state import ErrorType, as_state, unfailed

cond_p = find_primitive("cond")


def cond_checkify(
    checks: Checks, index: Any, *operands: Any, branches: tuple[ClosedJaxpr, ...], **params: Any
) -> list[Any]:
    """A conditional between checked branches, whose errors are of one type: any of what may fail in any of them."""
    assert cond_p is not None
    checked = [checked_jaxpr(branch, checks.kinds) for branch in branches]
    whole = functools.reduce(ErrorType.joined, (error_type for _, error_type in checked))
    programs = []
    count = 0
    for program, error_type in checked:
        programs.append(_with_error(program, error_type, whole, count))
        count += len(error_type.failures)
    return checks.taken(cond_p.bind(index, *operands, branches=tuple(programs), **params), whole)


def _with_error(program: ClosedJaxpr, error_type: ErrorType, whole: ErrorType, count: int) -> ClosedJaxpr:
    """A checked branch with an error of the type of all branches; its codes count from `count`."""
    if error_type == whole:
        return program

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(program, args)
        if not error_type.failures:
            return [*outs, *unfailed(whole)]
        results = len(outs) - len(error_type.avals())
        state = as_state(error_type, outs[results:]).shifted(count)
        return [*outs[:results], *state.leaves(whole.payloads)]

    def make() -> ClosedJaxpr:
        return stage_closed(flat, program.in_avals, program.jaxpr.debug_info)

    return memoised(program, ("checkify branch", whole, count), make)


if cond_p is not None:
    checkify_rules.register(cond_p, cond_checkify)
