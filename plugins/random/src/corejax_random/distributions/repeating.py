"""A cache of draws: a repeated call skips the checks of its arguments and runs the recorded draw.

    as_draw : (key, *arguments -> array) -> (key, *arguments -> array)

The first call of a function with certain numbers, shapes and dtypes checks its arguments and draws (`drawing.draw`). If
the result is exactly one draw, the draw is cached. Later calls with equal numbers, shapes and dtypes run it with their
arrays: the compiled program, or a recording of the operations (`remembered`) in which values that depend only on
numbers are constants. The cache key has all that the checks depend on, except values of arrays. Checks of such values
are recorded as well, and a cached draw runs them at each call.
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

_LIMIT = 1024  # size of the cache for one set of settings
_PLAIN = frozenset({int, bool, str, type(None)})
_Calls = dict[Any, Callable[..., Any]]
_by_settings: dict[Any, _Calls] = {}
_calls: _Calls | None = None  # the cache for the current settings; None after the settings have changed


class Draw(NamedTuple):
    """One draw.

    Attributes:
        out: its result.
        run: the function of a key and operands that drew it.
        operands: the operands.
        run_directly: if True, `run` is fast enough; if False, a recording of `run` is faster.
    """

    out: Any
    run: Callable[..., Any]
    operands: tuple[Any, ...]
    run_directly: bool


class _Recording(threading.local):
    draws: list[Draw] | None = None  # draws of the call that is being recorded
    checks: list[tuple[Any, Callable[[Any], bool]]] | None = None  # its arrays, and predicates that refuse values


_recording = _Recording()


def record_draw(out: Any, run: Callable[..., Any], operands: tuple[Any, ...], *, run_directly: bool) -> Any:
    """Return the result of a draw, and record the draw if the call is being recorded."""
    if _recording.draws is not None:
        _recording.draws.append(Draw(out, run, operands, run_directly))
    return out


def is_refused(array: Any, refuses: Callable[[Any], bool]) -> bool:
    """Return `refuses(array)`, and record the check, so that later calls apply it to their arrays."""
    if _recording.checks is not None:
        _recording.checks.append((array, refuses))
    return refuses(array)


def as_draw(fun: F) -> F:
    """Decorate a public function that draws with its first argument, so that repeated draws are cached.

    The decorator also serves as the `api_boundary` of such functions.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            arrays: list[Any] = []
            cache_key = _cache_key(fun, args, kwargs, arrays)
            if cache_key is not None:
                calls = _calls
                if calls is None:
                    calls = _calls_with_settings()
                cached = calls.get(cache_key)
                if cached is None:
                    return _call_and_cache(fun, args, kwargs, arrays, cache_key, calls)
                out = cached(*arrays)
                if out is not None:
                    return out
            return fun(*args, **kwargs)
        except frames_left_out():
            raise

    return cast(F, call)


def _cache_key(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: list[Any]) -> tuple[Any, ...] | None:
    """Return a key that identifies a call except for values of arrays, which are appended to `arrays`.

    Return None for a call that is not cached.
    """
    if not args or type(args[0]) is not Array:
        return None
    parts = [fun]
    values = args
    if kwargs:
        values = (*args, *kwargs.values())
        parts.append(tuple(kwargs))
    for x in values:
        kind = type(x)
        if kind is Array:
            parts.append(x.aval)
            arrays.append(x)
        elif kind is tuple:
            for n in x:
                if type(n) is not int:
                    return None
            parts.append(x)
        elif kind is float:
            parts.append(x.hex())  # distinguishes -0.0 from 0.0
        elif kind in _PLAIN or isinstance(x, (type, np.dtype)):
            parts.append(kind)
            parts.append(x)
        else:
            return None
    return tuple(parts)


def _call_and_cache(
    fun: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arrays: list[Any],
    cache_key: tuple[Any, ...],
    calls: _Calls,
) -> Any:
    """Call the function, and cache the call if it is one draw with this key and these arrays."""
    recording = _recording
    previous = recording.draws, recording.checks
    draws: list[Draw] = []
    checks: list[tuple[Any, Callable[[Any], bool]]] = []
    recording.draws, recording.checks = draws, checks
    try:
        out = fun(*args, **kwargs)
    finally:
        recording.draws, recording.checks = previous
    if len(draws) == 1 and draws[0].out is out and type(out) is Array:
        cached = _as_function_of_arrays(arrays, draws[0], checks)
        if cached is not None:
            if len(calls) >= _LIMIT:
                calls.clear()
            calls[cache_key] = cached
    return out


def _as_function_of_arrays(arrays: list[Any], draw: Draw, checks: list[Any]) -> Callable[..., Any] | None:
    """Return the draw as a function of a key, typed or raw, and arrays; None if it does not use the arrays directly."""
    key, *ids = map(id, arrays)
    operands = [(ids.index(id(x)), None) if id(x) in ids else (None, x) for x in draw.operands]
    if len({i for i, _ in operands if i is not None}) < len(ids) or len(set(ids)) < len(ids) or key in ids:
        return None  # for example because an array was converted before the draw
    body, wrap = draw.run, None
    if not is_key_dtype(arrays[0].dtype):
        if config.legacy_prng_key != "allow" or config.enable_custom_prng:
            return None  # each call with a raw key warns or raises an error
        wrap = default_generator().name

    def run(key: Any, *arrays: Any) -> Any:
        if wrap is not None:
            key = random_wrap_p.bind(key, impl=wrap)
        return body(key, *[x if i is None else arrays[i] for i, x in operands])

    repeat = run if draw.run_directly else remembered(run)
    predicates = [(1 + ids.index(id(x)), refuses) for x, refuses in checks if id(x) in ids]
    if not predicates:
        return repeat

    def checked(*arrays: Any) -> Any:
        return None if any(refuses(arrays[i]) for i, refuses in predicates) else repeat(*arrays)

    return checked


def _calls_with_settings() -> _Calls:
    """Return the cache for the current settings, which survives a change to other settings and back."""
    global _calls
    if len(_by_settings) >= 16:
        _by_settings.clear()
    try:
        calls = _by_settings.setdefault(tuple(config.values().values()), {})
    except TypeError:  # a plugin's setting is not hashable
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
