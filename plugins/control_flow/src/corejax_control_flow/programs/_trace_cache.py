"""Traced functions, kept for the next time: a function that is called again on the same types is not traced again.

A kept program stands for its function as long as everything that the function reads is what it was. Two kinds of
functions are traced each time: those that read lists and objects, or of which it is not known what they read; and those
whose program has constants, which are arrays, or tracers of a transformation around the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import (
    Primitive,
    axes_in_scope,
    clears_cache,
    config,
    drop_oldest,
    same_state,
    state_of,
)

_LIMIT = 256  # programs kept
_MOST_BYTES = 64  # of arrays that a function reads, scalars say: what is kept outlives functions

_kept: dict[Any, tuple[list[Any], Any]] = {}
clears_cache(_kept.clear)


def _state(fun: Callable[..., Any]) -> list[Any] | None:
    return state_of(fun, most_bytes=_MOST_BYTES, objects=False, constants=(Primitive,))


def recorded(fun: Callable[..., Any], key: tuple[Any, ...], record: Callable[[], Any]) -> Any:
    """The result of `record`, or its earlier result for the same function and key.

    Args:
        fun: the function that is traced.
        key: what the program depends on beside the function: how it is traced, and on which types.
        record: traces it; its result has the attribute `consts`.
    """
    before = _state(fun)
    if before is None:
        return record()
    key = (getattr(fun, "__code__", None), *key, config.trace_key(), axes_in_scope())
    try:
        found = _kept.get(key)
    except TypeError:  # a structure with metadata that cannot be hashed
        return record()
    if found is not None and same_state(found[0], before):
        return found[1]
    made = record()
    after = None if made.consts else _state(fun)  # tracing may have changed it
    if after is not None and same_state(before, after):
        _kept[key] = after, made
        drop_oldest(_kept, _LIMIT)
    return made
