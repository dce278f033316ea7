"""Functions that make keys, and keys of keys.

key PRNGKey split fold_in clone key_data wrap_key_data key_impl key_dtype
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
import corejax_random.reuse.calls  # noqa: F401  # what the setting debug_key_reuse asks for
from corejax.extend import Array, BackendError, ShapedArray, as_array, config, dtypes, host_value, is_array_like
from corejax.extend.messages import PluginError, api_boundary, clears_cache, observe
from corejax.extend.types import as_dim
from corejax_lax_basic import lax
from corejax_random.generators.hashing import UINT32
from corejax_random.generators.lookup import resolve
from corejax_random.generators.table import PRNGImpl, PRNGSpec, dtype_of, generator_of, known_generators
from corejax_random.generators.threefry import THREEFRY, few_keys
from corejax_random.keys.arguments import as_given, check_words, evaluating, is_key, key_argument
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
    """A key of an integer.

    Args:
        seed: an integer scalar. Of 64 bits the low 32 count, unless 64 bits are the default (`enable_x64`).
        impl: the generator, by name: "threefry2x32", "rbg", "unsafe_rbg", or one that a plugin registers; by default
            the setting `default_prng_impl`.
        dtype: the same as a dtype of keys, or by name.

    Returns:
        A scalar of dtype key<fry>, say.

    Raises:
        TypeError: the seed is no integer scalar, or no generator is given by `impl`.
        ValueError: there is no generator of that name, or `impl` and `dtype` are both given.
        OverflowError: the seed has more than 64 bits.
    """
    return _key("key", seed, _generator("key", impl, dtype))


@api_boundary
def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A key of an integer as its words, u32[2] say: what JAX had before typed keys.

    Such an array does not know its generator: functions take it for one of the setting `default_prng_impl`.

    Raises:
        TypeError, ValueError, OverflowError: as `key`.
    """
    return as_given(_key("PRNGKey", seed, resolve("PRNGKey", impl)), raw=True)


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
            f"{name} makes a key of an integer, and was given one; corejax.random.split makes keys of a key"
        )
    if type(seed) is int:
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(f"{name}: the seed is an integer of 64 bits, got {seed}")
        seed = np.int64(seed)
        if config.default_dtype_bits == 32:
            seed = seed.astype(np.int32)
    elif not is_array_like(seed):
        raise TypeError(f"{name}: the seed is an integer scalar, got {seed!r} of type {type(seed).__name__}")
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
    """New keys of a key, which is used up by it.

    Args:
        key: a key.
        num: how many, or a shape of them.

    Returns:
        An array of keys, of shape (num,) or num.

    Raises:
        TypeError: it is no key, or `num` no integers.
        ValueError: it is more than one key, or `num` is negative.
        KeyReuseError: the key was used before, and the setting `debug_key_reuse` is on.
    """
    key, raw = key_argument("split", key)
    shape = shape_argument("split", num, "num")
    if evaluating(key) and generator_of(key.dtype) is THREEFRY and not observe.watched:
        size = math.prod(shape)
        keys = few_keys(host_value(key).tobytes(), size, key.dtype)  # the primitive, without what it costs
        if keys is not None:
            keys = keys if len(shape) == 1 else keys.reshape(shape)
            return as_given(Array(keys, ShapedArray(shape, key.dtype)), raw)
        keys = _by_program(key, shape) if size > _MANY else None
        if keys is not None:
            return as_given(keys, raw)
    return as_given(random_split_p.bind(key, shape=shape), raw)


_many: dict[Any, Any] = {}  # shapes of many keys -> how often they were split off, or the program
clears_cache(_many.clear)
_MANY = 400  # keys from which on a program is much faster
_OFTEN = 16  # times that NumPy does it: compiling takes as long as a thousand


def _by_program(key: Any, shape: tuple[Any, ...]) -> Any:
    """The same keys by a compiled program, once so many were asked for often; None before, and where none runs."""
    found = _many.get(shape, 0)
    try:
        if type(found) is int:
            found = found + 1 if found < _OFTEN else corejax.jit(functools.partial(random_split_p.bind, shape=shape))
            if len(_many) >= 64:
                _many.clear()
            _many[shape] = found
        return None if type(found) is int or config.disable_jit else found(key)
    except (BackendError, PluginError, AttributeError):  # of a process that was forked, say
        return None


def shape_argument(name: str, shape: Any, what: str = "shape") -> tuple[Any, ...]:
    """A shape, or one size, as a tuple.

    Raises:
        TypeError: it is not made of integers.
        ValueError: one of them is negative.
    """
    if type(shape) is int and shape >= 0:
        return (shape,)
    if type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape):
        return shape
    sizes = tuple(shape) if lax.is_several(shape) else (shape,)
    try:
        found = tuple(map(as_dim, sizes))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {what} is made of integers that are known now, got {shape!r}\n{error}") from None
    if any(isinstance(n, int) and n < 0 for n in found):
        raise ValueError(f"{name}: {what} is made of integers that are not negative, got {shape!r}")
    return found


@api_boundary
def fold_in(key: Any, data: Any) -> Any:
    """A new key of a key and an integer: another one for each.

    Args:
        key: a key.
        data: an integer scalar of 32 bits.

    Raises:
        TypeError: it is no key, or the data are no integer scalar.
        ValueError: it is more than one key.
        OverflowError: the data are a Python integer that uint32 does not hold.
    """
    key, raw = key_argument("fold_in", key)
    if is_key(data) or not is_array_like(data):
        raise TypeError(f"fold_in: data are an integer scalar, got {data!r}")
    if np.ndim(data) if not hasattr(data, "ndim") else data.ndim:
        raise TypeError(
            f"fold_in: data are an integer scalar, got an array of shape {data.shape}; vmap takes one for each"
        )
    return as_given(random_fold_in_p.bind(key, jnp.asarray(data, UINT32)), raw)


@api_boundary
def clone(key: Any) -> Any:
    """The same key, for another use of it: what checks that no key is used twice (`debug_key_reuse`) lets it pass.

    Raises:
        TypeError: it is no key.
    """
    key, raw = key_argument("clone", key, batched=True)
    return as_given(random_clone_p.bind(key), raw)


@api_boundary
def key_data(keys: Any) -> Any:
    """The words that keys are made of: `u32[*s,2]` of `key<fry>[*s]`.

    Raises:
        TypeError: they are no keys.
    """
    return random_unwrap_p.bind(key_argument("key_data", keys, batched=True)[0])


@api_boundary
def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Words as keys; undoes `key_data`.

    Args:
        key_bits_array: an array of uint32, whose last axes are those of the generator's keys.
        impl, dtype: the generator, as in `key`.

    Raises:
        TypeError: the words are not those of keys of this generator.
        ValueError: there is no generator of that name, or `impl` and `dtype` are both given.
    """
    generator = _generator("wrap_key_data", impl, dtype)
    check_words("wrap_key_data", key_bits_array, generator)
    return random_wrap_p.bind(key_bits_array, impl=generator.name)


@api_boundary
def key_impl(keys: Any) -> Any:
    """The name of the generator that keys are for.

    Raises:
        TypeError: they are no keys.
    """
    generator = generator_of(key_argument("key_impl", keys, batched=True)[0].dtype)
    return generator.name if generator.name in known_generators() else PRNGSpec(generator)


@api_boundary
def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of a generator's keys: `key<fry>` of "threefry2x32", the default.

    Raises:
        TypeError, ValueError: there is no such generator.
    """
    return dtype_of(resolve("key_dtype", impl_spec))
