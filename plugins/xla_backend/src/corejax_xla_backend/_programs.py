"""Programs compiled and run by a backend, whichever it is: each compiled once, and kept with the program.

Or evaluated by the eager rules, in the first tier of `jit`.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    Backend,
    BackendError,
    ClosedJaxpr,
    Jaxpr,
    ShapedArray,
    config,
    eval_jaxpr_on_host,
)
from corejax.extend.devices import (
    DEFAULT_OPTIONS,
    CompileOptions,
    Executable,
    RepeatableCall,
    Target,
    buffer_of,
    compiled_by,
    run_by,
)
from corejax.extend.messages import clears_cache, observe
from corejax.extend.programs import programs_of
from corejax_xla_backend._live import LiveSet
from corejax_xla_backend._log import is_observed, report
from corejax_xla_backend._physical import physical_program
from corejax_xla_backend._several_devices import place_program

_programs: LiveSet[ClosedJaxpr] = LiveSet()  # those with an executable in their memo


def compiled(
    closed: ClosedJaxpr, name: str, target: Target, options: CompileOptions = DEFAULT_OPTIONS, device: Any = None
) -> Executable:
    """Return the program's executable; one thread compiles it at the first call, while others that ask for it wait.

    It is for the device that the options name, else for `device`, where the arguments are, else for the default one.

    Raises:
        BackendError: the backend lacks a dtype of the program's, or an option.
    """
    backend, platform = target
    if options.device is not None:
        device = options.device
    elif options.devices:
        device = options.devices[0]
    elif device is None:
        device = backend.default_device(platform)
    key = ("executable", backend, platform, device, options, config.rule_overrides)  # which rules it was translated by
    found = closed.memo.get(key)
    if found is None:
        # Reentrant, and of one program only: rules that run meanwhile may compile, and wait for threads that compile.
        with closed.memo.setdefault(("compiling", *key), threading.RLock()):
            try:
                found = closed.memo.get(key)
                if found is None:
                    found = closed.memo[key] = _compile(closed, name, target, options, device)
                    _programs.add(closed)
            finally:
                closed.memo.pop(("compiling", *key), None)
    return found  # type: ignore[no-any-return]


def share_compiled(of: ClosedJaxpr, closed: ClosedJaxpr) -> None:
    """Give a program what another one, which computes the same, was compiled to."""
    found = {key: x for key, x in list(of.memo.items()) if _is_executable(key)}
    if found:
        closed.memo.update(found)
        _programs.add(closed)


def run(
    executable: Executable, backend: Backend, arrays: Sequence[Array], out_avals: Sequence[ShapedArray]
) -> list[Array]:
    """Run on arrays, wherever they are; the results are computed when they are read."""
    outs = run_by(backend, executable, [buffer_of(x, backend) for x in arrays], out_avals)
    return [Array(buffer, aval) for buffer, aval in zip(outs, out_avals, strict=True)]


def run_where_they_are(
    closed: ClosedJaxpr, arrays: Sequence[Array], name: str, target: Target, options: CompileOptions = DEFAULT_OPTIONS
) -> tuple[list[Array], Executable]:
    """The results of a program, compiled for where its arguments are, and what it was compiled to."""
    options, device = place_program(closed, name, target.backend, options, arrays)
    executable = compiled(closed, name, target, options, device)
    return run(executable, target.backend, arrays, closed.out_avals), executable


def dispatcher_of(closed: ClosedJaxpr, name: str, target: Target) -> Any:
    """Return a program as a function of arrays: a dispatcher, which repeats calls by types and places of the arrays.

    The program keeps the dispatcher, which knows the program by a weak reference.
    """
    found = closed.memo.get(("dispatcher", target))
    if found is None:
        program = weakref.ref(closed)

        def miss(*arrays: Array) -> tuple[list[Array], RepeatableCall]:
            closed = program()
            assert closed is not None
            outs, executable = run_where_they_are(closed, arrays, name, target)
            return outs, RepeatableCall(executable, [], arrays, {}, outs)

        found = closed.memo["dispatcher", target] = target.backend.dispatcher(name, miss)
    return found


# -- by the eager rules ------------------------------------------------------------------------------------------------


class _State(threading.local):
    interpreting = False


_state = _State()


def interpreting() -> bool:
    """Whether this thread evaluates a program by the eager rules: programs inside of it are not compiled either."""
    return _state.interpreting


def interpret(closed: ClosedJaxpr, arrays: Sequence[Array]) -> list[Array]:
    """The results of a program by the eager rules."""
    earlier = _state.interpreting
    try:
        try:
            _state.interpreting = True
            with np.errstate(all="ignore"):  # as compiled programs do
                outs = eval_jaxpr_on_host(closed, [np.asarray(x) for x in arrays])
        finally:
            _state.interpreting = earlier
    finally:
        _state.interpreting = earlier  # an interrupt may have arrived in the first one
    return [Array(np.array(out, aval.dtype), aval) for out, aval in zip(outs, closed.out_avals, strict=True)]


# -- compilation -------------------------------------------------------------------------------------------------------


def _compile(closed: ClosedJaxpr, name: str, target: Target, options: CompileOptions, device: Any) -> Executable:
    started = time.perf_counter()
    backend, platform = target
    logical, closed = closed, physical_program(closed)
    _check_dtypes(closed, name, backend)
    if not options.devices and device != backend.default_device(platform):
        options = options._replace(device=device)
    asked = known_options(options, name, backend)
    executable = compiled_by(backend, closed, name=name, platform=platform, **asked)
    origin = getattr(executable, "origin", "")  # of backends that keep programs
    report_compilation(logical, name, device.platform, 1000 * (time.perf_counter() - started), origin)
    return executable


def known_options(options: CompileOptions, name: str, backend: Backend) -> dict[str, CompileOptions]:
    """The argument `options` for a backend's `compile` and `lower`, where there is something to say.

    Raises:
        BackendError: it does not know one of them. (Hints, of donation and known values, it may pass over.)
    """
    known = backend.capabilities.options
    options = options._replace(**{hint: () for hint in ("donated", "known") if hint not in known})
    asked = [field for field, value in options._asdict().items() if value]
    for field in asked:
        if field not in known:
            words = {"device": "a device", "binds": "a device", "keep_unused": field, "flags": "compiler_options"}
            word = words.get(field, "several devices")
            raise BackendError(f"jit of {name}: backend {backend.name!r} takes no choice of {word}")
    return {"options": options} if asked else {}


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
    for program in programs_of(jaxpr):
        variables = (*program.constvars, *program.invars, *(v for eqn in program.eqns for v in eqn.outvars))
        yield from (v.aval for v in variables)


def report_compilation(closed: ClosedJaxpr, name: str, platform: str, ms: float, origin: str) -> None:
    """Tell observers, and the log, of a compilation."""
    if not is_observed():
        return
    elsewhere = any(_is_executable(key) for key in closed.memo)
    why = f"first run on platform {platform!r}" if elsewhere else "first run of this program"
    facts = {"platform": platform, "equations": len(closed.jaxpr.eqns)}
    report(observe.Event("compile", name, (why, origin) if origin else (why,), ms, facts))


@clears_cache
def _clear_executables() -> None:
    for closed in _programs:
        for key in list(closed.memo):
            if _is_executable(key) or (isinstance(key, tuple) and key[:1] == ("dispatcher",)):
                closed.memo.pop(key, None)


def _is_executable(key: Any) -> bool:
    return isinstance(key, tuple) and key[:1] == ("executable",)
