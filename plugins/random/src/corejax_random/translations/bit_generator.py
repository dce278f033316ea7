"""StableHLO of the compiler's own generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_random.generators.bit_generator import UINT32, UINT64, rng_bit_generator_p, rng_uniform_p
from corejax_random.generators.table import UINTS

_MADE = tuple(UINTS.values())
_HALVES, _STATE = ShapedArray((2, 2), UINT32), ShapedArray((2,), UINT64)


@xla_translations.register(rng_bit_generator_p)
def rng_bit_generator(ctx: Any, in_avals: Any, in_vals: Any, *, shape: Any, dtype: Any, algorithm: Any) -> Any:
    """`rng_bit_generator`, whose state is u64[2] on every platform; narrow and signed integers are made of words."""
    (key,), (aval,) = in_vals, in_avals
    narrow = aval.dtype == UINT32
    if narrow:
        key = ctx.op("bitcast_convert", ctx.reshape(key, (2, 2)), out=_STATE)
    made = ShapedArray(shape, dtype if dtype in _MADE else UINT32)
    name = algorithm.name.removeprefix("RNG_")
    attrs = f"rng_algorithm = #stablehlo<rng_algorithm {name}>"
    state, bits = ctx.op("rng_bit_generator", key, out=[_STATE, made], attrs=attrs)
    if narrow:
        state = ctx.reshape(ctx.op("bitcast_convert", state, out=_HALVES), (4,))
    return [state, bits if made.dtype == dtype else ctx.convert(bits, dtype)]


@xla_translations.register(rng_uniform_p)
def rng_uniform(ctx: Any, in_avals: Any, in_vals: Any, *, shape: Any) -> Any:
    """`rng`."""
    sizes = ctx.constant(np.array(shape, np.int64))
    out = ShapedArray(shape, in_avals[0].dtype)
    return ctx.op("rng", *in_vals, sizes, out=out, attrs="rng_distribution = #stablehlo<rng_distribution UNIFORM>")
