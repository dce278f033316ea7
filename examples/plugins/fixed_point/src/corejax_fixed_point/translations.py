"""StableHLO translation: a `while` loop, whose regions contain the programs that the impl rule runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, stage_closed, xla_translations
from corejax_fixed_point.primitive import fixed_point_p, gave_up_program, step_program


def _unfinished_program(max_steps: int, flags: ShapedArray) -> ClosedJaxpr:
    """Return the program that computes the loop's condition from the step count and the mask of unfinished problems."""

    def flat(count: Any, moving: Any) -> list[Any]:
        return [(count < max_steps) & moving.any()]

    return stage_closed(flat, [ShapedArray((), np.int32), flags])


@xla_translations.register(fixed_point_p)
def fixed_point_translation(
    ctx: Any,
    in_avals: Any,
    in_vals: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_params: int,
    max_steps: int,
    **settings: Any,
) -> list[Any]:
    """Translate to a `while` loop that carries x, a counter, and the mask of problems that have not converged.

    The regions read the params from the enclosing scope.
    """
    step = step_program(jaxpr, num_params=num_params, max_steps=max_steps, **settings)
    flags = step.out_avals[-1]
    unfinished = _unfinished_program(max_steps, flags)
    params, xs = in_vals[:num_params], in_vals[num_params:]

    def cond(inner: Any, count: Any, *state: Any) -> Any:
        return inner.inline(unfinished, [count, state[-1]])

    def body(inner: Any, count: Any, *state: Any) -> list[Any]:
        one = inner.constant(1, np.int32)
        return [inner.op("add", count, one, out=count.aval), *inner.inline(step, [*params, *state[:-1]])]

    start = [ctx.constant(0, np.int32), *xs, ctx.full(flags, True)]
    avals = [x.aval for x in start]
    regions = [ctx.region(avals, cond), ctx.region(avals, body)]
    _, *state = ctx.op("while", *start, out=avals, regions=regions)
    return ctx.inline(gave_up_program(step), state)
