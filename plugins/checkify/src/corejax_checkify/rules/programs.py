"""Rules of higher-order primitives: calls, `cond`, `scan`, `while` and `shard_map`.

Most primitives are bound with the checked program in place of their own. Branches of `cond` return errors of one common
type. A loop carries the error, so that the first iteration that fails counts. Each device of a mesh returns its own
error, and the first one that failed counts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, Primitive, ShapedArray, inline_closed, memoised, split_list, stage_closed
from corejax.extend.plugins import exported
from corejax_checkify.check_primitive import first_failed
from corejax_checkify.interpreter import Checks, checked_jaxpr, for_primitive
from corejax_checkify.state import ErrorType, as_state, unfailed
from corejax_lax_basic import lax


def _calling(primitive: Primitive, param: str, checks: Checks, *operands: Any, **params: Any) -> list[Any]:
    return checks.call(primitive, operands, params, param)


def _jitting(primitive: Primitive, param: str, checks: Checks, *operands: Any, name: str, **params: Any) -> list[Any]:
    return checks.call(primitive, operands, {"name": f"checkify({name})", **params}, param)


def _inlining(primitive: Primitive, param: str, checks: Checks, *operands: Any, **params: Any) -> list[Any]:
    """Inline the checked program of a primitive that cannot return an error beside its results."""
    program, error_type = checked_jaxpr(params[param], checks.kinds)
    if program is params[param]:
        return list(primitive.bind(*operands, **params))
    return checks.taken(inline_closed(program, operands), error_type)


for_primitive("xla_call", _jitting, "call_jaxpr")
for_primitive("remat2", _calling, "jaxpr")
for_primitive("composite", _inlining, "jaxpr")
for_primitive("remat_opt", _inlining, "fwd_jaxpr")


def cond_checkify(
    primitive: Primitive, checks: Checks, index: Any, *operands: Any, branches: tuple[ClosedJaxpr, ...], **params: Any
) -> list[Any]:
    """Bind a conditional between checked branches, which return errors of the join of all their types."""
    checked = [checked_jaxpr(branch, checks.kinds) for branch in branches]
    joined = functools.reduce(ErrorType.joined, (error_type for _, error_type in checked))
    programs = []
    count = 0
    for program, error_type in checked:
        programs.append(_with_error(program, error_type, joined, count))
        count += len(error_type.failures)
    return checks.taken(primitive.bind(index, *operands, branches=tuple(programs), **params), joined)


def _with_error(program: ClosedJaxpr, error_type: ErrorType, joined: ErrorType, count: int) -> ClosedJaxpr:
    """Convert the error of a checked branch to the joined type; its codes are shifted by `count`."""
    if error_type == joined:
        return program

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(program, args)
        if not error_type.failures:
            return [*outs, *unfailed(joined)]
        results = len(outs) - len(error_type.avals())
        state = as_state(error_type, outs[results:]).shifted(count)
        return [*outs[:results], *state.leaves(joined.payloads)]

    def make() -> ClosedJaxpr:
        return stage_closed(flat, program.in_avals, program.jaxpr.debug_info)

    return memoised(program, ("checkify branch", joined, count), make)


for_primitive("cond", cond_checkify)


def scan_checkify(
    primitive: Primitive,
    checks: Checks,
    *operands: Any,
    jaxpr: ClosedJaxpr,
    linear: tuple[bool, ...],
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> list[Any]:
    """Bind one scan that carries the error before its own carries."""
    program, error_type = checked_jaxpr(jaxpr, checks.kinds)
    start = unfailed(error_type)
    consts, rest = split_list(operands, [num_consts])
    outs = primitive.bind(
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
    """Convert a checked body to one that carries the error."""
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
    """Return the leaves of the first of two errors of one type."""
    return as_state(error_type, error).or_else(as_state(error_type, later)).leaves(error_type.payloads)


def while_checkify(
    primitive: Primitive,
    checks: Checks,
    *operands: Any,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> list[Any]:
    """Bind one loop that carries the error.

    A condition that may fail cannot return its error. So it is computed once before the loop and after the body in each
    iteration, and the loop also carries its value.
    """
    body, body_type = checked_jaxpr(body_jaxpr, checks.kinds)
    cond, cond_type = checked_jaxpr(cond_jaxpr, checks.kinds)
    cond_consts, body_consts, carry = split_list(operands, [cond_nconsts, body_nconsts])
    joined = body_type.joined(cond_type)
    if not joined.failures:
        outs = primitive.bind(
            *operands, body_jaxpr=body, body_nconsts=body_nconsts, cond_jaxpr=cond, cond_nconsts=cond_nconsts
        )
        return list(outs)
    if not cond_type.failures:
        start: list[Any] = unfailed(joined)
        new_cond = _ignoring_error(cond, cond_nconsts, joined)
        outs = primitive.bind(
            *cond_consts,
            *body_consts,
            *start,
            *carry,
            body_jaxpr=_scan_body(body, joined, body_nconsts),
            body_nconsts=body_nconsts,
            cond_jaxpr=new_cond,
            cond_nconsts=cond_nconsts,
        )
        return checks.taken([*outs[len(start) :], *outs[: len(start)]], joined)
    (going,) = checks.taken(inline_closed(cond, [*cond_consts, *carry]), cond_type)
    start = [going, *unfailed(joined)]
    outs = primitive.bind(
        *cond_consts,
        *body_consts,
        *start,
        *carry,
        body_jaxpr=_body_with_condition(body, body_type, cond, cond_type, cond_nconsts, body_nconsts),
        body_nconsts=cond_nconsts + body_nconsts,
        cond_jaxpr=_carried_condition(cond, [*joined.avals(), *body_jaxpr.in_avals[body_nconsts:]]),
        cond_nconsts=0,
    )
    return checks.taken([*outs[len(start) :], *outs[1 : len(start)]], joined)


def _ignoring_error(cond: ClosedJaxpr, cond_nconsts: int, error_type: ErrorType) -> ClosedJaxpr:
    """Give a condition an unused error before its carries."""
    avals = error_type.avals()

    def flat(*args: Any) -> list[Any]:
        consts, _, carry = split_list(args, [cond_nconsts, len(avals)])
        return inline_closed(cond, [*consts, *carry])

    def make() -> ClosedJaxpr:
        consts, carry = split_list(cond.in_avals, [cond_nconsts])
        return stage_closed(flat, [*consts, *avals, *carry], cond.jaxpr.debug_info)

    return memoised(cond, ("checkify while", cond_nconsts, error_type), make)


def _carried_condition(cond: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Return the condition of a loop that carries its value as first carry, before carries of types `avals`."""
    boolean = ShapedArray((), np.dtype(np.bool_))

    def make() -> ClosedJaxpr:
        return stage_closed(lambda going, *_: [going], [boolean, *avals], cond.jaxpr.debug_info)

    return memoised(cond, ("checkify going", tuple(avals)), make)


