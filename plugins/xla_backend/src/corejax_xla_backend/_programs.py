"""Programs compiled and run by a backend, whichever it is: each compiled once, and kept with the program."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from corejax.extend import (
    Array,
    Backend,
    BackendError,
    ClosedJaxpr,
    Executable,
    Jaxpr,
    ShapedArray,
    backends,
    buffer_of,
    clears_cache,
    config,
    observe,
    subjaxprs,
)
from corejax_xla_backend._live import LiveSet

_programs: LiveSet[ClosedJaxpr] = LiveSet()  # those with an executable in their memo


def compiled(closed: ClosedJaxpr, name: str, backend: Backend, platform: str | None) -> Executable:
    """The program's executable; compiled at the first call, by one thread while others that ask for it wait.

    Raises:
        BackendError: the backend lacks a dtype of the program's.
    """
    key = ("executable", backend, platform, config.rule_overrides)  # which rules it was translated by
    found = closed.memo.get(key)
    if found is None:
        # Reentrant, and of one program only: rules that run meanwhile may compile, and wait for threads that compile.
        with closed.memo.setdefault(("compiling", *key), threading.RLock()):
            try:
                found = closed.memo.get(key)
                if found is None:
                    found = closed.memo[key] = _compile(closed, name, backend, platform)
                    _programs.add(closed)
            finally:
                closed.memo.pop(("compiling", *key), None)
    return found  # type: ignore[no-any-return]


def run(
    executable: Executable, backend: Backend, arrays: Sequence[Array], out_avals: Sequence[ShapedArray]
) -> list[Array]:
    """Run on arrays, wherever they are; the results are computed when they are read."""
    outs = executable.run([buffer_of(x, backend) for x in arrays])
    return [Array(buffer, aval) for buffer, aval in zip(outs, out_avals, strict=True)]


def execute(closed: ClosedJaxpr, args: Sequence[Array], name: str, backend: str | None) -> list[Array]:
    """Compile a program if need be, and run it: by the backend of the program around it, if one runs."""
    found, platform = backends.inside(backend)
    return run(compiled(closed, name, found, platform), found, args, closed.out_avals)


def _compile(closed: ClosedJaxpr, name: str, backend: Backend, platform: str | None) -> Executable:
    started = time.perf_counter()
    _check_dtypes(closed, name, backend)
    executable = backend.compile(closed, name=name, platform=platform)
    if observe.observed():
        where = backend.devices(platform)[0].platform
        _report(closed, name, where, 1000 * (time.perf_counter() - started))
    return executable


def _check_dtypes(closed: ClosedJaxpr, name: str, backend: Backend) -> None:
    known = backend.capabilities.dtypes
    if known is not None:
        for aval in _avals(closed.jaxpr):
            if aval.dtype.name not in known:
                raise BackendError(
                    f"backend {backend.name!r} has no dtype {aval.dtype.name}, which the program {name!r} has "
                    f"({aval.str_short()}); it has {', '.join(sorted(known))}"
                )


def _avals(jaxpr: Jaxpr) -> Iterator[ShapedArray]:
    yield from (v.aval for v in (*jaxpr.constvars, *jaxpr.invars))
    for eqn in jaxpr.eqns:
        yield from (v.aval for v in eqn.outvars)
        for inner in subjaxprs(eqn.params):
            yield from _avals(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner)


def _report(closed: ClosedJaxpr, name: str, platform: str, ms: float) -> None:
    """Tell observers of a compilation."""
    elsewhere = any(_is_executable(key) for key in closed.memo)
    why = f"first run on platform {platform!r}" if elsewhere else "first run of this program"
    facts = {"platform": platform, "equations": len(closed.jaxpr.eqns)}
    observe.notify(observe.Event("compile", name, (why,), ms, facts))


@clears_cache
def _clear_executables() -> None:
    for closed in _programs:
        for key in list(closed.memo):
            if _is_executable(key):
                closed.memo.pop(key, None)


def _is_executable(key: Any) -> bool:
    return isinstance(key, tuple) and key[:1] == ("executable",)
