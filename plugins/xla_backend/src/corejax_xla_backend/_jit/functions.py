"""`jit`: a function traced once for each signature of its arguments, and each trace compiled by a backend."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from corejax.extend import BackendError, PluginError, backends
from corejax_xla_backend._jit.callables import CheckedCall, TieredCall, UndispatchedCall, completed
from corejax_xla_backend._jit.donation import DonatingCall
from corejax_xla_backend._jit.jitted import Jitted
from corejax_xla_backend._jit.options import UNSPECIFIED, JitOptions


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    tier: str | None = None,
) -> Any:
    """Compile a function: traced and compiled once for each signature of its arguments.

    Args:
        fun: function of arrays (in pytrees); without it, a decorator.
        in_shardings, out_shardings: where arguments and results are: shardings over one device, or devices, in pytrees
            as the arguments and results are; the program runs there.
        static_argnums: positional arguments that are part of the signature, passed on as they are; hashable.
        static_argnames: the same by keyword. Each is inferred from the other where the signature shows it.
        donate_argnums: positional arguments whose memory the program may take for its results. Arrays of which it does
            are deleted by the call. Where a transformation or another jitted function is running nothing is donated.
        donate_argnames: the same by keyword.
        keep_unused: have the compiled program take arguments that it does not use, too.
        device: the device to run on; by default the one that arguments were put on (`device_put`), else the setting
            `default_device`, else the first one.
        backend: name of the backend to compile by, or of a platform ("cpu", "cuda"); by default the setting
            `backend`, or the first backend there is.
        inline: under a transformation, write the function's equations in place of a call.
        compiler_options: the backend's own options by name; XLA's: `{"xla_cpu_enable_fast_math": True}`.
        tier: "auto" compiles in the background: until the program is there, calls are answered by the eager rules, with
            results of the same types, equal up to rounding. By default a call waits for it.

    Returns:
        The compiled function, with `trace(*args)`, `lower(*args)`, `eval_shape(*args)` and `clear_cache()`.

    Raises:
        TypeError: an argument is not an array and not static, or a static one is not hashable.
        ValueError: the function has no such parameter; an argument is static and donated; or arguments are bound to
            different devices.
    """
    options = JitOptions(
        in_shardings,
        out_shardings,
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        device,
        backend,
        inline,
        compiler_options,
        tier,
    )
    return functools.partial(_again, options=options) if fun is None else _again(fun, options)


def _again(fun: Callable[..., Any], options: JitOptions) -> Any:
    """The compiled function; also how a copy of one is made."""
    if isinstance(fun, staticmethod | classmethod):
        kind = type(fun).__name__
        raise TypeError(f"jit compiles a function, got a {kind}; put @{kind} before @jit")
    if not callable(fun):
        raise TypeError(f"jit compiles a function, got {fun!r} of type {type(fun).__name__}")
    if inspect.isgeneratorfunction(fun) or inspect.isasyncgenfunction(fun) or inspect.iscoroutinefunction(fun):
        raise TypeError(
            f"jit compiles a function that returns its value, got the generator or coroutine function {fun!r}"
        )
    return _wrapped(Jitted(fun, options), options)


def _wrapped(jitted: Jitted, options: JitOptions) -> Any:
    """What users hold: the backend's dispatcher itself, with the function's name and the steps of compilation."""
    call = dispatch = _callable(jitted)
    if type(dispatch) is not UndispatchedCall and (jitted.static.numbers or jitted.static.names):
        call = CheckedCall(dispatch, jitted.static.split)
    if jitted.donated:
        call = DonatingCall(call, jitted.name, jitted.donated)
    jitted.live(weakref.ref(dispatch))
    methods = {
        "trace": jitted.trace,
        "lower": jitted.lower,
        "eval_shape": jitted.eval_shape,
        "clear_cache": jitted.clear_cache,
        "_cache_size": lambda: len(jitted.traces),  # jaxlib's own counts what it need not ask for again
    }
    return completed(call, jitted.fun, options, _again, **methods)


def _callable(jitted: Jitted) -> Any:
    if jitted.options.tier == "auto":
        return TieredCall(jitted.name, jitted.miss, lambda: _dispatcher(jitted))
    dispatch = _dispatcher(jitted)
    return UndispatchedCall(jitted.name, jitted.miss) if dispatch is None else dispatch


def _dispatcher(jitted: Jitted) -> Any:
    """The dispatcher of the backend that is to compile, as far as that is known now; None where it has none."""
    try:
        backend, _ = backends.find(jitted.options.backend)
    except (BackendError, PluginError):
        return None  # the first call says it
    if not backend.capabilities.dispatcher:
        return None
    static = jitted.static
    return backend.dispatcher(jitted.name, jitted.miss, static_argnums=static.numbers, static_argnames=static.names)


def xla_computation(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The program of a function in XLA's language, before optimisation: `xla_computation(f)(*args).as_hlo_text()`.

    Args:
        fun: the function.
        options: as `jit` takes them, `static_argnums` say.

    Returns:
        A function of arguments, or of `ShapeDtypeStruct`s, that gives jaxlib's computation.
    """
    lower = jit(fun, **options).lower
    return lambda *args, **kwargs: lower(*args, **kwargs).compiler_ir("hlo")
