"""`jit`, from a call to its result, on one page.

The idea: a function of arrays does the same operations for all arguments of the same types. So the first call with a
signature takes five steps, each of them a method of `Jitted` or one function that `Jitted.miss` calls:

    signature   arguments -> leaves, and the structure and types of them                  `Jitted._signature`
    trace       the function runs once on tracers -> a jaxpr                              `Jitted._trace`
    lower       jaxpr -> StableHLO, by the translation rules (`_lowering`)                `_programs.compiled`,
    compile     StableHLO -> an executable, by PJRT (`_jaxlib`)                             by the backend
    run         executable, buffers -> results                                            `_programs.run`

and returns a `RepeatableCall`, from which the backend's dispatcher learns. The dispatcher is what users call: C++ that
finds the executable by the types of the arguments, runs it and wraps the results (the fast path, without Python). It
calls `Jitted.miss` for what it does not know: a new signature, a tracer, changed settings, a call inside of a trace
(the miss path). `jit(f).trace(x).lower().compile()` takes the same steps one by one (`stages`).

The invariants: equal signatures have one trace (`traces`), and a program is compiled once for a device and options
(`_programs`). A call under a transformation, in a trace or under a check is never repeated by the dispatcher: it binds
`xla_call`. What is traced, compiled or learned belongs to the `Jitted`, which the dispatcher holds and which knows the
dispatcher by a weak reference, so that all of it is freed with the callable. No lock is held while the user's function
runs.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from corejax.extend import (
    Array,
    ShapedArray,
    Tracer,
    as_array,
    backends,
    bottom_trace,
    check_arguments,
    close_over_consts,
    config,
    current_trace,
    fun_name,
    get_aval,
    inline_closed,
    stage,
    tree,
)
from corejax.extend.devices import DEFAULT_OPTIONS, CompileOptions, Executable, RepeatableCall, Target, checks_values
from corejax.extend.messages import api_boundary, observe
from corejax.extend.transforms import axes_in_scope, in_context
from corejax.extend.types import shaped_abstractify
from corejax_xla_backend._jit.arguments import StaticArguments, StaticKey, check_apart, named_arguments
from corejax_xla_backend._jit.callables import begin_dispatch, let_others_in, make_callable
from corejax_xla_backend._jit.float0_results import ProgramFunction
from corejax_xla_backend._jit.options import UNSPECIFIED, JitOptions, specified
from corejax_xla_backend._jit.stages import Lowered, Traced, Wrapped, places_of_arguments
from corejax_xla_backend._jit.tiers import first_tier
from corejax_xla_backend._jit.trace_reports import reasons, report_trace
from corejax_xla_backend._jit.traces import Signature, TraceCache, TracedProgram, live
from corejax_xla_backend._log import watched_by_anybody
from corejax_xla_backend._programs import compiled, run
from corejax_xla_backend._several_devices import place_at, place_call, place_program
from corejax_xla_backend.sharding_constraint import constrain
from corejax_xla_backend.xla_call import xla_call_p

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    fun: Callable[P, R],
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
) -> Wrapped[P, R]: ...
@overload
def jit(
    fun: None = None,
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
) -> Callable[[Callable[P, R]], Wrapped[P, R]]: ...
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
        tier: "compiled" waits for the compiler in the first call. "auto" compiles in the background; until the program
            is ready, eager evaluation computes the results, of the same types and equal up to rounding. Default: the
            setting `jit_tier`, which is "compiled".

    Returns:
        The compiled function, with `trace(*args)`, `lower(*args)`, `eval_shape(*args)` and `clear_cache()`.

    Raises:
        TypeError: an argument is not an array and not static, or a static one is not hashable.
        ValueError: the function has no such parameter; an argument is static and donated; or arguments are bound to
            different devices.
    """
    options = JitOptions(
        specified(in_shardings),
        specified(out_shardings),
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
    return functools.partial(make_jitted, options=options) if fun is None else make_jitted(fun, options)


def make_jitted(fun: Callable[..., Any], options: JitOptions) -> Any:
    """Return the compiled function; this is also how copies and unpickled ones are made."""
    if isinstance(fun, staticmethod | classmethod):
        kind = type(fun).__name__
        raise TypeError(f"jit: Expected a callable value, got a {kind}; put @{kind} before @jit")
    if not callable(fun):
        raise TypeError(f"jit: Expected a callable value, got {fun!r} of type {type(fun).__name__}")
    if inspect.isgeneratorfunction(fun) or inspect.isasyncgenfunction(fun) or inspect.iscoroutinefunction(fun):
        raise TypeError(
            "jit: Expected a function, got a generator function or the like, which returns no value: "
            f"generator or coroutine function {fun!r}"
        )
    return make_callable(Jitted(fun, options), make_jitted)


class Jitted:
    """A function that `jit` was called on, with its options and its traces.

    Attributes:
        fun, name: the function, and its name.
        options: of `jit`, as given; `compile_options`: what they mean for the compiler, donations apart.
        static, donated: the static and the donated arguments.
        traces: the program for each signature.
        call: a weak reference to what users call.

    Raises:
        TypeError, ValueError: the options do not fit the function, or each other.
    """

    def __init__(self, fun: Callable[..., Any], options: JitOptions) -> None:
        self.fun = fun
        self.name = fun_name(fun)
        self.options = options
        self.compile_options = options.compile_options(fun)
        self.static = StaticArguments(fun, options.static_argnums, options.static_argnames)
        self.donated = named_arguments(fun, "donate", options.donate_argnums, options.donate_argnames)
        check_apart(fun, self.static, self.donated)
        self.traces = TraceCache(fun)
        self.call: Callable[[], Any] = lambda: None
        live.add(self)

    @property
    def tier(self) -> str:
        """The option `tier`, or the setting `jit_tier` of the moment."""
        return self.options.tier or config.jit_tier  # type: ignore[no-any-return]

    # -- the miss path -----------------------------------------------------------------------------

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, RepeatableCall | None]:
        """Run a call that the dispatcher does not know; return the result, and how to repeat the call if it may."""
        if config.disable_jit:
            return self.fun(*args, **kwargs), None
        if observe.observed():
            observe.notify(observe.Event("call", self.name))
        traced, static = self.static.split(args, kwargs)
        leaves, in_tree = tree.tree_flatten(traced)
        check_arguments("jit", self.fun, leaves, lambda: self.static.debug_info(in_tree, static).arg_names())
        program = self._traced(self._signature([get_aval(x) for x in leaves], in_tree, static))
        checked = checks_values() or observe.checking
        if checked:
            self._let_others_in()  # a function that is called back may call this one
        if in_context() or checked or any(isinstance(x, Tracer) for x in (*program.consts, *leaves)):
            return self._bind(program, leaves), None
        consts = [as_array(c) for c in program.consts]
        arrays = [*consts, *map(as_array, leaves)]
        if self.tier == "auto" and (early := self._early(program, arrays)) is not None:
            return tree.tree_unflatten(program.out_tree, early), None
        target = self._target()
        options, device = place_program(
            program.closed, self.name, target.backend, self._compile_options(program), arrays
        )
        executable = compiled(program.closed, self.name, target, options, device)
        if executable.calls_python:
            self._let_others_in()
        outs = run(executable, target.backend, arrays, program.closed.out_avals)
        result = tree.tree_unflatten(program.out_tree, outs)
        return result, RepeatableCall(executable, consts, *traced, result)

    def _signature(self, avals: Sequence[ShapedArray], in_tree: Any, static: StaticKey | None) -> Signature:
        """Return what the trace of a call depends on."""
        avals = self.options.laid_out(self.fun, in_tree, avals)
        return Signature(in_tree, tuple(avals), static, config.trace_key(), axes_in_scope())

    def _traced(self, signature: Signature) -> TracedProgram:
        """Return the trace for a signature, made at its first call."""
        found = self.traces.find(signature)
        if found is None:
            self._let_others_in()
            found = self.traces.trace_once(signature, self._trace)
        return found

    def _trace(self, signature: Signature) -> TracedProgram:
        """Run the function on tracers of the signature's types, and keep the program."""
        started = time.perf_counter()
        debug = self.static.debug_info(signature.in_tree, signature.static)
        why = reasons(signature, self.traces, debug.arg_names, self.static.name_of) if watched_by_anybody() else ()
        flat = ProgramFunction(self.static.closed(signature.static), signature.in_tree, with_kwargs=True)
        jaxpr, consts = stage(self.options.with_results_laid_out(self.fun, flat), signature.avals, debug)
        program = TracedProgram(close_over_consts(jaxpr), consts, signature.in_tree, flat.out_tree)
        program = self.traces.add(signature, program)
        if why:
            ms = 1000 * (time.perf_counter() - started)
            report_trace(self.name, why, ms, signature, kept=self.traces.find(signature) is not None)
        return program

    def _target(self) -> Target:
        """Return the backend that compiles, and the platform."""
        device = self.compile_options.device
        if device is None:
            return backends.find(self.options.backend)
        return Target(backends.of_device(device), device.platform)

    def _compile_options(self, program: TracedProgram) -> CompileOptions:
        """Return the compile options of a program."""
        options, consts = self.compile_options._replace(known=program.known), len(program.consts)
        donated = self.donated.leaves(self.static.numbers, program.in_tree)
        if any(donated):
            options = options._replace(donated=(*[False] * consts, *donated))
        given = self._shardings(program)
        if given is None:
            return options
        ins, outs = given
        devices = next((x.device_tuple for x in (*ins, *outs) if x is not None and x.device_tuple), ())
        return options._replace(
            devices=devices, in_shardings=(*[None] * consts, *ins), out_shardings=tuple(outs), binds=True
        )

    def _shardings(self, program: TracedProgram) -> tuple[list[Any], list[Any]] | None:
        return self.options.shardings(self.fun, program.in_tree, program.out_tree)

    def _bind(self, program: TracedProgram, leaves: Sequence[Any]) -> Any:
        """Apply `xla_call` under the transformations that are running, in place of compiling and running."""
        given = self._shardings(program)
        if given is not None:  # a transformation may change what is argument and result, and shardings with them
            leaves = [constrain(x, sharding) for x, sharding in zip(leaves, given[0], strict=True)]
        operands = [*program.consts, *leaves]
        if self.options.inline and not (observe.checking and current_trace() is bottom_trace()):
            outs = inline_closed(program.closed, operands)
        else:
            options = self.compile_options
            if current_trace() is bottom_trace():  # a transformation has other arguments
                options = options._replace(known=program.known)
            more = {} if options == DEFAULT_OPTIONS else {"options": options}
            outs = xla_call_p.bind(
                *operands, call_jaxpr=program.closed, name=self.name, backend=self.options.backend, **more
            )
        if given is not None:
            outs = [constrain(x, sharding) for x, sharding in zip(outs, given[1], strict=True)]
        return tree.tree_unflatten(program.out_tree, outs)

    def _early(self, program: TracedProgram, arrays: Sequence[Array]) -> list[Array] | None:
        """Return results by the eager rules while the background compiles; None if the call has to wait for it."""
        if self._shardings(program) is not None:
            return None

        def compile_now() -> None:
            compiled(program.closed, self.name, self._target(), self._compile_options(program))
            begin_dispatch(self.call())

        return first_tier(program.closed, arrays, compile_now)

    def _let_others_in(self) -> None:
        """Have calls that begin from now on wait for none that is going on.

        Threads that call with the signature of a call that is going on wait for its end, without a way out. So this
        comes before the user's functions run, which may wait for such a thread. A call that enters in the microseconds
        before this waits, as all do in JAX.
        """
        let_others_in(self.call())

    # -- the steps one by one, and the cache -------------------------------------------------------

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The program for arguments (or `ShapeDtypeStruct`s) of one signature, as a jaxpr."""
        program, leaves = self._abstractly(args, kwargs)
        target, options = self._target(), self._compile_options(program)
        if options.device is None:
            places = places_of_arguments(self.name, program, target.backend, leaves)
            options, device = place_at(program.closed, self.name, options, places, program.closed.in_avals)
            if device is not None:
                options = options._replace(device=device)
            chosen = next(iter(options.devices), device)
            target = target if chosen is None else Target(backends.of_device(chosen), chosen.platform)
        return Traced(program, self.fun, target, options, self.donated.numbers)

    def _compilation(self, *args: Any, **kwargs: Any) -> Callable[[], Executable]:
        """Trace the function; return a function that compiles the program as a call with such arguments would."""
        program, leaves = self._abstractly(args, kwargs)
        target = self._target()
        places = places_of_arguments(self.name, program, target.backend, leaves)
        options, device = place_call(
            program.closed, self.name, self._compile_options(program), places, program.closed.in_avals
        )
        return functools.partial(compiled, program.closed, self.name, target, options, device)

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The StableHLO program for arguments (or `ShapeDtypeStruct`s) of one signature, not compiled yet."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shape and dtype of the result, without computing it."""
        program, _ = self._abstractly(args, kwargs)
        given = self._shardings(program)
        return program.out_info(None if given is None else given[1])

    def _abstractly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[TracedProgram, list[Any]]:
        """Return the trace for arguments or types of them, and the leaves of the traced ones."""
        traced, static = self.static.split(args, kwargs)
        leaves, in_tree = tree.tree_flatten(traced)
        avals = []
        for i, x in enumerate(leaves):
            try:
                avals.append(shaped_abstractify(x))
            except TypeError as error:
                name = self.static.debug_info(in_tree, static).arg_names()[i]
                raise TypeError(f"jit of function {self.name}: argument {name}: {error}") from None
        return self._traced(self._signature(avals, in_tree, static)), leaves

    def clear_cache(self) -> None:
        """Forget all traces and what was compiled of them."""
        self.traces.clear()
        call = self.call()
        if call is not None:
            call._clear_cache()


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
