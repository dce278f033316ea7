"""Convert types and arrays between corejax and JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import corejax
from corejax.extend import ShapedArray, dtypes

SUPPORTED = (0, 10)


def check_version(bridge: str, name: str) -> None:
    """Check the version of JAX, whose rules for primitives change between minor releases.

    Raises:
        ImportError: the version is not supported.
    """
    if tuple(int(part) for part in jax.__version__.split(".")[:2]) != SUPPORTED:
        raise ImportError(f"{bridge}: {name}: jax {jax.__version__} is not supported; install jax>=0.10,<0.11")


def is_key(x: Any) -> bool:
    """Return whether an array, a tracer or a type of JAX holds random keys."""
    return bool(jnp.issubdtype(x.dtype, jax.dtypes.prng_key))


def aval_from_jax(x: Any, name: str) -> ShapedArray:
    """Return the corejax type of a JAX array or tracer.

    Raises:
        NotImplementedError: a size is symbolic.
        TypeError: corejax does not have the dtype.
    """
    shape = tuple(x.shape)
    if not all(isinstance(size, int) for size in shape):
        sizes = ", ".join(map(str, shape))
        raise NotImplementedError(
            f"to_jax: {name}: an argument has the symbolic shape ({sizes}); export it for known sizes, once for each"
        )
    if jnp.issubdtype(x.dtype, jax.dtypes.extended):
        raise TypeError(f"to_jax: {name}: corejax has no dtype {x.dtype}; convert the argument before the call")
    return ShapedArray(shape, np.dtype(x.dtype))


def to_numbers(x: Any) -> tuple[Any, str | None]:
    """Convert a value to a JAX array of numbers; also return the name of the generator for an array of keys."""
    x = jnp.asarray(x)
    return (jax.random.key_data(x), str(jax.random.key_impl(x))) if is_key(x) else (x, None)


def key_from_numbers(x: Any, impl: str | None) -> Any:
    """Convert numbers to a corejax array of keys if a generator is given, else return them unchanged."""
    return x if impl is None else corejax.random.wrap_key_data(x, impl=impl)


def key_to_numbers(x: Any) -> tuple[Any, str | None]:
    """Convert a corejax value to numbers; also return the name of the generator for an array of keys."""
    if not dtypes.is_extended(x.dtype):
        return x, None
    return corejax.random.key_data(x), str(corejax.random.key_impl(x))
