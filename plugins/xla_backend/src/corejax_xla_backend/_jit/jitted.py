"""A jitted function's traces, by signature, and what a call with a new signature does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    DEFAULT_OPTIONS,
    Array,
    Backend,
    ClosedJaxpr,
    CompileOptions,
    RepeatableCall,
    ShapedArray,
    ShapeDtypeStruct,
    Target,
    Tracer,
    api_boundary,
    as_array,
    axes_in_scope,
    backends,
    bottom_trace,
    bound_device,
    check_arguments,
    checks_calls,
    checks_values,
    clears_cache,
    close_over_consts,
    config,
    current_trace,
    drop_oldest,
    fun_name,
    get_aval,
    in_context,
    inline_closed,
    observe,
    shaped_abstractify,
    stage,
    tree,
)
from corejax_xla_backend._jit.callables import let_others_in
from corejax_xla_backend._jit.donation import donated_leaves
from corejax_xla_backend._jit.float0_results import ProgramFunction
from corejax_xla_backend._jit.named_arguments import check_apart, named_arguments
from corejax_xla_backend._jit.one_at_a_time import OneAtATime
from corejax_xla_backend._jit.options import UNSPECIFIED, JitOptions
from corejax_xla_backend._jit.shared_traces import earlier_program, forget_programs, shared_traces
from corejax_xla_backend._jit.signatures import Signature, reasons, report_trace
from corejax_xla_backend._jit.stages import Lowered, Traced, TracedProgram
from corejax_xla_backend._jit.static_args import StaticArguments, StaticKey
from corejax_xla_backend._jit.tiers import first_tier
from corejax_xla_backend._live import LiveSet
from corejax_xla_backend._log import watched_by_anybody
from corejax_xla_backend._programs import compiled, run
from corejax_xla_backend._several_devices import names_meshes, place_at, place_program
from corejax_xla_backend.sharding import SingleDeviceSharding, check_fits
from corejax_xla_backend.sharding_constraint import as_sharding, constrain
from corejax_xla_backend.xla_call import xla_call_p


@clears_cache
def _clear_all() -> None:
    for jitted in _live:
        jitted.clear_cache()


_MOST_KNOWN = 1024  # elements of a constant that is written into the program
_POSITIONS = frozenset(map(np.dtype, "?bhiq"))
_NUMBERS = frozenset(map(np.dtype, "fdFD"))


def _known(consts: Sequence[Any], closed: ClosedJaxpr) -> tuple[tuple[int, ShapedArray, bytes], ...]:
    """Small arrays among a program's constants: positions and masks, and the numbers that it is compiled for first.

    XLA makes slices and copies of gathers and scatters at positions that it sees, and computes what depends on numbers
    alone. A function that is traced again, to the same program of other numbers, takes those as arguments from then on:
    it is not compiled for each. Unsigned integers, keys that is, are arguments always, and so are floats of 16 bits.
    """
    small = [
        (i, x.aval, x._host)
        for i, x in enumerate(consts)
        if type(x) is Array and x._host is not None and x._host.size <= _MOST_KNOWN and x.aval.refinement is None
    ]
    positions, numbers = (
        tuple((i, aval, x.tobytes()) for i, aval, x in small if x.dtype in dtypes) for dtypes in (_POSITIONS, _NUMBERS)
    )
    first = closed.jaxpr.memo.setdefault("numbers", numbers)
    return positions + numbers if numbers == first else positions


_live: LiveSet[Jitted] = LiveSet()
_MAX_TRACES = 4096  # of one function; the oldest are dropped


class Jitted:
    """A jitted function's traces, by signature.

    Attributes:
        fun: the function.
        name: its name.
        options: of `jit`, as given.
        compile_options: what they mean for the compiler, donations apart.
        static: the static arguments.
        donated: the donated arguments.
        traces: the program for each signature.

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
        self.traces: dict[Signature, TracedProgram] = {}
        self._one_at_a_time = OneAtATime()
        self.dispatcher: Callable[[], Any] = lambda: None  # a weak reference: it holds this object

    def live(self, dispatcher: Callable[[], Any]) -> None:
        """Make it known to `clear_caches`, with a weak reference to what calls it."""
        self.dispatcher = dispatcher
        _live.add(self)

    def _target(self) -> Target:
        device = self.compile_options.device
        if device is None:
            return backends.find(self.options.backend)
        return Target(backends.of_device(device), device.platform)

    def _options(self, program: TracedProgram) -> CompileOptions:
        """What to tell the compiler of a program."""
        options, consts = self.compile_options._replace(known=program.known), len(program.consts)
        donated = donated_leaves(self.donated, self.static.numbers, program.in_tree)
        if any(donated):
            options = options._replace(donated=(*[False] * consts, *donated))
        given = self.options.shardings(self.fun, program.in_tree, program.out_tree)
        if given is None:
            return options
        ins, outs = given
        devices = next((x.device_tuple for x in (*ins, *outs) if x is not None and x.device_tuple), ())
        return options._replace(
            devices=devices, in_shardings=(*[None] * consts, *ins), out_shardings=tuple(outs), binds=True
        )

    def clear_cache(self) -> None:
        """Forget all traces and what was compiled of them."""
        self.traces.clear()
        forget_programs(self.fun)
        dispatch = self.dispatcher()
        if dispatch is not None:
            dispatch._clear_cache()

    def _let_others_in(self) -> None:
        """Have the dispatcher ask again for every signature that others may wait for.

        Threads that call with the signature of a call that is going on wait for its end, without a way out. So this
        comes before the user's functions run: what these wait for may be such a thread. Those that come later find
        nothing to wait for. Left are calls that enter in the microseconds before this: they wait, as all do in JAX.
        """
        let_others_in(self.dispatcher())

    # -- signatures --------------------------------------------------------------------------------

    def _program(self, avals: Sequence[ShapedArray], in_tree: Any, static: StaticKey | None) -> TracedProgram:
        """The program for a signature, traced at its first call."""
        key = self._key(avals, in_tree, static)
        found = self.traces.get(key)
        return self._traced(key) if found is None else found

    def _key(self, avals: Sequence[ShapedArray], in_tree: Any, static: StaticKey | None) -> Signature:
        avals = self.options.laid_out(self.fun, in_tree, avals)
        return Signature(in_tree, tuple(avals), static, config.trace_key(), axes_in_scope())

    def _traced(self, key: Signature) -> TracedProgram:
        shared = shared_traces(self.fun)
        if key in shared:
            self.traces[key] = shared[key]
            return self.traces[key]
        if in_context():  # who traces waits for nobody: two functions that call each other would
            return self._trace(key, shared)
        found = self._one_at_a_time(key, lambda: self.traces.get(key), lambda: self._trace(key, shared))
        return found  # type: ignore[no-any-return]

    def _trace(self, key: Signature, shared: dict[Signature, TracedProgram]) -> TracedProgram:
        started = time.perf_counter()
        debug = self.static.debug_info(key.in_tree, key.static)
        why = reasons(key, self.traces, debug.arg_names, self.static.name_of) if watched_by_anybody() else ()
        flat = ProgramFunction(self.static.closed(key.static), key.in_tree, with_kwargs=True)
        jaxpr, consts = stage(self._results_of(flat), key.avals, debug)
        found = TracedProgram(close_over_consts(jaxpr), consts, key.in_tree, flat.out_tree)
        kept = not any(isinstance(c, Tracer) for c in consts)  # those belong to one trace of a function around
        if kept:
            closed = earlier_program(self.fun, key, found.closed)
            found = found._replace(closed=closed, known=_known(consts, closed))
            found = shared[key] = self.traces.setdefault(key, found)  # another thread's, so that it is compiled once
            drop_oldest(self.traces, _MAX_TRACES)
        if why:
            report_trace(self.name, why, 1000 * (time.perf_counter() - started), key, kept=kept)
        return found

    def _results_of(self, flat: ProgramFunction) -> Callable[..., Any]:
        """The function with results whose types say what `out_shardings` does."""
        if self.options.out_shardings is UNSPECIFIED:
            return flat

        def laid_out(*args: Any) -> Any:
            outs = flat(*args)
            return self.options.results_laid_out(self.fun, flat.out_tree, outs)

        return laid_out

    def _signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Signature]:
        """Leaves of the traced arguments, and what the call's trace depends on."""
        traced_args, traced_kwargs, static = self.static.split(args, kwargs)
        leaves, in_tree = tree.tree_flatten((traced_args, traced_kwargs))
        check_arguments("jit", self.fun, leaves, lambda: self.static.debug_info(in_tree, static).arg_names())
        return leaves, self._key([get_aval(x) for x in leaves], in_tree, static)

    # -- calls -------------------------------------------------------------------------------------

    def _bind(self, leaves: Sequence[Any], traced: TracedProgram) -> Any:
        """Apply `xla_call` under the transformations that are running."""
        given = self.options.shardings(self.fun, traced.in_tree, traced.out_tree)
        if given is not None:  # a transformation may change what is argument and result, and shardings with them
            leaves = [constrain(x, sharding) for x, sharding in zip(leaves, given[0], strict=True)]
        operands = [*traced.consts, *leaves]
        if self.options.inline and not (checks_calls() and current_trace() is bottom_trace()):
            outs = inline_closed(traced.closed, operands)
        else:
            options = self.compile_options
            if current_trace() is bottom_trace():  # a transformation has other arguments
                options = options._replace(known=traced.known)
            more = {} if options == DEFAULT_OPTIONS else {"options": options}
            outs = xla_call_p.bind(
                *operands, call_jaxpr=traced.closed, name=self.name, backend=self.options.backend, **more
            )
        if given is not None:
            outs = [constrain(x, sharding) for x, sharding in zip(outs, given[1], strict=True)]
        return tree.tree_unflatten(traced.out_tree, outs)

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, RepeatableCall | None]:
        """A call that the dispatcher cannot repeat yet: compile, run, and tell it how."""
        if config.disable_jit:
            return self.fun(*args, **kwargs), None
        if observe.observed():
            observe.notify(observe.Event("call", self.name))
        leaves, key = self._signature(args, kwargs)
        traced = self.traces.get(key)
        if traced is None:
            self._let_others_in()
            traced = self._traced(key)
        checked = checks_values() or checks_calls()
        if checked:
            self._let_others_in()  # what it calls back may call it
        if in_context() or checked or any(isinstance(x, Tracer) for x in (*traced.consts, *leaves)):
            return self._bind(leaves, traced), None
        consts = [as_array(c) for c in traced.consts]
        arrays = [*consts, *map(as_array, leaves)]
        if self.options.tier == "auto" and (early := self._first_tier(traced, arrays)) is not None:
            return tree.tree_unflatten(traced.out_tree, early), None
        target, options = self._target(), self._options(traced)
        options, device = place_program(traced.closed, self.name, target.backend, options, arrays)
        executable = compiled(traced.closed, self.name, target, options, device)
        if executable.calls_python:
            self._let_others_in()
        outs = run(executable, target.backend, arrays, traced.closed.out_avals)
        result = tree.tree_unflatten(traced.out_tree, outs)
        traced_args, traced_kwargs, _ = self.static.split(args, kwargs)
        return result, RepeatableCall(executable, consts, traced_args, traced_kwargs, result)

    def _first_tier(self, traced: TracedProgram, arrays: Sequence[Array]) -> list[Array] | None:
        """Results by the eager rules, while the program is compiled in the background; None: it is, or has to be now.

        That is where arrays are bound to a device, or the program is about several. The backend is imported in the
        background, too.
        """
        if names_meshes(traced.closed) or self.options.shardings(self.fun, traced.in_tree, traced.out_tree) is not None:
            return None
        places = [x.devices() for x in arrays]
        if any(places) and any(
            bound_device(x, backends.of_device(next(iter(d)))) for x, d in zip(arrays, places, strict=True) if d
        ):
            return None

        def compile_now() -> None:
            compiled(traced.closed, self.name, self._target(), self._options(traced))
            call = self.dispatcher()
            if call is not None:
                call.begin()

        return first_tier(traced.closed, arrays, compile_now)

    # -- stages ------------------------------------------------------------------------------------

    def _abstractly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedProgram:
        traced_args, traced_kwargs, static = self.static.split(args, kwargs)
        leaves, in_tree = tree.tree_flatten((traced_args, traced_kwargs))
        avals = []
        for i, x in enumerate(leaves):
            try:
                avals.append(shaped_abstractify(x))
            except TypeError as error:
                name = self.static.debug_info(in_tree, static).arg_names()[i]
                raise TypeError(f"jit of function {self.name}: argument {name}: {error}") from None
        return self._program(avals, in_tree, static)

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The program for arguments (or `ShapeDtypeStruct`s) of one signature, as a jaxpr."""
        program = self._abstractly(args, kwargs)
        target, options = self._target(), self._options(program)
        if options.device is None:
            options, device = self._place_of_arguments(program, target.backend, options, (args, kwargs))
            if device is not None:
                options = options._replace(device=device)
            chosen = next(iter(options.devices), device)
            target = target if chosen is None else Target(backends.of_device(chosen), chosen.platform)
        return Traced(program, self.fun, target, options, self.donated.numbers)

    def _place_of_arguments(
        self, program: TracedProgram, backend: Backend, options: CompileOptions, arguments: tuple[Any, Any]
    ) -> tuple[CompileOptions, Any]:
        """Options completed by where arrays are bound to be, or types of arguments say; and the one device if it is."""

        def place(x: Any) -> Any:
            if type(x) is Array:
                return bound_device(x, backend)
            named = getattr(x, "sharding", None) if isinstance(x, ShapeDtypeStruct) else None
            if named is None:
                return None
            sharding = as_sharding(f"jit of {self.name}: sharding", named)
            check_fits(f"jit of {self.name}: sharding of an argument", sharding, x.shape)
            return sharding.device_tuple[0] if isinstance(sharding, SingleDeviceSharding) else sharding

        traced_args, traced_kwargs, _ = self.static.split(*arguments)
        leaves = [*program.consts, *tree.tree_leaves((traced_args, traced_kwargs))]
        return place_at(program.closed, self.name, options, [place(x) for x in leaves], program.closed.in_avals)

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The StableHLO program for arguments (or `ShapeDtypeStruct`s) of one signature, not compiled yet."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shape and dtype of the result, without computing it."""
        traced = self._abstractly(args, kwargs)
        avals, given = traced.closed.out_avals, self.options.shardings(self.fun, traced.in_tree, traced.out_tree)
        shardings = [None] * len(avals) if given is None else given[1]
        shapes = [
            ShapeDtypeStruct(a.shape, a.dtype, a.weak_type, sharding=s) for a, s in zip(avals, shardings, strict=True)
        ]
        return tree.tree_unflatten(traced.out_tree, shapes)
