"""Compilation and runs of programs by any backend, and evaluation by the eager rules in the first tier of `jit`.

The cache of executables is the program's own memo: an executable lives as long as its program. The key has the backend,
the device, the options and the rule overrides, which together determine the executable.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    Backend,
    BackendError,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    config,
    eval_jaxpr_on_host,
    host_value,
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
from corejax.extend.messages import Changed, clears_cache, observe, run_within
from corejax.extend.programs import programs_of
from corejax.extend.speed import Layer, evaluation, set_layer
from corejax.extend.types import Packed
from corejax_xla_backend._live import LiveSet
from corejax_xla_backend._log import is_observed, report
from corejax_xla_backend._parts import flat_avals, flat_options, flat_program, stored_arrays, values_stored_in
from corejax_xla_backend._progress import compilation
from corejax_xla_backend._several_devices import place_program

_programs: LiveSet[ClosedJaxpr] = LiveSet()  # programs with an executable in their memo


def compiled(
    closed: ClosedJaxpr, name: str, target: Target, options: CompileOptions = DEFAULT_OPTIONS, device: Any = None
) -> Executable:
    """Return a program's executable; one thread compiles it at the first call while other threads wait.

    Args:
        closed: the program.
        name: its name, for messages and reports.
        target: the backend and the platform.
        options: the compile options. The executable is for the device that they name.
        device: the device of the arguments, if the options name none; by default the backend's default device.

    Raises:
        BackendError: the backend does not support a dtype of the program, or an option.
    """
    backend, platform = target
    if options.device is not None:
        device = options.device
    elif options.devices:
        device = options.devices[0]
    elif device is None:
        device = backend.default_device(platform)
    key = ("executable", backend, platform, device, options, config.rule_overrides)  # overrides choose the translations
    executable = closed.memo.get(key)
    if executable is None:
        # The lock is reentrant and for one program only, because translation rules may compile other programs, and
        # wait for threads that compile.
        with closed.memo.setdefault(("compiling", *key), threading.RLock()):
            try:
                executable = closed.memo.get(key)
                if executable is None:
                    executable = closed.memo[key] = _compile(closed, name, target, options, device)
                    _programs.add(closed)
            finally:
                closed.memo.pop(("compiling", *key), None)
    return executable


def share_compiled(source: ClosedJaxpr, closed: ClosedJaxpr) -> None:
    """Add the executables of an equal program, `source`, to a program."""
    executables = {key: x for key, x in list(source.memo.items()) if _is_executable(key)}
    if executables:
        closed.memo.update(executables)
        _programs.add(closed)


def run(
    executable: Executable, backend: Backend, arrays: Sequence[Array], out_avals: Sequence[ShapedArray]
) -> list[Array]:
    """Run an executable on arrays, which are moved if necessary; the results may still be computing."""
    types = flat_avals(out_avals)
    outs = run_by(backend, executable, [buffer_of(x, backend) for x in stored_arrays(arrays)], types)
    results = [Array(buffer, aval) for buffer, aval in zip(outs, types, strict=True)]
    return values_stored_in(out_avals, results)


def run_where_they_are(
    closed: ClosedJaxpr, arrays: Sequence[Array], name: str, target: Target, options: CompileOptions = DEFAULT_OPTIONS
) -> tuple[list[Array], Executable]:
    """Compile a program for its arguments' devices and run it; return the results and the executable."""
    options, device = place_program(closed, name, target.backend, options, arrays)
    executable = compiled(closed, name, target, options, device)
    return run(executable, target.backend, arrays, closed.out_avals), executable


def dispatcher_of(closed: ClosedJaxpr, name: str, target: Target) -> Any:
    """Return a program as a function of arrays: a dispatcher, which repeats calls by the arrays' types and devices.

    The program's memo holds the dispatcher, and the dispatcher refers to the program weakly.
    """
    dispatcher = closed.memo.get(("dispatcher", target))
    if dispatcher is None:
        program = weakref.ref(closed)

        def miss(*arrays: Array) -> tuple[list[Array], RepeatableCall]:
            closed = program()
            assert closed is not None
            outs, executable = run_where_they_are(closed, arrays, name, target)
            return outs, RepeatableCall(executable, [], arrays, {}, outs)

        dispatcher = closed.memo["dispatcher", target] = target.backend.dispatcher(name, miss)
    return dispatcher


# -- evaluation by the eager rules -------------------------------------------------------------------------------------


class _State(threading.local):
    interpreting = False
    is_stale: Callable[[], bool] | None = None  # whether the results of the program are no longer wanted


