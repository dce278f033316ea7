"""`scan` and `while`: the error is carried along; the iteration that fails first counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, find_primitive, inline_closed, memoised, split_list, stage_closed
from corejax_checkify.interpreter import Checks, checked_jaxpr, checkify_rules
from corejax_checkify.state import ErrorType, as_state, unfailed

scan_p = find_primitive("scan")
while_p = find_primitive("while")


def scan_checkify(
    checks: Checks,
    *operands: Any,
    jaxpr: ClosedJaxpr,
    linear: tuple[bool, ...],
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> list[Any]:
    """One scan, which carries the error before its own carries."""
    assert scan_p is not None
    program, error_type = checked_jaxpr(jaxpr, checks.kinds)
    start = unfailed(error_type)
    consts, rest = split_list(operands, [num_consts])
    outs = scan_p.bind(
        *consts,
        *start,
        *rest,
        jaxpr=_scan_body(program, error_type, num_consts),
        linear=(*linear[:num_consts], *(False for _ in start), *linear[num_consts:]),
        num_carry=num_carry + len(start),
        num_consts=num_consts,
        **params,
    )
    return checks.taken([*outs[len(start) :], *outs[: len(start)]], error_type)


def _scan_body(program: ClosedJaxpr, error_type: ErrorType, num_consts: int) -> ClosedJaxpr:
    """A checked body as one that carries the error."""
    if not error_type.failures:
        return program
    avals = error_type.avals()
    num_outs = len(program.out_avals) - len(avals)

    def flat(*args: Any) -> list[Any]:
        consts, error, rest = split_list(args, [num_consts, len(avals)])
        outs, later = split_list(inline_closed(program, [*consts, *rest]), [num_outs])
        return [*_first(error_type, error, later), *outs]

    def make() -> ClosedJaxpr:
        consts, rest = split_list(program.in_avals, [num_consts])
        return stage_closed(flat, [*consts, *avals, *rest], program.jaxpr.debug_info)

    return memoised(program, ("checkify scan", num_consts), make)


def _first(error_type: ErrorType, error: Sequence[Any], later: Sequence[Any]) -> list[Any]:
    """Leaves of the first of two errors of one type."""
    return as_state(error_type, error).or_else(as_state(error_type, later)).leaves(error_type.payloads)


def while_checkify(
    checks: Checks,
    *operands: Any,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> list[Any]:
    """One loop, which carries the error; and, where the condition may fail, whether to go on.

    Such a condition is computed once before the loop, and in each iteration after the body.
    """
    assert while_p is not None
    body, body_type = checked_jaxpr(body_jaxpr, checks.kinds)
    cond, cond_type = checked_jaxpr(cond_jaxpr, checks.kinds)
    cond_consts, body_consts, carry = split_list(operands, [cond_nconsts, body_nconsts])
    whole = body_type.joined(cond_type)
    if not whole.failures:
        outs = while_p.bind(
            *operands, body_jaxpr=body, body_nconsts=body_nconsts, cond_jaxpr=cond, cond_nconsts=cond_nconsts
        )
        return list(outs)
    if not cond_type.failures:
        start: list[Any] = unfailed(whole)
        new_cond = _without_error(cond, cond_nconsts, whole)
        outs = while_p.bind(
            *cond_consts,
            *body_consts,
            *start,
            *carry,
            body_jaxpr=_scan_body(body, whole, body_nconsts),
            body_nconsts=body_nconsts,
            cond_jaxpr=new_cond,
            cond_nconsts=cond_nconsts,
        )
        return checks.taken([*outs[len(start) :], *outs[: len(start)]], whole)
    (going,) = checks.taken(inline_closed(cond, [*cond_consts, *carry]), cond_type)
    start = [going, *unfailed(whole)]
    outs = while_p.bind(
        *cond_consts,
        *body_consts,
        *start,
        *carry,
        body_jaxpr=_body_with_condition(body, body_type, cond, cond_type, cond_nconsts, body_nconsts),
        body_nconsts=cond_nconsts + body_nconsts,
        cond_jaxpr=_going(cond, [*whole.avals(), *body_jaxpr.in_avals[body_nconsts:]]),
        cond_nconsts=0,
    )
    return checks.taken([*outs[len(start) :], *outs[1 : len(start)]], whole)


def _without_error(cond: ClosedJaxpr, cond_nconsts: int, whole: ErrorType) -> ClosedJaxpr:
    """A condition that takes an error before the carries, and does not read it."""
    avals = whole.avals()

    def flat(*args: Any) -> list[Any]:
        consts, _, carry = split_list(args, [cond_nconsts, len(avals)])
        return inline_closed(cond, [*consts, *carry])

    def make() -> ClosedJaxpr:
        consts, carry = split_list(cond.in_avals, [cond_nconsts])
        return stage_closed(flat, [*consts, *avals, *carry], cond.jaxpr.debug_info)

    return memoised(cond, ("checkify while", cond_nconsts, whole), make)


def _going(cond: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The condition of a loop whose first carry says whether it goes on; the others are of these types."""
    boolean = ShapedArray((), np.dtype(np.bool_))

    def make() -> ClosedJaxpr:
        return stage_closed(lambda going, *_: [going], [boolean, *avals], cond.jaxpr.debug_info)

    return memoised(cond, ("checkify going", tuple(avals)), make)


def _body_with_condition(
    body: ClosedJaxpr, body_type: ErrorType, cond: ClosedJaxpr, cond_type: ErrorType, cond_nconsts: int, num_consts: int
) -> ClosedJaxpr:
    """A checked body and the checked condition after it: of whether to go on, the error and the carries."""
    whole = body_type.joined(cond_type)
    avals = whole.avals()
    shift = len(body_type.failures)

    def flat(*args: Any) -> list[Any]:
        cond_consts, body_consts, (_, *error), carry = split_list(args, [cond_nconsts, num_consts, 1 + len(avals)])
        outs = inline_closed(body, [*body_consts, *carry])
        carry, by_body = split_list(outs, [len(carry)])
        going, *by_cond = inline_closed(cond, [*cond_consts, *carry])
        state = as_state(whole, error)
        if body_type.failures:
            state = state.or_else(as_state(body_type, by_body))
        state = state.or_else(as_state(cond_type, by_cond).shifted(shift))
        return [going, *state.leaves(whole.payloads), *carry]

    def make() -> ClosedJaxpr:
        consts, carry = split_list(body.in_avals, [num_consts])
        boolean = ShapedArray((), np.dtype(np.bool_))
        in_avals = [*cond.in_avals[:cond_nconsts], *consts, boolean, *avals, *carry]
        return stage_closed(flat, in_avals, body.jaxpr.debug_info)

    return memoised(body, ("checkify while", cond, cond_nconsts, num_consts), make)


for _primitive, _rule in ((scan_p, scan_checkify), (while_p, while_checkify)):
    if _primitive is not None:
        checkify_rules.register(_primitive, _rule)
