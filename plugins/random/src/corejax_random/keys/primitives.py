"""Primitives of key arrays; k is the shape of a key's words, `key` a dtype such as key<fry>.

    random_seed    : i[*s] -> key[*s]
    random_wrap    : u32[*s,*k] -> key[*s]            words to keys
    random_unwrap  : key[*s] -> u32[*s,*k]
    random_split   : key[*s] -> key[*s,*shape]
    random_fold_in : (key[*s], u32[*t]) -> key[*u]    operands broadcast
    random_bits    : key[*s] -> uint[*s,*shape]
    random_clone   : key[*s] -> key[*s]               equal keys, which count as unused

All but `random_wrap` and `random_unwrap` decompose into a generator's functions, from which their rules are derived.
Evaluation uses the generator's functions for the host, if it has any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import corejax
from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    as_array,
    defbroadcasting,
    defvectorized,
    dtypes,
    host_value,
    impl_rules,
    jvp_rules,
    move_batch_axis,
    nondifferentiable,
    vmap_rules,
)
from corejax.extend.speed import HostCode
from corejax.extend.types import from_numbers, numbers_of, physical_rules
from corejax_lax_basic import lax
from corejax_random.generators.hashing import UINT32
from corejax_random.generators.lookup import by_name
from corejax_random.generators.table import UINTS, PRNGImpl, dtype_of, generator_of, is_key_dtype
from corejax_random.generators.threefry import THREEFRY, bits_of_one_key, keys_of_one_key


def each_key(ndim: int, apply: Callable[..., Any]) -> Callable[..., Any]:
    """Map a function of one key's words over `ndim` leading axes."""
    for _ in range(ndim):
        apply = corejax.vmap(apply)
    return apply


def _wrapped(words: Any, name: str) -> Any:
    return random_wrap_p.bind(words, impl=name)


def _seed_body(seeds: Any, *, impl: str) -> Any:
    seeds = as_array(seeds)
    return _wrapped(each_key(seeds.ndim, by_name(impl, "random_seed").seed)(seeds), impl)


def _split_body(keys: Any, *, shape: tuple[int, ...]) -> Any:
    keys = as_array(keys)
    impl = generator_of(keys.dtype)
    return _wrapped(each_key(keys.ndim, lambda key: impl.split(key, shape))(random_unwrap_p.bind(keys)), impl.name)


