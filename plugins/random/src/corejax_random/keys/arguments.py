"""Checks and conversions of `key` arguments."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import Array, Tracer, bottom_trace, config, current_trace, is_array_like
from corejax.extend.messages import warn_user
from corejax.extend.transforms import in_context
from corejax_random.generators.hashing import UINT32
from corejax_random.generators.lookup import default_generator
from corejax_random.generators.table import PRNGImpl, is_key_dtype
from corejax_random.keys.primitives import random_unwrap_p, random_wrap_p

_LEGACY = (
    "{}: the key is a raw array of words, as PRNGKey returns it; corejax.random.key returns typed keys, "
    "and the setting legacy_prng_key is {!r}"
)


def key_argument(name: str, key: Any, *, batched: bool = False) -> tuple[Any, bool]:
    """Convert a key argument to a typed key.

    Args:
        name: the function, for messages.
        key: an array of keys, or of their words.
        batched: whether to accept arrays of keys.

    Returns:
        The key, and True if the argument was an array of words.

    Raises:
        TypeError: if `key` is neither an array of keys nor of words.
        ValueError: if `key` has more than one key, or has words and the setting `legacy_prng_key` is "error".
    """
    raw = False
    dtype = getattr(key, "dtype", None)
    if dtype is None or not is_key_dtype(dtype):
        key, raw = _from_words(name, key), True
    if key.ndim and not batched:
        raise ValueError(
            f"{name} takes one key, got an array of {math.prod(key.shape)} keys, of shape {key.shape}; "
            f"corejax.vmap({name}) takes one for each"
        )
    return key, raw


def _from_words(name: str, key: Any) -> Any:
    generator = default_generator()
    check_words(name, key, generator)
    if config.legacy_prng_key == "error":
        raise ValueError(_LEGACY.format(name, "error"))
    if config.legacy_prng_key == "warn":
        warn_user(_LEGACY.format(name, "warn"), UserWarning)
    elif config.enable_custom_prng:
        warn_user(
            f"{name}: raw arrays of words as keys are deprecated; corejax.random.key returns typed keys", FutureWarning
        )
    return random_wrap_p.bind(key, impl=generator.name)


def check_words(name: str, words: Any, generator: PRNGImpl) -> None:
    """Raise TypeError if `words` is not an array of words of a generator's keys."""
    if not is_array_like(words) or not hasattr(words, "dtype"):
        raise TypeError(
            f"{name}: a key must be an array, such as corejax.random.key(0); got {words!r} of type "
            f"{type(words).__name__}"
        )
    shape, inner = tuple(words.shape), generator.key_shape
    if words.dtype != UINT32 or shape[len(shape) - len(inner) :] != inner:
        wanted = ",".join(map(str, inner))
        raise TypeError(
            f"{name}: a key must be an array from corejax.random.key, or the words u32[{wanted}] of a key for "
            f"{generator.name}; got an array of dtype {getattr(words.dtype, 'name', words.dtype)} and shape {shape}"
        )


def as_passed(key: Any, raw: bool) -> Any:
    """Convert keys to words if the argument was an array of words."""
    return random_unwrap_p.bind(key) if raw and not config.enable_custom_prng else key


def is_key(x: Any) -> bool:
    """Return whether `x` is an array of keys."""
    return isinstance(x, (Array, Tracer)) and is_key_dtype(x.dtype)


def evaluating(*arrays: Any) -> bool:
    """Return whether no transformation traces operations on these arrays, so that they can run on the host."""
    if current_trace() is not bottom_trace() or in_context():
        return False
    return all(type(x) is Array for x in arrays)
