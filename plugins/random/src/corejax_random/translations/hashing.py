"""StableHLO of `threefry2x32`: its rounds, one after the other or in a loop.

Of many counters they stand one after the other, and XLA makes one loop over the counters of them. Of few they are a
loop, five times four rounds: XLA computes such small things anew for each user, and would compile for seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, SymbolicDim, stage_closed, xla_translations
from corejax_lax_basic import lax
from corejax_random.generators.hashing import PARITY, ROTATIONS, UINT32, threefry2x32_p

_FEW = 64
_SHARED = 4096  # up to so many words all users read one computation


@xla_translations.register(threefry2x32_p)
def threefry2x32(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    """Additions, rotations and exclusive ors."""
    out = ShapedArray(lax.broadcast_shapes(*(a.shape for a in in_avals)), UINT32)
    vals = [
        ctx.broadcast_in_dim(x, out.shape, range(out.ndim - a.ndim, out.ndim))
        for x, a in zip(in_vals, in_avals, strict=True)
    ]
    size = math.inf if isinstance(out.size, SymbolicDim) else out.size
    if size < _FEW:
        return ctx.inline(stage_closed(_rounds_in_a_loop, [out] * 4), vals)
    both = _rounds(ctx, out, *vals)
    return ctx.op("optimization_barrier", *both, out=[out, out]) if size < _SHARED else both


def _rounds(ctx: Any, out: ShapedArray, k1: Any, k2: Any, x: Any, y: Any) -> list[Any]:
    def op(name: str, *operands: Any) -> Any:
        return ctx.op(name, *operands, out=out)

    def number(n: int) -> Any:
        return ctx.full(out, n)

    keys = (k1, k2, op("xor", op("xor", k1, k2), number(PARITY)))
    x, y = op("add", x, k1), op("add", y, k2)
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x = op("add", x, y)
            y = op("or", op("shift_left", y, number(r)), op("shift_right_logical", y, number(32 - r)))
            y = op("xor", y, x)
        x = op("add", x, keys[(i + 1) % 3])
        y = op("add", op("add", y, keys[(i + 2) % 3]), number(i + 1))
    return [x, y]


def _rounds_in_a_loop(k1: Any, k2: Any, x: Any, y: Any) -> list[Any]:
    """The rotations of these four rounds and of the next, and the words of the key, change places each time."""
    rotations = np.array(ROTATIONS, UINT32)

    def spread(n: Any) -> Any:
        return lax.broadcast_to(n, x.shape)

    def four_rounds(i: Any, state: Any) -> Any:
        x, y, (first, second, third), (now, then) = state
        for j in range(4):
            x = x + y
            right = lax.shift_right_logical(y, spread(np.uint32(32) - now[j]))
            y = lax.bitwise_or(lax.shift_left(y, spread(now[j])), right) ^ x
        step = lax.convert_element_type(i + 1, UINT32)
        return x + second, y + third + step, (second, third, first), (then, now)

    start = (
        x + k1,
        y + k2,
        (k1, k2, k1 ^ k2 ^ np.uint32(PARITY)),
        (lax.asarray(rotations[0]), lax.asarray(rotations[1])),
    )
    return list(lax.fori_loop(0, 5, four_rounds, start)[:2])
