"""Draws that come again: what a function found out of its arguments is kept, and done with the next key at once.

    as_draw : (key, *arguments -> array) -> (key, *arguments -> array)

A first call with numbers, shapes, dtypes and arrays behind the key checks them and draws (`drawing.draw`). If the draw
is the result, later calls with the same numbers, shapes and dtypes are the same draw with other arrays: the same
program where it is compiled; else one that is recorded (`remembered`), in which what depends on numbers alone is known.
Values of arrays that a function may refuse are looked at each time.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from corejax.extend import Array, config, remembered
from corejax.extend.messages import clears_cache, frames_left_out
from corejax_random.generators.lookup import default_generator
from corejax_random.generators.table import is_key_dtype
from corejax_random.keys.primitives import random_wrap_p

F = TypeVar("F", bound=Callable[..., Any])

_LIMIT = 1024  # calls
_PLAIN = frozenset({int, bool, str, type(None)})
_Calls = dict[Any, Callable[..., Any]]
_by_settings: dict[Any, _Calls] = {}
_calls: _Calls | None = None  # with the settings in force; None where these have changed


class Draw(NamedTuple):
    """One draw: its result, the function of a key and operands that gave it, these, and whether that runs as it is."""

    out: Any
    run: Callable[..., Any]
    operands: tuple[Any, ...]
    as_it_is: bool


class _Recording(threading.local):
    draws: list[Draw] | None = None  # of the call that is looked at
    checks: list[tuple[Any, Callable[[Any], bool]]] | None = None  # arrays, and what refuses their values


_recording = _Recording()


def note(out: Any, run: Callable[..., Any], operands: tuple[Any, ...], *, as_it_is: bool) -> Any:
    """The result of a draw, noted for the call that it is part of."""
    if _recording.draws is not None:
        _recording.draws.append(Draw(out, run, operands, as_it_is))
    return out


def refused(array: Any, refuses: Callable[[Any], bool]) -> bool:
    """Whether the values of an array are refused; noted, for others are to be looked at again."""
    if _recording.checks is not None:
        _recording.checks.append((array, refuses))
    return refuses(array)


def as_draw(fun: F) -> F:
    """Decorate a function that draws with its first argument; `api_boundary` of such functions."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            arrays: list[Any] = []
            described = _described(fun, args, kwargs, arrays)
            if described is not None:
                calls = _calls
                if calls is None:
                    calls = _calls_with_settings()
                found = calls.get(described)
                if found is None:
                    return _looked_at(fun, args, kwargs, arrays, described, calls)
                out = found(*arrays)
                if out is not None:
                    return out
            return fun(*args, **kwargs)
        except frames_left_out():
            raise

    return cast(F, call)


def _described(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: list[Any]) -> tuple[Any, ...] | None:
    """What tells a call from others with the same settings, values of arrays apart, which are listed; or None."""
    if not args or type(args[0]) is not Array:
        return None
    found = [fun]
    given = args
    if kwargs:
        given = (*args, *kwargs.values())
        found.append(tuple(kwargs))
    for x in given:
        kind = type(x)
        if kind is Array:
            found.append(x.aval)
            arrays.append(x)
        elif kind is tuple:
            for n in x:
                if type(n) is not int:
                    return None
            found.append(x)
        elif kind is float:
            found.append(x.hex())  # -0.0 is another one than 0.0
        elif kind in _PLAIN or isinstance(x, type | np.dtype):
            found.append(kind)
            found.append(x)
        else:
            return None
    return tuple(found)


def _looked_at(
    fun: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arrays: list[Any],
    described: tuple[Any, ...],
    calls: _Calls,
) -> Any:
    """The result of a call, which is kept if it is one draw, of this key, these arrays and nothing else."""
    recording = _recording
    previous = recording.draws, recording.checks
    recording.draws, recording.checks = draws, checks = [], []
    try:
        out = fun(*args, **kwargs)
    finally:
        recording.draws, recording.checks = previous
    if len(draws) == 1 and draws[0].out is out and type(out) is Array:
        again = _again(arrays, draws[0], checks)
        if again is not None:
            if len(calls) >= _LIMIT:
                calls.clear()
            calls[described] = again
    return out


def _again(arrays: list[Any], draw: Draw, checks: list[Any]) -> Callable[..., Any] | None:
    """The draw as a function of another key, typed or raw, and arrays; None where it is of something else."""
    key, *given = map(id, arrays)
    operands = [(given.index(id(x)), None) if id(x) in given else (None, x) for x in draw.operands]
    if len({i for i, _ in operands if i is not None}) < len(given) or len(set(given)) < len(given) or key in given:
        return None  # an array is converted, say
    body, wrap = draw.run, None
    if not is_key_dtype(arrays[0].dtype):
        if config.legacy_prng_key != "allow" or config.enable_custom_prng:
            return None  # who is warned each time
        wrap = default_generator().name

    def run(key: Any, *arrays: Any) -> Any:
        if wrap is not None:
            key = random_wrap_p.bind(key, impl=wrap)
        return body(key, *[x if i is None else arrays[i] for i, x in operands])

    found = run if draw.as_it_is else remembered(run)
    refusing = [(1 + given.index(id(x)), refuses) for x, refuses in checks if id(x) in given]
    if not refusing:
        return found

    def checked(*arrays: Any) -> Any:
        return None if any(refuses(arrays[i]) for i, refuses in refusing) else found(*arrays)

    return checked


def _calls_with_settings() -> _Calls:
    """What is kept of calls with the settings in force, also where these come back."""
    global _calls
    if len(_by_settings) >= 16:
        _by_settings.clear()
    try:
        calls = _by_settings.setdefault(tuple(config.values().values()), {})
    except TypeError:  # a plugin's, that has no hash
        calls = {}
    _calls = calls
    return calls


@clears_cache
def _forget() -> None:
    _by_settings.clear()
    _follow_settings()


def _follow_settings() -> None:
    global _calls
    _calls = None


config.changed.connect(_follow_settings)
