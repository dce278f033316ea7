"""`jit`, from a call to its result, on one page.

The idea: a function of arrays does the same operations for all arguments of the same types. So the first call with a
signature takes five steps, each of which is a method of `Jitted` or a function that `Jitted.miss` calls:

    signature   arguments -> leaves, their structure and their types                      `Jitted._signature`
    trace       the function runs once on tracers -> a jaxpr                              `Jitted._trace`
    lower       jaxpr -> StableHLO, by the translation rules (`_lowering`)                `_programs.compiled`,
    compile     StableHLO -> an executable, by PJRT (`_jaxlib`)                             by the backend
    run         executable, buffers -> results                                            `_programs.run`

and returns a `RepeatableCall`, which the backend's dispatcher caches. Users call the dispatcher: C++ code that finds
the executable by the types of the arguments, runs it and wraps the results (the fast path, without Python). It calls
`Jitted.miss` if its cache has no entry (the miss path): for a new signature, a tracer, changed settings, or a call
inside a trace. `jit(f).trace(x).lower().compile()` takes the same steps one by one (`stages`).

The invariants: equal signatures have one trace (`traces`), and a program is compiled once for a device and options
(`_programs`). The dispatcher never caches a call under a transformation, in a trace or under a check: such a call binds
`xla_call`. The `Jitted` owns all traces, programs and cache entries. The dispatcher holds the `Jitted`, which refers to
the dispatcher weakly, so that everything is freed with the callable. No lock is held while the user's function runs.
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
    tree,
)
from corejax.extend.devices import DEFAULT_OPTIONS, CompileOptions, Executable, RepeatableCall, Target, checks_values
from corejax.extend.messages import api_boundary, observe
from corejax.extend.transforms import Cell, axes_in_scope, in_context, stage_with_cells
from corejax.extend.types import shaped_abstractify
from corejax_xla_backend._jit.arguments import StaticArguments, StaticKey, check_disjoint, named_arguments
from corejax_xla_backend._jit.callables import begin_dispatch, make_callable, unblock_new_calls
from corejax_xla_backend._jit.float0_results import ProgramFunction
from corejax_xla_backend._jit.options import UNSPECIFIED, JitOptions, specified
from corejax_xla_backend._jit.stages import Lowered, Traced, Wrapped, places_of_arguments
from corejax_xla_backend._jit.tiers import reason_to_wait, run_first_tier
from corejax_xla_backend._jit.trace_reports import reasons, report_trace
from corejax_xla_backend._jit.traces import InTurn, Signature, TraceCache, TracedProgram, keyed_cells, live
from corejax_xla_backend._log import is_observed
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
    persist: bool = False,
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
    persist: bool = False,
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
    persist: bool = False,
) -> Any:
    """Compile a function: trace and compile it once for each signature of its arguments.

    Args:
        fun: function of arrays (in pytrees); without it, `jit` returns a decorator.
        in_shardings: shardings of the arguments over one or several devices, as a pytree with the arguments' structure
            or a prefix of it. The program runs on these devices.
        out_shardings: the same for the results.
        static_argnums: positional arguments that are part of the signature and reach the function untraced; they must
            be hashable.
        static_argnames: the same by keyword. Each option is inferred from the other if the function's signature shows
            both.
        donate_argnums: positional arguments; the program may reuse their memory for its results. The call deletes the
            arrays that it reuses. Nothing is donated under a transformation or inside another jitted function.
        donate_argnames: the same by keyword.
        keep_unused: whether the compiled program takes arguments that it does not use.
        device: the device to run on; by default the device that arguments were put on (`device_put`), else the setting
            `default_device`, else the first one.
        backend: name of the backend that compiles, or of a platform ("cpu", "cuda"); by default the setting
            `backend`, else the first backend that is available.
        inline: whether a transformation sees the function's equations in place of a call.
        compiler_options: the backend's own options by name; for XLA, say, `{"xla_cpu_enable_fast_math": True}`.
        tier: "compiled" waits for the compiler in the first call. "auto" compiles in the background; until the program
            is ready, the eager rules compute the results, which have the same types and are equal up to rounding.
            Programs on several devices, and calls whose arguments are bound to a device, wait (`explain` says so).
            Default: the setting `jit_tier`, which is "compiled".
        persist: store the traced program in the cache of compiled programs, with all arrays that the function closes
            over, so that later processes run the function without tracing it. A program is used again only if all of
            the following are the same: the types, structure and static values of the arguments; the settings that
            traces depend on; the names and versions of Python and of all installed distributions; the source files of
            the function's module and of the modules that it imports; and the values of the globals, closure variables
            and defaults that are named by the code of the function, and by the functions and classes that it names.
            Not seen are: code that changes without its version, in an installed distribution or in a `corejax_*`
            package; attributes that are changed in an installed module; globals that are found by a computed name; and
            files, environment variables, clocks and random generators that the function reads while it is traced. A
            function is traced in each process, with a warning that says why, if it is defined in `__main__`, reaches an
            object without a digest (a lock, an open file), imports a module of yours in its body, calls Python back, or
            runs on several devices. Calls inside a transformation are traced, too, and calls of persisted programs wait
            for the compiler, whatever `tier` says.

    Returns:
        The compiled function, with `trace(*args)`, `lower(*args)`, `eval_shape(*args)` and `clear_cache()`.

    Raises:
        TypeError: an argument is neither an array nor static, or a static argument is not hashable.
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
        persist,
    )
    return functools.partial(make_jitted, options=options) if fun is None else make_jitted(fun, options)


