"""Functions that create keys and derive keys from keys.

key PRNGKey split fold_in clone key_data wrap_key_data key_impl key_dtype
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
import corejax_random.reuse.calls  # noqa: F401  # registers the check for the setting debug_key_reuse
from corejax.extend import Array, BackendError, ShapedArray, as_array, config, dtypes, host_value, is_array_like
from corejax.extend.messages import PluginError, api_boundary, clears_cache, observe
from corejax.extend.types import as_dim
from corejax_lax_basic import lax
from corejax_random.generators.hashing import UINT32
from corejax_random.generators.lookup import resolve
from corejax_random.generators.table import PRNGImpl, PRNGSpec, dtype_of, generator_of, known_generators
from corejax_random.generators.threefry import THREEFRY, few_keys
from corejax_random.keys.arguments import as_passed, check_words, evaluating, is_key, key_argument
from corejax_random.keys.primitives import (
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)


@api_boundary
def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Create a key from an integer.

    Args:
        seed: integer scalar. Only the low 32 bits count, unless 64 bits are the default (`enable_x64`).
        impl: the generator, by name: "threefry2x32", "rbg", "unsafe_rbg", or a name that a plugin registers; by
            default the setting `default_prng_impl`.
        dtype: the generator as a dtype of keys, or by name; an alternative to `impl`.

    Returns:
        A scalar of the generator's dtype, such as key<fry>.

    Raises:
        TypeError: if the seed is not an integer scalar, or `impl` is not a generator.
        ValueError: if no generator has the name, or both `impl` and `dtype` are passed.
        OverflowError: if the seed has more than 64 bits.
    """
    return _key("key", seed, _generator("key", impl, dtype))


@api_boundary
def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """Create a key from an integer and return its words, as an array u32[2] by default.

    This is the format of keys in JAX before typed keys. The array does not store its generator: functions assume the
    generator of the setting `default_prng_impl`.

    Args:
        seed: integer scalar, as for `key`.
        impl: the generator, as for `key`.

    Raises:
        TypeError, ValueError, OverflowError: as `key`.
    """
    return as_passed(_key("PRNGKey", seed, resolve("PRNGKey", impl)), raw=True)


def _generator(name: str, impl: Any, dtype: Any) -> PRNGImpl:
    if impl is not None and dtype is not None:
        raise ValueError(f"{name}: Cannot specify both `impl` and `dtype`, got {impl!r} and {dtype!r}")
    return resolve(name, dtype if impl is None else impl)


def _offset(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(config.random_seed_offset, dtype)
    except OverflowError as error:
        raise OverflowError(f"the setting random_seed_offset is added to seeds of dtype {dtype}: {error}") from None


def _key(name: str, seed: Any, generator: PRNGImpl) -> Any:
    if is_key(seed):
        raise TypeError(
            f"{name} creates a key from an integer, got a key; corejax.random.split derives keys from a key"
        )
    if type(seed) is int:
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(f"{name}: the seed must be an integer of 64 bits, got {seed}")
        seed = np.int64(seed)
        if config.default_dtype_bits == 32:
            seed = seed.astype(np.int32)
    elif not is_array_like(seed):
        raise TypeError(f"{name}: the seed must be an integer scalar, got {seed!r} of type {type(seed).__name__}")
    value = as_array(seed)
    if value.dtype == np.bool_ and not value.ndim:
        value = lax.convert_element_type(value, np.dtype(np.int32))
    if value.ndim or not dtypes.is_integer(value.dtype):
        if value.ndim:
            shown = f"{value.aval.str_short()}; corejax.vmap({name}) takes one for each"
            raise TypeError(f"{name} accepts a scalar seed, got {shown}")
        raise TypeError(f"{name}: PRNG key seed must be an integer, got {value.aval.str_short()}")
    if value.dtype.itemsize == 8 and config.default_dtype_bits == 32:
        value = lax.convert_element_type(value, np.dtype(np.int32 if value.dtype.kind == "i" else np.uint32))
    if config.random_seed_offset:
        value = lax.add(value, _offset(value.dtype))
    return random_seed_p.bind(value, impl=generator.name)


@api_boundary
def split(key: Any, num: Any = 2) -> Any:
    """Split a key into new keys. The key must not be used again.

    Args:
        key: a key.
        num: number of new keys, or their shape.

    Returns:
        An array of keys, of shape (num,) or num.

    Raises:
        TypeError: if `key` is not a key, or `num` is not made of integers.
        ValueError: if `key` has more than one key, or `num` is negative.
        KeyReuseError: if the key was used before and the setting `debug_key_reuse` is on.
    """
    key, raw = key_argument("split", key)
    shape = shape_argument("split", num, "num")
    if evaluating(key) and generator_of(key.dtype) is THREEFRY and not observe.watched:
        size = math.prod(shape)
        keys = few_keys(host_value(key).tobytes(), size, key.dtype)  # equal to the primitive, without dispatch
        if keys is not None:
            keys = keys if len(shape) == 1 else keys.reshape(shape)
            return as_passed(Array(keys, ShapedArray(shape, key.dtype)), raw)
        keys = _compiled_split(key, shape) if size > _MANY else None
        if keys is not None:
            return as_passed(keys, raw)
    return as_passed(random_split_p.bind(key, shape=shape), raw)


_many: dict[Any, Any] = {}  # shape of many keys -> the number of splits so far, or the compiled program
clears_cache(_many.clear)
_MANY = 400  # number of keys from which a compiled program is much faster
_OFTEN = 16  # number of splits by NumPy before compilation, which takes as long as a thousand splits


def _compiled_split(key: Any, shape: tuple[Any, ...]) -> Any:
    """Split by a compiled program if this shape is frequent, else return None; also if no backend compiles."""
    entry = _many.get(shape, 0)
    try:
        if type(entry) is int:
            entry = entry + 1 if entry < _OFTEN else corejax.jit(functools.partial(random_split_p.bind, shape=shape))
            if len(_many) >= 64:
                _many.clear()
            _many[shape] = entry
        return None if type(entry) is int or config.disable_jit else entry(key)
    except (BackendError, PluginError, AttributeError):  # in a forked process, for example
        return None


def shape_argument(name: str, shape: Any, what: str = "shape") -> tuple[Any, ...]:
    """Convert a shape or a single size to a tuple.

    Raises:
        TypeError: if a size is not an integer.
        ValueError: if a size is negative.
    """
    if type(shape) is int and shape >= 0:
        return (shape,)
    if type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape):
        return shape
    sizes = tuple(shape) if lax.is_several(shape) else (shape,)
    try:
        dims = tuple(map(as_dim, sizes))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {what} must consist of concrete integers, got {shape!r}\n{error}") from None
    if any(isinstance(n, int) and n < 0 for n in dims):
        raise ValueError(f"{name}: {what} must consist of nonnegative integers, got {shape!r}")
    return dims