def _body_with_condition(
    body: ClosedJaxpr, body_type: ErrorType, cond: ClosedJaxpr, cond_type: ErrorType, cond_nconsts: int, num_consts: int
) -> ClosedJaxpr:
    """Return the checked body followed by the checked condition; it carries condition, error and carries."""
    joined = body_type.joined(cond_type)
    avals = joined.avals()
    shift = len(body_type.failures)

    def flat(*args: Any) -> list[Any]:
        cond_consts, body_consts, (_, *error), carry = split_list(args, [cond_nconsts, num_consts, 1 + len(avals)])
        outs = inline_closed(body, [*body_consts, *carry])
        carry, by_body = split_list(outs, [len(carry)])
        going, *by_cond = inline_closed(cond, [*cond_consts, *carry])
        state = as_state(joined, error)
        if body_type.failures:
            state = state.or_else(as_state(body_type, by_body))
        state = state.or_else(as_state(cond_type, by_cond).shifted(shift))
        return [going, *state.leaves(joined.payloads), *carry]

    def make() -> ClosedJaxpr:
        consts, carry = split_list(body.in_avals, [num_consts])
        boolean = ShapedArray((), np.dtype(np.bool_))
        in_avals = [*cond.in_avals[:cond_nconsts], *consts, boolean, *avals, *carry]
        return stage_closed(flat, in_avals, body.jaxpr.debug_info)

    return memoised(body, ("checkify while", cond, cond_nconsts, num_consts), make)


for_primitive("scan", scan_checkify)
for_primitive("while", while_checkify)


def _stacking(program: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """Add a leading axis of size 1 to the last `count` results, so that `shard_map` concatenates them over devices."""

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(program, args)
        return [*outs[:-count], *[lax.expand_dims(x, (0,)) for x in outs[-count:]]]

    return memoised(
        program, ("errors of blocks", count), lambda: stage_closed(flat, program.in_avals, program.jaxpr.debug_info)
    )


def _shard_map_checkify(
    primitive: Primitive,
    checks: Checks,
    *operands: Any,
    jaxpr: ClosedJaxpr,
    mesh: Any,
    out_specs: Sequence[Any],
    axis_name: tuple[Any, ...],
    **params: Any,
) -> list[Any]:
    program, error_type = checked_jaxpr(jaxpr, checks.kinds)
    count = len(error_type.avals())
    if count:
        program = _stacking(program, count)
    outs = primitive.bind(
        *operands,
        jaxpr=program,
        mesh=mesh,
        out_specs=(*out_specs, *[exported("P")(axis_name)] * count),
        axis_name=axis_name,
        **params,
    )
    if not count:
        return list(outs)
    size = math.prod(size for name, size in mesh.shape_tuple if name in axis_name)
    return checks.taken([*outs[:-count], *first_failed(size, outs[-count:], [0] * count)], error_type)


for_primitive("shard_map", _shard_map_checkify)
