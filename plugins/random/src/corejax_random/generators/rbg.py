"""`rbg` and `unsafe_rbg`: keys of four words, bits from the compiler's generator (`lax.rng_bit_generator`).

`rbg` splits and folds by threefry, with both halves of its key; `unsafe_rbg` uses the compiler's generator for splits
and folds as well. As in JAX, the first key of an array generates the bits for all keys, so that draws under `vmap`
differ from draws with the single keys.
"""

from __future__ import annotations

import math
from typing import Any

import corejax.numpy as jnp
from corejax_random.generators import threefry
from corejax_random.generators.bit_generator import rng_bit_generator
from corejax_random.generators.table import UINTS, PRNGImpl, register_generator


def _seed(value: Any) -> Any:
    half = threefry.seed(value)
    return jnp.concatenate([half, half])


def _split(key: Any, shape: tuple[int, ...]) -> Any:
    halves = threefry.split(key.reshape(2, 2), shape)  # u32[2,*shape,2]
    return jnp.moveaxis(halves, 0, -2).reshape(*shape, 4)


def _fold_in(key: Any, data: Any) -> Any:
    return threefry.fold_in(key.reshape(2, 2), data).reshape(4)


def _random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    return rng_bit_generator(key, shape, UINTS[bit_width])[1]


def _unsafe_split(key: Any, shape: tuple[int, ...]) -> Any:
    """Return every tenth block of the generator, as ten blocks approximate a hash function."""
    keys = rng_bit_generator(key, (10 * math.prod(shape), 4))[1]
    return keys[::10].reshape(*shape, 4)


def _unsafe_fold_in(key: Any, data: Any) -> Any:
    return key ^ rng_bit_generator(_seed(data), (10, 4))[1][-1]


RBG = PRNGImpl((4,), _seed, _split, _random_bits, _fold_in, "rbg", "rbg")
UNSAFE_RBG = PRNGImpl((4,), _seed, _unsafe_split, _random_bits, _unsafe_fold_in, "unsafe_rbg", "urbg")
register_generator(RBG)
register_generator(UNSAFE_RBG)