def _bits_body(keys: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    keys = as_array(keys)
    impl = generator_of(keys.dtype)
    return each_key(keys.ndim, lambda key: impl.random_bits(key, bit_width, shape))(random_unwrap_p.bind(keys))


def _fold_in_body(keys: Any, data: Any) -> Any:
    keys, data = as_array(keys), as_array(data)
    impl = generator_of(keys.dtype)
    if data.ndim:
        shape = lax.broadcast_shapes(keys.shape, data.shape)
        keys, data = lax.broadcast_to(keys, shape), lax.broadcast_to(data, shape)
        folded = each_key(len(shape), impl.fold_in)(random_unwrap_p.bind(keys), data)
    else:
        folded = each_key(keys.ndim, lambda key: impl.fold_in(key, data))(random_unwrap_p.bind(keys))
    return _wrapped(folded, impl.name)


random_seed_p = Primitive("random_seed", decomposition=_seed_body, doc="Create keys from integers: i[*s] -> key[*s].")
random_split_p = Primitive(
    "random_split", decomposition=_split_body, doc="Split each key into new keys: key[*s] -> key[*s,*shape]."
)
random_bits_p = Primitive(
    "random_bits", decomposition=_bits_body, doc="Generate bits with each key: key[*s] -> uint[*s,*shape]."
)
random_fold_in_p = Primitive(
    "random_fold_in",
    decomposition=_fold_in_body,
    doc="Derive keys from keys and integers, which broadcast: key[], u32[] -> key[].",
)
random_wrap_p = Primitive("random_wrap", doc="Convert words to keys: u32[*s,*k] -> key[*s].")
random_unwrap_p = Primitive("random_unwrap", doc="Convert keys to words: key[*s] -> u32[*s,*k].")
random_clone_p = Primitive(
    "random_clone",
    decomposition=lambda keys: as_array(keys),
    doc="Return equal keys, which may be used once more: key[] -> key[].",
)
for _primitive in (random_seed_p, random_split_p, random_bits_p, random_unwrap_p, random_clone_p):
    defvectorized(_primitive)
defbroadcasting(random_fold_in_p)
for _primitive in (random_wrap_p, random_unwrap_p):
    jvp_rules.register(_primitive, nondifferentiable("keys and their words are not real numbers"))


# -- types ---------------------------------------------------------------------------------------------------------


def _keys(name: str, aval: ShapedArray) -> PRNGImpl:
    if not is_key_dtype(aval.dtype):
        raise TypeError(f"{name} takes an array of keys, got {aval.str_short()}; corejax.random.key(0) is one")
    return generator_of(aval.dtype)


@abstract_eval_rules.register(random_seed_p)
def random_seed_type(seeds: ShapedArray, *, impl: str) -> ShapedArray:
    """Return the type of a key for each integer."""
    if not dtypes.is_integer(seeds.dtype):
        raise TypeError(f"random_seed takes integers, got {seeds.str_short()}")
    return ShapedArray(seeds.shape, dtype_of(by_name(impl, "random_seed")))


@abstract_eval_rules.register(random_wrap_p)
def random_wrap_type(words: ShapedArray, *, impl: str) -> ShapedArray:
    """Remove the axes of the words."""
    generator = by_name(impl, "random_wrap")
    ndim = len(generator.key_shape)
    if words.dtype != UINT32 or words.shape[-ndim:] != generator.key_shape:
        inner = ",".join(map(str, generator.key_shape))
        raise TypeError(f"random_wrap: words of {generator.name} must be u32[...,{inner}], got {words.str_short()}")
    return ShapedArray(words.shape[:-ndim], dtype_of(generator))


@abstract_eval_rules.register(random_unwrap_p)
def random_unwrap_type(keys: ShapedArray) -> ShapedArray:
    """Return the type of the words."""
    _keys("random_unwrap", keys)
    return keys.parts()[0]


@abstract_eval_rules.register(random_split_p)
def random_split_type(keys: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    """Append the shape to the shape of the keys."""
    _keys("random_split", keys)
    return ShapedArray(keys.shape + shape, keys.dtype)


@abstract_eval_rules.register(random_bits_p)
def random_bits_type(keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...]) -> ShapedArray:
    """Append the shape to the shape of the keys."""
    _keys("random_bits", keys)
    if bit_width not in UINTS:
        raise TypeError(f"random_bits: bit_width must be 8, 16, 32 or 64, got {bit_width!r}")
    return ShapedArray(keys.shape + shape, UINTS[bit_width])


@abstract_eval_rules.register(random_fold_in_p)
def random_fold_in_type(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    """Broadcast the shapes of the operands."""
    _keys("random_fold_in", keys)
    if data.dtype != UINT32:
        raise TypeError(f"random_fold_in: data must be uint32, got {data.str_short()}")
    return ShapedArray(lax.broadcast_shapes(keys.shape, data.shape), keys.dtype)


@abstract_eval_rules.register(random_clone_p)
def random_clone_type(keys: ShapedArray) -> ShapedArray:
    """Return the type of the keys."""
    _keys("random_clone", keys)
    return keys


# -- evaluation ----------------------------------------------------------------------------------------------------


def words_of(keys: Any) -> Any:
    """Return the words of keys; for one key from its bytes, which is faster than a view."""
    return numbers_of(keys) if keys.ndim else np.frombuffer(keys.tobytes(), UINT32)


def _by_decomposition(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    return host_value(impl_rules.derived(primitive)(*operands, **params))


def as_keys(words: Any, dtype: Any) -> Any:
    """View an array of words as keys, or copy it if it is not contiguous."""
    return words.view(dtype).reshape(words.shape[:-1]) if words.flags.c_contiguous else from_numbers(words, dtype)


@impl_rules.register(random_wrap_p)
def random_wrap_impl(words: Any, *, impl: str) -> Any:
    """View the words as keys."""
    return from_numbers(words, dtype_of(by_name(impl, "random_wrap")))


@impl_rules.register(random_unwrap_p)
def random_unwrap_impl(keys: Any) -> Any:
    """View the keys as words."""
    return numbers_of(keys)


@impl_rules.register(random_clone_p)
def random_clone_impl(keys: Any) -> Any:
    """Return the keys; evaluation puts them into a new array that aliases their memory."""
    return keys


def _is_one_threefry_key(avals: Any) -> bool:
    """Return whether the first operand is one Threefry key, for which host code can be generated."""
    return not avals[0].shape and generator_of(avals[0].dtype) is THREEFRY


def _split_prepared(avals: Any, *, shape: tuple[int, ...]) -> HostCode | None:
    if not _is_one_threefry_key(avals):
        return None
    return HostCode("{out} = {keys}({0}.tobytes())", keys=keys_of_one_key(shape, avals[0].dtype))


def _bits_prepared(avals: Any, *, bit_width: int, shape: tuple[int, ...]) -> HostCode | None:
    if not _is_one_threefry_key(avals):
        return None
    return HostCode("{out} = {bits}({0}.tobytes())", bits=bits_of_one_key(bit_width, shape))


@impl_rules.register(random_seed_p)
def random_seed_impl(seeds: Any, *, impl: str) -> Any:
    """Create keys by the generator's function for the host."""
    generator = by_name(impl, "random_seed")
    if generator.on_host is None or generator.on_host.seed is None:
        return _by_decomposition(random_seed_p, seeds, impl=impl)
    return as_keys(generator.on_host.seed(seeds), dtype_of(generator))


@impl_rules.register(random_split_p, prepared=_split_prepared)
def random_split_impl(keys: Any, *, shape: tuple[int, ...]) -> Any:
    """Split by the generator's function for the host."""
    host = generator_of(keys.dtype).on_host
    if host is None:
        return _by_decomposition(random_split_p, keys, shape=shape)
    return as_keys(host.split(words_of(keys), shape), keys.dtype)


@impl_rules.register(random_bits_p, prepared=_bits_prepared)
def random_bits_impl(keys: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Generate bits by the generator's function for the host."""
    host = generator_of(keys.dtype).on_host
    if host is None:
        return _by_decomposition(random_bits_p, keys, bit_width=bit_width, shape=shape)
    return host.random_bits(words_of(keys), bit_width, shape)


@impl_rules.register(random_fold_in_p)
def random_fold_in_impl(keys: Any, data: Any) -> Any:
    """Derive keys by the generator's function for the host."""
    host = generator_of(keys.dtype).on_host
    if host is None:
        return _by_decomposition(random_fold_in_p, keys, data)
    return as_keys(host.fold_in(words_of(keys), data), keys.dtype)


# -- the rest ------------------------------------------------------------------------------------------------------


@vmap_rules.register(random_wrap_p)
def random_wrap_vmap(axis_size: int, vals: Any, dims: Any, *, impl: str) -> tuple[Any, int]:
    """Move the batch axis to the front."""
    return random_wrap_p.bind(move_batch_axis(axis_size, dims[0], 0, vals[0]), impl=impl), 0


@physical_rules.register(random_wrap_p)
def random_wrap_numbers(avals: Any, words: Any, *, impl: str) -> Any:
    """Return the words."""
    return words


@physical_rules.register(random_unwrap_p)
def random_unwrap_numbers(avals: Any, words: Any) -> Any:
    """Return the words."""
    return words