def make_jitted(fun: Callable[..., Any], options: JitOptions) -> Any:
    """Return the jitted function; copying and unpickling a jitted function call this."""
    if isinstance(fun, staticmethod | classmethod):
        kind = type(fun).__name__
        raise TypeError(f"jit: Expected a callable value, got a {kind}; put @{kind} before @jit")
    if not callable(fun):
        raise TypeError(f"jit: Expected a callable value, got {fun!r} of type {type(fun).__name__}")
    if inspect.isgeneratorfunction(fun) or inspect.isasyncgenfunction(fun) or inspect.iscoroutinefunction(fun):
        raise TypeError(
            f"jit: Expected a function that returns arrays, got the generator or coroutine function {fun!r}"
        )
    return make_callable(Jitted(fun, options), make_jitted)


class Jitted:
    """The state of one jitted function: its options and its traces.

    Attributes:
        fun, name: the function and its name.
        options: the options of `jit`, as the user passed them.
        compile_options: the same options for the compiler, without donations.
        static, donated: the static and the donated arguments.
        traces: the traced program for each signature.
        persisted: the programs on disk, with the option `persist`.
        call: a weak reference to the callable that the user holds.

    Raises:
        TypeError, ValueError: the options do not fit the function, or contradict each other.
    """

    def __init__(self, fun: Callable[..., Any], options: JitOptions) -> None:
        self.fun = fun
        self.name = fun_name(fun)
        self.options = options
        self.compile_options = options.compile_options(fun)
        self.static = StaticArguments(fun, options.static_argnums, options.static_argnames)
        self.donated = named_arguments(fun, "donate", options.donate_argnums, options.donate_argnames)
        check_disjoint(fun, self.static, self.donated)
        self.traces = TraceCache(fun)
        self.persisted: PersistedPrograms | None = None
        if options.persist:
            from corejax_xla_backend._jit.persisted import PersistedPrograms

            self.persisted = PersistedPrograms(self)
        self.call: Callable[[], Any] = lambda: None
        live.add(self)

    @property
    def tier(self) -> str:
        """The option `tier`, or the setting `jit_tier` of the moment."""
        return self.options.tier or config.jit_tier

    # -- the miss path -----------------------------------------------------------------------------

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, RepeatableCall | None]:
        """Run a call that the dispatcher has not cached; return the result and the call to cache, or None."""
        if config.disable_jit:
            return self.fun(*args, **kwargs), None
        if observe.observed():
            observe.notify(observe.Event("call", self.name))
        traced, static = self.static.split(args, kwargs)
        keyed, arguments, stand_ins = keyed_cells(traced)
        leaves, in_tree = tree.tree_flatten(keyed)
        check_arguments("jit", self.fun, leaves, lambda: self.static.debug_info(in_tree, static).arg_names())
        signature = self._signature([get_aval(x) for x in leaves], in_tree, static)
        program = self._program(signature, leaves, stand_ins)
        cells = program.cells_of(arguments)
        if self.tier == "auto" and observe.observed() and (why := self._reason_to_wait(program, leaves)):
            observe.notify(observe.Event("tier", self.name, (why,)))
        checked = checks_values() or observe.checking
        if checked:
            self._unblock_new_calls()  # a callback may call this function
        binds = in_context() or checked or any(isinstance(x, Tracer) for x in (*program.consts, *leaves))
        if binds:
            return self._bind(program, [*leaves, *[cell.get() for cell in cells]], cells), None
        with InTurn(cells):
            return self._take_and_run(program, traced, leaves, cells)

    def _take_and_run(
        self, program: TracedProgram, traced: tuple[Any, Any], leaves: Sequence[Any], cells: Sequence[Cell]
    ) -> tuple[Any, RepeatableCall | None]:
        """Take the values of the cells, and run a call outside of transformations; return what `miss` returns."""
        values = [cell.take() for cell in cells]
        if any(isinstance(x, Tracer) for x in values):
            return self._bind(program, [*leaves, *values], cells), None
        consts = [as_array(c) for c in program.consts]
        arrays = [*consts, *map(as_array, leaves), *values]
        if self.tier == "auto" and (early := self._eager_results(program, arrays)) is not None:
            return program.result(early, cells), None
        target = self.target()
        options, device = place_program(
            program.closed, self.name, target.backend, self._compile_options(program), arrays
        )
        executable = compiled(program.closed, self.name, target, options, device)
        if executable.calls_python:
            self._unblock_new_calls()
        outs = run(executable, target.backend, arrays, program.closed.out_avals)
        result = program.result(outs, cells)
        return result, None if cells else RepeatableCall(executable, consts, *traced, result)

    def _signature(self, avals: Sequence[ShapedArray], in_tree: Any, static: StaticKey | None) -> Signature:
        """Return the key of a call's trace."""
        avals = self.options.refine_avals(self.fun, in_tree, avals)
        return Signature(in_tree, tuple(avals), static, config.trace_key(), axes_in_scope())

    def _program(self, signature: Signature, leaves: Sequence[Any], stand_ins: Sequence[Cell]) -> TracedProgram:
        """Return the program of a call: with the option `persist` the one that is on the disk, else the trace."""
        if self.persisted is not None and not stand_ins and current_trace() is bottom_trace():
            program = self.persisted.find(signature, leaves)
            if program is not None:
                return program
        return self.traced(signature, stand_ins)

    def traced(self, signature: Signature, stand_ins: Sequence[Cell] = ()) -> TracedProgram:
        """Return the trace for a signature; trace the function at the signature's first call, on these cells."""
        found = self.traces.find(signature)
        if found is None:
            self._unblock_new_calls()
            found = self.traces.trace_once(signature, functools.partial(self._trace, stand_ins))
        return found

    def _trace(self, stand_ins: Sequence[Cell], signature: Signature) -> TracedProgram:
        """Run the function on tracers of the signature's types, and cache the program."""
        started = time.perf_counter()
        debug = self.static.debug_info(signature.in_tree, signature.static)
        why = reasons(signature, self.traces, debug.arg_names, self.static.name_of) if is_observed() else ()
        flat = ProgramFunction(self.static.bind_static(signature.static), signature.in_tree, with_kwargs=True)
        jaxpr, consts, cells = stage_with_cells(self.options.constrain_results(self.fun, flat), signature.avals, debug)
        program = TracedProgram(close_over_consts(jaxpr), consts, signature.in_tree, flat.out_tree)
        program = program._replace(cells=tuple(stand_ins.index(c) if c in stand_ins else c for c in cells))
        program = self.traces.add(signature, program)
        if why:
            ms = 1000 * (time.perf_counter() - started)
            kept = self.traces.find(signature) is not None
            report_trace(self.name, why, ms, signature, program.closed.jaxpr, kept=kept)
        return program

    def target(self) -> Target:
        """Return the backend that compiles and the platform to compile for."""
        device = self.compile_options.device
        if device is None:
            return backends.find(self.options.backend)
        return Target(backends.of_device(device), device.platform)

    def _compile_options(self, program: TracedProgram) -> CompileOptions:
        """Return the compile options of a traced program, with its donated arguments and shardings."""
        options, consts = self.compile_options._replace(known=program.known), len(program.consts)
        donated = self.donated.leaf_flags(self.static.numbers, program.in_tree)
        if any(donated) or program.cells:
            donated = donated or (False,) * program.in_tree.num_leaves
            options = options._replace(donated=(*[False] * consts, *donated, *[True] * len(program.cells)))
        shardings = self._shardings(program)
        if shardings is None:
            return options
        ins, outs = shardings
        devices = next((x.device_tuple for x in (*ins, *outs) if x is not None and x.device_tuple), ())
        return options._replace(
            devices=devices, in_shardings=(*[None] * consts, *ins), out_shardings=tuple(outs), binds=True
        )

    def _shardings(self, program: TracedProgram) -> tuple[list[Any], list[Any]] | None:
        """Return the shardings of the program's argument and result leaves, or None; see `JitOptions.shardings`."""
        shardings, free = self.options.shardings(self.fun, program.in_tree, program.out_tree), len(program.cells)
        return shardings and ([*shardings[0], *[None] * free], [*shardings[1], *[None] * free])

    def _bind(self, program: TracedProgram, leaves: Sequence[Any], cells: Sequence[Cell]) -> Any:
        """Bind `xla_call`, so that the running transformations see the call, in place of compiling and running."""
        shardings = self._shardings(program)
        if shardings is not None:
            # A transformation may add or remove arguments and results, so that shardings become constraints.
            leaves = [constrain(x, sharding) for x, sharding in zip(leaves, shardings[0], strict=True)]
        operands = [*program.consts, *leaves]
        if self.options.inline and not (observe.checking and current_trace() is bottom_trace()):
            outs = inline_closed(program.closed, operands)
        else:
            options = self.compile_options
            if current_trace() is bottom_trace():  # under a transformation the positions may be others
                options = options._replace(known=program.known)
            more = {} if options == DEFAULT_OPTIONS else {"options": options}
            outs = xla_call_p.bind(
                *operands, call_jaxpr=program.closed, name=self.name, backend=self.options.backend, **more
            )
        if shardings is not None:
            outs = [constrain(x, sharding) for x, sharding in zip(outs, shardings[1], strict=True)]
        return program.result(outs, cells)

    def _eager_results(self, program: TracedProgram, arrays: Sequence[Array]) -> list[Array] | None:
        """Return results of the eager rules while a thread compiles; None if the call has to wait for the program."""
        if self._reason_to_wait(program, arrays):
            return None

        def compile_now() -> None:
            compiled(program.closed, self.name, self.target(), self._compile_options(program))
            begin_dispatch(self.call())

        return run_first_tier(program.closed, arrays, compile_now)

    def _reason_to_wait(self, program: TracedProgram, arrays: Sequence[Any]) -> str:
        """Return why a call with `tier="auto"` waits for the program; "" if eager results come first."""
        if program.is_persisted:
            return 'tier="auto" waits for the compiler: the program was exported, and has no eager rules'
        if self._shardings(program) is not None:
            return 'tier="auto" waits for the compiler: the function has shardings over several devices'
        return reason_to_wait(program.closed, arrays)

    def _unblock_new_calls(self) -> None:
        """Let calls that begin from now on proceed without waiting for calls in progress.

        If two threads call with one signature, the dispatcher blocks the second until the first has returned. The
        user's function may itself wait for the second thread, which would be a deadlock. So this runs before the user's
        functions do. A call that enters in the microseconds before this still waits, as every call does in JAX.
        """
        unblock_new_calls(self.call())

    # -- the steps one by one, and the cache -------------------------------------------------------

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for arguments (or `ShapeDtypeStruct`s) of one signature, and return its jaxpr."""
        signature, leaves, cells, stand_ins = self._signature_of(args, kwargs)
        program = self.traced(signature, stand_ins)
        target, options = self.target(), self._compile_options(program)
        if options.device is None:
            places = places_of_arguments(self.name, program, target.backend, leaves, cells)
            options, device = place_at(program.closed, self.name, options, places, program.closed.in_avals)
            if device is not None:
                options = options._replace(device=device)
            chosen = next(iter(options.devices), device)
            target = target if chosen is None else Target(backends.of_device(chosen), chosen.platform)
        return Traced(program, self.fun, target, options, self.donated.numbers)

    def _compilation(self, *args: Any, **kwargs: Any) -> Callable[[], Executable]:
        """Trace the function; return a function that compiles the program as a call with such arguments would."""
        signature, leaves, cells, stand_ins = self._signature_of(args, kwargs)
        program = self._program(signature, leaves, stand_ins)
        target = self.target()
        places = places_of_arguments(self.name, program, target.backend, leaves, cells)
        options, device = place_call(
            program.closed, self.name, self._compile_options(program), places, program.closed.in_avals
        )
        return functools.partial(compiled, program.closed, self.name, target, options, device)

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the function to StableHLO for arguments (or `ShapeDtypeStruct`s) of one signature."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return shape and dtype of the result, without computing it."""
        signature, _, _, stand_ins = self._signature_of(args, kwargs)
        program = self.traced(signature, stand_ins)
        shardings = self._shardings(program)
        if shardings is None:
            return program.out_info()
        of_parts = [s for s, a in zip(shardings[1], program.closed.out_avals, strict=False) for _ in a.parts()]
        return program.out_info(of_parts)

    def _signature_of(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Signature, list[Any], list[Cell], list[Cell]]:
        """Return the signature for arguments or their types, their leaves, their cells, and stand-ins for the cells."""
        traced, static = self.static.split(args, kwargs)
        keyed, cells, stand_ins = keyed_cells(traced)
        leaves, in_tree = tree.tree_flatten(keyed)
        avals = []
        for i, x in enumerate(leaves):
            try:
                avals.append(shaped_abstractify(x))
            except TypeError as error:
                name = self.static.debug_info(in_tree, static).arg_names()[i]
                raise TypeError(f"jit of function {self.name}: argument {name}: {error}") from None
        return self._signature(avals, in_tree, static), leaves, cells, stand_ins

    def clear_cache(self) -> None:
        """Drop all traces and the programs that were compiled from them."""
        self.traces.clear()
        if self.persisted is not None:
            self.persisted.clear()
        call = self.call()
        if call is not None:
            call._clear_cache()


def xla_computation(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a function that lowers to XLA's HLO, before optimisation: `xla_computation(f)(*args).as_hlo_text()`.

    Args:
        fun: the function.
        **options: options of `jit`, such as `static_argnums`.

    Returns:
        A function of arguments, or of `ShapeDtypeStruct`s, that returns jaxlib's computation.
    """
    lower = jit(fun, **options).lower
    return lambda *args, **kwargs: lower(*args, **kwargs).compiler_ir("hlo")
