"""Execution of draws, and access to the bits and keys of a key.

An eager draw of many numbers runs one compiled program, which is cached by its static arguments. A draw of few numbers,
or under a transformation, runs the operations one by one. Both give the same bits, integers and uniform numbers.
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
from corejax_random.distributions.repeating import record_draw
from corejax_random.keys.arguments import evaluating
from corejax_random.keys.primitives import random_bits_p, random_split_p

_LARGE = 2**28  # size from which the free memory is checked first, for one byte per number
COMPILED = 512  # size from which a compiled program is faster than the operations one by one


def draw(body: Callable[..., Any], size: Any, key: Any, /, *operands: Any, **static: Any) -> Any:
    """Call `body(key, *operands, **static)`, compiled if that is faster.

    Args:
        body: module-level function of a key and operands.
        size: approximate number of numbers to draw.
        key: a typed key.
        *operands: arrays or numbers.
        **static: hashable keyword arguments, for which the program is specialised.
    """
    if type(size) is int and size >= COMPILED and evaluating(key) and (not operands or _concrete(operands)):
        if size >= _LARGE:
            check_memory(size, f"a draw of {size} numbers")
        program = _program(body, static)
        if program is not None:
            run = _program_or_operations(program, body, static)
            return record_draw(program(key, *operands), run, operands, run_directly=True)
    run = functools.partial(body, **static)
    return record_draw(_remembered(body)(key, *operands, **static), run, operands, run_directly=False)


def _program_or_operations(
    program: Callable[..., Any], body: Callable[..., Any], static: dict[str, Any]
) -> Callable[..., Any]:
    """Return a function that runs the program, or the operations if a transformation traces the draw."""

    def run(key: Any, *operands: Any) -> Any:
        return program(key, *operands) if evaluating(key) and _concrete(operands) else body(key, *operands, **static)

    return run


_remembered = functools.cache(remembered)  # one per module-level function


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
    """Return the number of elements of a shape."""
    return math.prod(shape)


def bits(key: Any, bit_width: int, shape: tuple[Any, ...]) -> Any:
    """Generate random unsigned integers with a typed key."""
    return random_bits_p.bind(key, bit_width=bit_width, shape=shape)


def keys(key: Any, num: int = 2) -> Any:
    """Split a typed key into an array of keys."""
    return random_split_p.bind(key, shape=(num,))


def two_keys(key: Any) -> tuple[Any, Any]:
    """Split a typed key into two keys."""
    both = keys(key)
    return both[0], both[1]
