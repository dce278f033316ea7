"""The table of generators: `PRNGImpl`, which defines a generator by four functions, and the registry.

    seed        : i[] -> u32[*k]
    fold_in     : (u32[*k], u32[]) -> u32[*k]
    split       : (u32[*k], shape) -> u32[*shape,*k]
    random_bits : (u32[*k], bit_width, shape) -> uint[*shape]

where k is the generator's `key_shape`. The functions use `corejax.numpy` or `corejax.lax` and take one key; they are
mapped over arrays of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import dtypes

UINTS = {bits: np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}


class HostFunctions(NamedTuple):
    """A generator's functions for NumPy arrays of key words with any leading axes, for eager use.

    Attributes:
        split: `(words, shape) -> words`.
        random_bits: `(words, bit_width, shape) -> array`.
        fold_in: `(words, data) -> words`, where data broadcasts to the leading axes.
        seed: `integers -> words`, of any shape; None to use the traced function.
    """

    split: Callable[..., Any]
    random_bits: Callable[..., Any]
    fold_in: Callable[..., Any]
    seed: Callable[..., Any] | None = None


class PRNGImpl(NamedTuple):
    """A generator: the shape of its keys, in words of 32 bits, and functions of one key.

    Attributes:
        key_shape: shape of a key's words.
        seed: `seed(integer scalar) -> words`.
        split: `split(words, shape) -> words of shape (*shape, *key_shape)`.
        random_bits: `random_bits(words, bit_width, shape) -> unsigned integers of 8, 16, 32 or 64 bits`.
        fold_in: `fold_in(words, uint32 scalar) -> words`.
        name: name for `key(seed, impl=name)`.
        tag: part of the name of the keys' dtype, `key<tag>`.
        on_host: faster functions for NumPy arrays, for eager use, or None.
    """

    key_shape: tuple[int, ...]
    seed: Callable[..., Any]
    split: Callable[..., Any]
    random_bits: Callable[..., Any]
    fold_in: Callable[..., Any]
    name: str = "<unnamed>"
    tag: str = "?"
    on_host: HostFunctions | None = None

    def __hash__(self) -> int:
        return hash(self.tag)

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"PRNGImpl({self.name!r}, key_shape={self.key_shape}, tag={self.tag!r})"


class PRNGSpec(NamedTuple):
    """A generator that is not in the table, as `key_impl` returns it."""

    impl: PRNGImpl

    def __repr__(self) -> str:
        return f"PRNGSpec({self.impl.name!r})"

    def __str__(self) -> str:
        return str(self.impl)


_BY_NAME: dict[str, PRNGImpl] = {}
_BY_DTYPE: dict[Any, PRNGImpl] = {}
_DTYPES: dict[str, Any] = {}  # name -> dtype of its keys


def register_generator(impl: PRNGImpl) -> Any:
    """Register a generator, so that `key(seed, impl=impl.name)` creates keys for it.

    Args:
        impl: the generator. Its name and its tag must be unique.

    Returns:
        The dtype of its keys.

    Raises:
        TypeError: if `impl` is not a `PRNGImpl`, or one of its fields has the wrong type.
        ValueError: if another generator has the name or the tag.
    """
    _check(impl)
    for known in _BY_NAME.values():
        if impl.name == known.name or impl.tag == known.tag:
            if tuple(impl) == tuple(known):
                return _DTYPES[impl.name]
            what = f"name {impl.name!r}" if impl.name == known.name else f"tag {impl.tag!r}"
            raise ValueError(f"register_generator: the {what} belongs to {known!r}; choose another one for {impl!r}")
    words = "corejax.random.key_data(keys)"
    kind: Any = dtypes.prng_key  # not `type[...]`: NumPy's stubs declare scalar types abstract
    dtype = dtypes.extended_dtype(f"key<{impl.tag}>", base=np.uint32, shape=impl.key_shape, numbers=words, kind=kind)
    _DTYPES[impl.name] = dtype
    _BY_DTYPE[dtype] = _BY_NAME[impl.name] = impl
    return dtype


def _check(impl: Any) -> None:
    if not isinstance(impl, PRNGImpl):
        raise TypeError(f"register_generator takes a PRNGImpl, got {impl!r} of type {type(impl).__name__}")
    shape = impl.key_shape
    if not isinstance(shape, tuple) or not shape or not all(type(n) is int and n > 0 for n in shape):
        raise TypeError(
            f"register_generator: key_shape of {impl.name!r} must be a tuple of positive integers, got {shape!r}"
        )
    for part in ("seed", "split", "random_bits", "fold_in"):
        if not callable(getattr(impl, part)):
            raise TypeError(
                f"register_generator: {part} of {impl.name!r} must be a function, got {getattr(impl, part)!r}"
            )
    for part in ("name", "tag"):
        text = getattr(impl, part)
        if not isinstance(text, str) or not text.isidentifier():
            raise TypeError(f"register_generator: the {part} of a generator must be an identifier, got {text!r}")


def is_key_dtype(dtype: Any) -> bool:
    """Return whether a dtype is the dtype of keys of a registered generator."""
    return dtype in _BY_DTYPE


def generator_of(dtype: Any) -> PRNGImpl:
    """Return the generator for keys of a dtype."""
    return _BY_DTYPE[dtype]


def dtype_of(impl: PRNGImpl) -> Any:
    """Return the dtype of a generator's keys."""
    return _DTYPES[impl.name]


def known_generators() -> Mapping[str, PRNGImpl]:
    """Return the registered generators by name."""
    return _BY_NAME
