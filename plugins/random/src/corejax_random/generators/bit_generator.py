"""`lax.rng_bit_generator` and `lax.rng_uniform`: the compiler's generators.

rng_bit_generator : u32[4] -> (u32[4], uint[*shape])      u64[2] for a key as well
rng_uniform       : (x[], x[]) -> x[*shape]
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    defjvp,
    dtypes,
    jvp_rules,
    move_batch_axis,
    nondifferentiable,
    vmap_rules,
)
from corejax.extend.programs import register_param_type
from corejax_lax_basic import lax

UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_STATES = {(UINT32, (4,)), (UINT64, (2,))}


_UNIFORM = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint32", "uint64")


@register_param_type
class RandomAlgorithm(enum.IntEnum):
    """The algorithm that generates bits: the platform's default, Threefry-2x32 or Philox-4x32."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


rng_bit_generator_p = Primitive(
    "rng_bit_generator",
    multiple_results=True,
    doc="Generate bits with the compiler's generator, and its next state: u32[4] -> u32[4], uint[*shape].",
)
rng_uniform_p = Primitive(
    "rng_uniform",
    effects=("rng_state",),
    doc="Draw numbers between two scalars with the compiler's stateful generator: other numbers at each call.",
)


def rng_bit_generator(
    key: Any,
    shape: Any,
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> Any:
    """Generate bits with the compiler's generator; the bits depend on the platform.

    Args:
        key: the state, `u32[4]` or `u64[2]`.
        shape: shape of the bits.
        dtype: dtype of the bits, an integer dtype.
        algorithm: algorithm of the generator.
        out_sharding: sharding of the bits, or a `PartitionSpec`.

    Returns:
        The next state, and the bits.

    Raises:
        TypeError: if the key is not a state, or the dtype is not an integer dtype.
    """
    shape = lax.canonical_shape(shape)
    state, bits = rng_bit_generator_p.bind(
        key, shape=shape, dtype=dtypes.canonicalize_dtype(dtype), algorithm=RandomAlgorithm(algorithm)
    )
    return [state, lax.place("rng_bit_generator", bits, out_sharding)]


@abstract_eval_rules.register(rng_bit_generator_p)
def _bit_generator_type(key: ShapedArray, *, shape: Any, dtype: Any, algorithm: Any) -> list[ShapedArray]:
    if (key.dtype, key.shape) not in _STATES:
        raise TypeError(f"rng_bit_generator: the key must be a state u32[4] or u64[2], got {key.str_short()}")
    if not dtypes.is_integer(dtype):
        raise TypeError(f"rng_bit_generator generates integers, got dtype {dtype.name}")
    return [ShapedArray(key.shape, key.dtype), ShapedArray(shape, dtype)]


@vmap_rules.register(rng_bit_generator_p)
def _bit_generator_vmap(axis_size: Any, vals: Any, dims: Any, *, shape: Any, **params: Any) -> tuple[Any, Any]:
    """Generate the bits of the batch with the first state, as JAX does; only the first state is advanced."""
    keys = move_batch_axis(axis_size, dims[0], 0, vals[0])
    if axis_size == 0:
        return [keys, lax.full((0, *shape), 0, params["dtype"])], [0, 0]
    state, bits = rng_bit_generator_p.bind(keys[0], shape=(axis_size, *shape), **params)
    return [lax.concatenate([state[None], keys[1:]], 0), bits], [0, 0]


def rng_uniform(a: Any, b: Any, shape: Any) -> Any:
    """Draw numbers in [a, b) with the compiler's stateful generator: without a key, other numbers at each call.

    Args:
        a: lower bound, a scalar.
        b: upper bound, a scalar of the same dtype.
        shape: shape of the result.

    Raises:
        ValueError: if the bounds are not scalars of one dtype.
    """
    return rng_uniform_p.bind(a, b, shape=lax.canonical_shape(shape))


@abstract_eval_rules.register(rng_uniform_p)
def _uniform_type(a: ShapedArray, b: ShapedArray, *, shape: Any) -> ShapedArray:
    if a.dtype.name not in _UNIFORM:  # XLA aborts the process for other dtypes
        raise TypeError(f"rng_uniform takes scalars of dtype {', '.join(_UNIFORM)}, got {a.str_short()}")
    if a.dtype != b.dtype or a.shape != () or b.shape != ():
        raise ValueError(f"rng_uniform takes two scalars of one dtype, got {a.str_short()} and {b.str_short()}")
    return ShapedArray(shape, a.dtype)


_NO_DERIVATIVE = nondifferentiable(
    "its numbers depend on hidden state of the compiler; corejax.random.uniform is differentiable"
)
defjvp(rng_uniform_p, _NO_DERIVATIVE, _NO_DERIVATIVE)
jvp_rules.register(rng_bit_generator_p, nondifferentiable("its operand and its results are integers"))
