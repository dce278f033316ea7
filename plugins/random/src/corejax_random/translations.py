"""Translations to StableHLO of the primitives without a decomposition.

`threefry2x32` translates to its rounds. For many counters the rounds are unrolled, and XLA fuses them to one loop over
the counters. For few counters they become a loop of five times four rounds: XLA would duplicate small unrolled rounds
for each consumer and compile for seconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, stage_closed, xla_translations
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_random.distributions.random_between import random_between_p
from corejax_random.generators.bit_generator import UINT64, rng_bit_generator_p, rng_uniform_p
from corejax_random.generators.hashing import PARITY, ROTATIONS, UINT32, threefry2x32_p
from corejax_random.generators.table import UINTS

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

xla_translations.register(random_between_p, by="decomposition")  # explicit, as the primitive also has an impl rule

_FEW = 64  # number of counters below which the rounds are a loop
# Number of words below which a barrier keeps XLA from duplicating the rounds into each consumer.
_SHARED = 1 << 16


@xla_translations.register(threefry2x32_p)
def threefry2x32(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    """Translate to additions, rotations and exclusive ors."""
    out = ShapedArray(lax.broadcast_shapes(*(a.shape for a in in_avals)), UINT32)
    size = math.inf if isinstance(out.size, SymbolicDim) else out.size
    if size < _FEW:
        return ctx.inline(stage_closed(_rounds_in_a_loop, in_avals), in_vals)
    vals = [
        ctx.broadcast_in_dim(x, out.shape, range(out.ndim - a.ndim, out.ndim))
        for x, a in zip(in_vals, in_avals, strict=True)
    ]
    both = _rounds(ctx, out, *vals)
    if size >= _SHARED:
        return both
    return list(map(ctx.materialized, ctx.op("optimization_barrier", *both, out=[out, out])))


def _rounds(ctx: TranslationContext, out: ShapedArray, k1: Any, k2: Any, x: Any, y: Any) -> list[Any]:
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
    """Hash in a loop that reads rotations and key words from tables by its index, and carries only the counters.

    A loop that carried and permuted the key words would copy them in each step, with one kernel for each array.
    """
    shape = lax.broadcast_shapes(*(v.shape for v in (k1, k2, x, y)))
    key_shape = lax.broadcast_shapes(k1.shape, k2.shape)
    words = [lax.broadcast_to(k, (1, *key_shape)) for k in (k1, k2, k1 ^ k2 ^ np.uint32(PARITY))]
    key = lax.concatenate(words, 0)
    rotations = lax.asarray(np.array([ROTATIONS[i % 2] for i in range(5)], UINT32))
    word = lax.asarray(np.arange(1, 7, dtype=np.int32) % 3)

    def row(table: Any, i: Any) -> Any:
        return lax.dynamic_index_in_dim(table, i, 0, keepdims=False)

    def four_rounds(i: Any, counter: Any) -> Any:
        x, y = counter
        for rotation in row(rotations, i):
            left = lax.broadcast_to(rotation, shape)
            right = lax.broadcast_to(np.uint32(32) - rotation, shape)
            x = x + y
            y = lax.bitwise_or(lax.shift_left(y, left), lax.shift_right_logical(y, right)) ^ x
        first, second = (lax.broadcast_to(row(key, row(word, i + j)), shape) for j in range(2))
        return x + first, y + second + lax.convert_element_type(i + 1, UINT32)

    start = [lax.broadcast_to(c + k, shape) for c, k in ((x, k1), (y, k2))]
    return list(lax.fori_loop(0, 5, four_rounds, tuple(start)))


_GENERATED = tuple(UINTS.values())
_HALVES, _STATE = ShapedArray((2, 2), UINT32), ShapedArray((2,), UINT64)


@xla_translations.register(rng_bit_generator_p)
def rng_bit_generator(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, shape: Any, dtype: Any, algorithm: Any
) -> Any:
    """Translate to `rng_bit_generator`, with a state of u64[2]; signed integers are converted from words."""
    (key,), (aval,) = in_vals, in_avals
    narrow = aval.dtype == UINT32
    if narrow:
        key = ctx.op("bitcast_convert", ctx.reshape(key, (2, 2)), out=_STATE)
    generated = ShapedArray(shape, dtype if dtype in _GENERATED else UINT32)
    name = algorithm.name.removeprefix("RNG_")
    attrs = f"rng_algorithm = #stablehlo<rng_algorithm {name}>"
    state, bits = ctx.op("rng_bit_generator", key, out=[_STATE, generated], attrs=attrs)
    if narrow:
        state = ctx.reshape(ctx.op("bitcast_convert", state, out=_HALVES), (4,))
    return [state, bits if generated.dtype == dtype else ctx.convert(bits, dtype)]


@xla_translations.register(rng_uniform_p)
def rng_uniform(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, shape: Any) -> Any:
    """Translate to `rng` with the uniform distribution."""
    sizes = ctx.constant(np.array(shape, np.int64))
    out = ShapedArray(shape, in_avals[0].dtype)
    return ctx.op("rng", *in_vals, sizes, out=out, attrs="rng_distribution = #stablehlo<rng_distribution UNIFORM>")