@api_boundary
def fold_in(key: Any, data: Any) -> Any:
    """Derive a new key from a key and an integer; different integers give different keys.

    Args:
        key: a key.
        data: integer scalar of 32 bits.

    Raises:
        TypeError: if `key` is not a key, or `data` is not an integer scalar.
        ValueError: if `key` has more than one key.
        OverflowError: if `data` is a Python integer that does not fit into uint32.
    """
    key, raw = key_argument("fold_in", key)
    if is_key(data) or not is_array_like(data):
        raise TypeError(f"fold_in: data must be an integer scalar, got {data!r}")
    if np.ndim(data) if not hasattr(data, "ndim") else data.ndim:
        raise TypeError(
            f"fold_in: data must be an integer scalar, got an array of shape {data.shape}; vmap takes one for each"
        )
    return as_passed(random_fold_in_p.bind(key, jnp.asarray(data, UINT32)), raw)


@api_boundary
def clone(key: Any) -> Any:
    """Return an equal key that may be used once more if the setting `debug_key_reuse` is on.

    Args:
        key: a key, or an array of keys.

    Raises:
        TypeError: if `key` is not a key.
    """
    key, raw = key_argument("clone", key, batched=True)
    return as_passed(random_clone_p.bind(key), raw)


@api_boundary
def key_data(keys: Any) -> Any:
    """Return the words of keys: `u32[*s,2]` for `key<fry>[*s]`.

    Args:
        keys: a key, or an array of keys.

    Raises:
        TypeError: if `keys` are not keys.
    """
    return random_unwrap_p.bind(key_argument("key_data", keys, batched=True)[0])


@api_boundary
def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Convert words to keys, the inverse of `key_data`.

    Args:
        key_bits_array: array of uint32; the last axes have the shape of one key's words.
        impl: the generator, as for `key`.
        dtype: the generator, as for `key`.

    Raises:
        TypeError: if the words do not have the dtype or shape of this generator's keys.
        ValueError: if no generator has the name, or both `impl` and `dtype` are passed.
    """
    generator = _generator("wrap_key_data", impl, dtype)
    check_words("wrap_key_data", key_bits_array, generator)
    return random_wrap_p.bind(key_bits_array, impl=generator.name)


@api_boundary
def key_impl(keys: Any) -> Any:
    """Return the name of the generator of keys, or a `PRNGSpec` if it is not registered by name.

    Args:
        keys: a key, or an array of keys.

    Raises:
        TypeError: if `keys` are not keys.
    """
    generator = generator_of(key_argument("key_impl", keys, batched=True)[0].dtype)
    return generator.name if generator.name in known_generators() else PRNGSpec(generator)


@api_boundary
def key_dtype(impl_spec: Any = None) -> Any:
    """Return the dtype of a generator's keys: `key<fry>` for "threefry2x32".

    Args:
        impl_spec: the generator, as `impl` for `key`.

    Raises:
        TypeError, ValueError: if `impl_spec` is not a generator.
    """
    return dtype_of(resolve("key_dtype", impl_spec))
