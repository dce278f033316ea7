"""Eager `while` loops that turn out to be long: the rest is compiled, in stretches between which Python may interrupt.

The number of steps is not known beforehand. So a loop runs as a Python loop over NumPy arrays until it has evaluated as
many operations as a long scan has (`long_scans.LONG`), which takes about as long as compiling it. The compiled loop
counts its steps and stops after a stretch, so that Ctrl-C is handled. Which steps are compiled depends on the program
and on the number of steps alone: equal calls give equal bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    host_value,
    inline_closed,
    split_list,
    stage_closed,
)
from corejax.extend.speed import engine
from corejax_control_flow.loops.long_scans import LONG, STRETCH, may_be_compiled, operations

_COUNT = ShapedArray((), np.dtype(np.int32))


def eager_steps(cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr) -> int:
    """Return the number of steps that run eagerly before the rest of the loop is compiled."""
    return max(1, LONG // _operations(cond_jaxpr, body_jaxpr))


def finish_compiled(
    while_p: Primitive,
    consts: Sequence[Any],
    carry: Sequence[Any],
    *,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> list[Any] | None:
    """Run a loop to its end by compiled stretches; None if the loop must not be compiled.

    Args:
        while_p: the primitive.
        consts: the constants of the condition, then those of the body.
        carry: the values that the next step takes.
        body_jaxpr: the body, as in the primitive's parameters.
        body_nconsts: the number of constants of the body.
        cond_jaxpr: the condition.
        cond_nconsts: the number of constants of the condition.
    """
    if not (may_be_compiled(cond_jaxpr) and may_be_compiled(body_jaxpr)):
        return None
    stretch = max(1, STRETCH // _operations(cond_jaxpr, body_jaxpr))
    params = _counting(body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts)
    arrays = [Array(x) for x in consts]
    left = 0
    while left == 0:
        operands = [*arrays, Array(np.int32(stretch)), *map(Array, carry)]
        outs = engine().run_compiled(while_p, operands, params)
        if outs is None:
            return None
        left, *carry = map(host_value, outs)
    return list(carry)


def _operations(cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr) -> int:
    return max(1, operations(cond_jaxpr.jaxpr) + operations(body_jaxpr.jaxpr))


def _counting(body_jaxpr: ClosedJaxpr, body_nconsts: int, cond_jaxpr: ClosedJaxpr, cond_nconsts: int) -> dict[str, Any]:
    """Return the parameters of a loop whose first carry counts the steps that are left, and which ends at 0."""
    from corejax_lax_basic import lax

    key = ("counting", body_nconsts, cond_jaxpr, cond_nconsts)
    found: dict[str, Any] | None = body_jaxpr.memo.get(key)
    if found is None:

        def is_to_go_on(*args: Any) -> list[Any]:
            consts, [left], carry = split_list(args, [cond_nconsts, 1])
            [condition] = inline_closed(cond_jaxpr, [*consts, *carry])
            return [lax.bitwise_and(condition, lax.gt(left, np.int32(0)))]

        def step(*args: Any) -> list[Any]:
            consts, [left], carry = split_list(args, [body_nconsts, 1])
            return [lax.sub(left, np.int32(1)), *inline_closed(body_jaxpr, [*consts, *carry])]

        found = body_jaxpr.memo[key] = {
            "body_jaxpr": stage_closed(step, _counted(body_jaxpr.in_avals, body_nconsts)),
            "body_nconsts": body_nconsts,
            "cond_jaxpr": stage_closed(is_to_go_on, _counted(cond_jaxpr.in_avals, cond_nconsts)),
            "cond_nconsts": cond_nconsts,
        }
    return found


def _counted(avals: Sequence[ShapedArray], nconsts: int) -> list[ShapedArray]:
    return [*avals[:nconsts], _COUNT, *avals[nconsts:]]
