"""How draws run, and what they are made of: bits and keys of a key.

Run eagerly, a draw of many numbers is one compiled program, kept by what is static of it; one of few numbers, and
whatever a transformation traces, is the operations themselves. Bits, integers and uniform numbers are the same.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import corejax
from corejax.extend import Array, BackendError, config, remembered
from corejax.extend.devices import check_memory
from corejax.extend.messages import PluginError, clears_cache
from corejax_random.distributions.repeating import note
from corejax_random.keys.arguments import evaluating
from corejax_random.keys.primitives import random_bits_p, random_split_p

_LARGE = 2**28  # from so many numbers on the memory is looked at first, one byte for each
COMPILED = 512  # from so many numbers on a program is faster than the operations one by one


def draw(body: Callable[..., Any], size: Any, key: Any, /, *operands: Any, **static: Any) -> Any:
    """`body(key, *operands, **static)`, compiled where that is faster.

    Args:
        body: a module's function of a key and operands; what is static is hashable.
        size: about how many numbers are drawn.
        key: typed.
        operands: arrays or numbers.
        static: what a program is made for.
    """
    if type(size) is int and size >= COMPILED and evaluating(key) and (not operands or _concrete(operands)):
        if size >= _LARGE:
            check_memory(size, f"a draw of {size} numbers")
        program = _program(body, static)
        if program is not None:
            return note(program(key, *operands), _checked(program, body, static), operands, as_it_is=True)
    run = functools.partial(body, **static)
    return note(_remembered(body)(key, *operands, **static), run, operands, as_it_is=False)


def _checked(program: Callable[..., Any], body: Callable[..., Any], static: dict[str, Any]) -> Callable[..., Any]:
    """The program where nothing traces a draw, the operations elsewhere."""

    def run(key: Any, *operands: Any) -> Any:
        return program(key, *operands) if evaluating(key) and _concrete(operands) else body(key, *operands, **static)

    return run


_remembered = functools.cache(remembered)  # for each of the modules' functions


def _concrete(operands: tuple[Any, ...]) -> bool:
    return all(type(x) in (Array, float, int) for x in operands)


def _program(body: Callable[..., Any], static: dict[str, Any]) -> Callable[..., Any] | None:
    """Return the compiled program, or None if nothing compiles."""
    try:
        return None if config.disable_jit else _compiled(body, **static)
    except (BackendError, PluginError, AttributeError):
        return None


@functools.lru_cache(1024, typed=True)
def _compiled(body: Callable[..., Any], **static: Any) -> Callable[..., Any]:
    run = functools.partial(body, **static)
    return corejax.jit(functools.update_wrapper(run, body))


clears_cache(_compiled.cache_clear)


def size_of(shape: tuple[Any, ...]) -> Any:
    """How many elements."""
    return math.prod(shape)


def bits(key: Any, bit_width: int, shape: tuple[Any, ...]) -> Any:
    """Unsigned integers of a typed key."""
    return random_bits_p.bind(key, bit_width=bit_width, shape=shape)


def keys(key: Any, num: int = 2) -> Any:
    """An array of keys of a typed key."""
    return random_split_p.bind(key, shape=(num,))


def two_keys(key: Any) -> tuple[Any, Any]:
    """Two keys of a typed key."""
    both = keys(key)
    return both[0], both[1]