class _Abandoned(BaseException):
    """Ends the evaluation of a program whose results are no longer wanted; no rule catches it."""


_state = _State()


def interpreting() -> bool:
    """Return whether this thread evaluates a program by the eager rules, so that inner programs are not compiled."""
    return _state.interpreting


def interpret(closed: ClosedJaxpr, arrays: Sequence[Array]) -> list[Any]:
    """Return the results of a program, computed by the eager rules."""
    outs = run_within((Changed(_state, "interpreting", True),), _interpret, closed, arrays)
    return [
        out if type(out) is Packed else Array(np.array(out, aval.dtype), aval)
        for out, aval in zip(outs, closed.out_avals, strict=True)
    ]


def _interpret(closed: ClosedJaxpr, arrays: Sequence[Array]) -> list[Any]:
    with np.errstate(all="ignore"):  # as compiled programs do
        return eval_jaxpr_on_host(closed, list(map(host_value, arrays)))


def interpret_unless(is_stale: Callable[[], bool], closed: ClosedJaxpr, arrays: Sequence[Array]) -> list[Array] | None:
    """Return what `interpret` returns, or None as soon as `is_stale` returns True.

    `is_stale` is called before each equation of the program and of the programs inside it, a loop's body for instance.
    """
    set_layer("abandon", _ABANDON)
    try:
        return run_within((Changed(_state, "is_stale", is_stale),), interpret, closed, arrays)
    except _Abandoned:
        return None


def _abandonable(below: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def run(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
        if _state.is_stale is None:
            return below(jaxpr, values)
        return evaluation.run_program(jaxpr, values, _evaluate_unless_stale)

    return run


def _evaluate_unless_stale(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    if _state.is_stale is not None and _state.is_stale():
        raise _Abandoned
    return evaluation.evaluate_equation(eqn, operands)


_ABANDON = Layer(lambda below: below, _abandonable)


# -- compilation -------------------------------------------------------------------------------------------------------


def _compile(closed: ClosedJaxpr, name: str, target: Target, options: CompileOptions, device: Any) -> Executable:
    """Compile a program and report the compilation."""
    started = time.perf_counter()
    backend, platform = target
    logical, closed = closed, flat_program(closed)
    if closed is not logical:
        options = flat_options(options, logical)
    _check_dtypes(closed, name, backend)
    if not options.devices and device != backend.default_device(platform):
        options = options._replace(device=device)
    more = known_options(options, name, backend)
    with compilation(name):
        executable = compiled_by(backend, closed, name=name, platform=platform, **more)
    origin = getattr(executable, "origin", "")  # an attribute of backends that cache programs
    report_compilation(logical, name, device.platform, 1000 * (time.perf_counter() - started), origin)
    return executable


def known_options(options: CompileOptions, name: str, backend: Backend) -> dict[str, CompileOptions]:
    """Return the keyword argument `options` for a backend's `compile` and `lower`; {} if all options have defaults.

    Raises:
        BackendError: the backend does not support an option. (It may ignore the hints `donated` and `known`.)
    """
    supported = backend.capabilities.options
    unused: dict[str, Any] = {hint: () for hint in ("donated", "known") if hint not in supported}
    options = options._replace(**unused)
    chosen = [field for field, value in options._asdict().items() if value]
    for field in chosen:
        if field not in supported:
            words = {"device": "a device", "binds": "a device", "keep_unused": field, "flags": "compiler_options"}
            word = words.get(field, "several devices")
            raise BackendError(f"jit of {name}: backend {backend.name!r} does not support the choice of {word}")
    return {"options": options} if chosen else {}


def _check_dtypes(closed: ClosedJaxpr, name: str, backend: Backend) -> None:
    """Raise BackendError if the backend does not support a dtype of the program."""
    known = backend.capabilities.dtypes
    if known is not None:
        for aval in _avals(closed.jaxpr):
            if aval.dtype.name not in known:
                raise BackendError(
                    f"backend {backend.name!r} has no dtype {aval.dtype.name}, which the program {name!r} uses "
                    f"({aval.str_short()}); the backend has {', '.join(sorted(known))}"
                )


def _avals(jaxpr: Jaxpr) -> Iterator[ShapedArray]:
    """Yield the types of the arrays that store the variables of a program and its inner programs."""
    for program in programs_of(jaxpr):
        variables = (*program.constvars, *program.invars, *(v for eqn in program.eqns for v in eqn.outvars))
        yield from flat_avals(v.aval for v in variables)


def report_compilation(closed: ClosedJaxpr, name: str, platform: str, ms: float, origin: str) -> None:
    """Report a compilation to the observers and the log."""
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
