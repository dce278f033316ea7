"""Draws that come again: what a function found out of its arguments is kept, and done with the next key at once.

    as_draw : (key, *numbers -> array) -> (key, *numbers -> array)

A first call with numbers, shapes and dtypes behind the key checks them and draws (`drawing.draw`). If the draw is the
result, later calls with the same arguments are the same draw with another key: the same program where it is compiled;
else one that is recorded (`remembered`), in which what depends on no key is known. Calls with arrays are looked at each
time, for functions may refuse their values.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from corejax.extend import Array, clears_cache, config, frames_left_out, remembered
from corejax_random.generators.lookup import default_generator
from corejax_random.generators.table import is_key_dtype
from corejax_random.keys.primitives import random_wrap_p

F = TypeVar("F", bound=Callable[..., Any])

_LIMIT = 1024  # calls
_PLAIN = frozenset({int, bool, str, type(None)})
_calls: dict[Any, Callable[[Any], Any]] = {}  # with these settings


class Draw(NamedTuple):
    """One draw: what gave which result of a key, and whether that is a program."""

    out: Any
    run: Callable[[Any], Any]
    compiled: bool


class _Recording(threading.local):
    draws: list[Draw] | None = None  # of the call that is looked at


_recording = _Recording()


def note(out: Any, run: Callable[[Any], Any], compiled: bool) -> Any:
    """The result of a draw, noted for the call that it is part of."""
    draws = _recording.draws
    if draws is not None:
        draws.append(Draw(out, run, compiled))
    return out


def as_draw(fun: F) -> F:
    """Decorate a function that draws with its first argument; `api_boundary` of such functions."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            described = _described(fun, args, kwargs)
            if described is None:
                return fun(*args, **kwargs)
            found = _calls.get(described)
            if found is not None:
                return found(args[0])
            return _looked_at(fun, args, kwargs, described)
        except frames_left_out():
            raise

    return cast(F, call)


def _described(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """What tells a call from others with the same settings, the key's value apart; None where arrays are given."""
    if not args or type(args[0]) is not Array:
        return None
    found = [fun, args[0].aval]
    for x in args[1:]:
        if not _describe(x, found):
            return None
    for name, x in kwargs.items():
        found.append(name)
        if not _describe(x, found):
            return None
    return tuple(found)


def _describe(x: Any, found: list[Any]) -> bool:
    kind = type(x)
    if kind is tuple:
        for n in x:
            if type(n) is not int:
                return False
        found.append(x)
    elif kind is float:
        found.append(x.hex())  # -0.0 is another one than 0.0
    elif kind in _PLAIN or isinstance(x, type | np.dtype):
        found.append(kind)
        found.append(x)
    else:
        return False
    return True


def _looked_at(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], described: tuple[Any, ...]) -> Any:
    """The result of a call, which is kept if it is one draw, of this key and nothing else."""
    calls, previous = _calls, _recording.draws
    _recording.draws = draws = []
    try:
        out = fun(*args, **kwargs)
    finally:
        _recording.draws = previous
    if len(draws) == 1 and draws[0].out is out and type(out) is Array:
        again = _again(fun, args[0], draws[0])
        if again is not None:
            if len(calls) >= _LIMIT:
                calls.clear()
            calls[described] = again
    return out


def _again(fun: Any, key: Any, draw: Draw) -> Callable[[Any], Any] | None:
    """The draw as a function of another key, typed or raw."""
    run = draw.run
    if not is_key_dtype(key.dtype):
        if config.legacy_prng_key != "allow" or config.enable_custom_prng:
            return None  # who is warned each time
        name, typed = default_generator().name, run

        def run(words: Any) -> Any:
            return typed(random_wrap_p.bind(words, impl=name))

    return run if draw.compiled else remembered(run)


@clears_cache
def _forget() -> None:
    global _calls
    _calls = {}


config.on_change.append(_forget)
