"""`jit`: a function traced once for each signature of its arguments, and each trace compiled by a backend."""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    BackendError,
    ClosedJaxpr,
    FlatFunction,
    PluginError,
    RepeatableCall,
    ShapedArray,
    ShapeDtypeStruct,
    Tracer,
    api_boundary,
    as_array,
    axes_in_scope,
    backends,
    check_arguments,
    clears_cache,
    close_over_consts,
    config,
    fun_name,
    get_aval,
    in_context,
    inline_closed,
    observe,
    shaped_abstractify,
    stage,
    tree,
)
from corejax_xla_backend._jit.callables import CheckedCall, Options, UndispatchedCall, completed
from corejax_xla_backend._jit.shared_traces import shared_traces
from corejax_xla_backend._jit.signatures import Signature, reasons, report_trace
from corejax_xla_backend._jit.stages import Lowered
from corejax_xla_backend._jit.static_args import StaticArguments, StaticKey
from corejax_xla_backend._live import LiveSet
from corejax_xla_backend._programs import compiled, run
from corejax_xla_backend.xla_call import xla_call_p


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    inline: bool = False,
    backend: str | None = None,
) -> Any:
    """Compile a function: traced and compiled once for each signature of its arguments.

    Args:
        fun: function of arrays (in pytrees); without it, a decorator.
        static_argnums: positional arguments that are part of the signature, passed on as they are; hashable.
        static_argnames: the same by keyword. Each is inferred from the other where the signature shows it.
        inline: under a transformation, write the function's equations in place of a call.
        backend: name of the backend to compile by, or of a platform ("cpu", "cuda"); by default the setting
            `backend`, or the first backend there is.

    Returns:
        The compiled function, with `lower(*args)`, `eval_shape(*args)` and `clear_cache()`.

    Raises:
        TypeError: an argument is not an array and not static, or a static one is not hashable.
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            inline=inline,
            backend=backend,
        )
    if not callable(fun):
        raise TypeError(f"jit compiles a function, got {fun!r} of type {type(fun).__name__}")
    jitted = _Jitted(StaticArguments(fun, static_argnums, static_argnames), inline, backend)
    return _wrapped(jitted, Options(static_argnums, static_argnames, inline, backend))


def _wrapped(jitted: _Jitted, options: Options) -> Any:
    """What users hold: the backend's dispatcher itself, with the function's name and the steps of compilation."""
    static = jitted.static
    call = dispatch = _dispatcher(jitted)
    if dispatch is None:
        call = dispatch = UndispatchedCall(jitted.name, jitted.miss)
    elif static.numbers or static.names:
        call = CheckedCall(dispatch, static.split)
    jitted.dispatcher = weakref.ref(dispatch)
    _live.add(jitted)
    methods = {"lower": jitted.lower, "eval_shape": jitted.eval_shape, "clear_cache": jitted.clear_cache}
    return completed(call, jitted.fun, options, _again, **methods)


def _dispatcher(jitted: _Jitted) -> Any:
    """The dispatcher of the backend that is to compile, as far as that is known now; None where it has none."""
    try:
        backend, _ = backends.find(jitted.backend)
    except (BackendError, PluginError):
        return None  # the first call says it
    if not backend.capabilities.dispatcher:
        return None
    static = jitted.static
    return backend.dispatcher(jitted.name, jitted.miss, static_argnums=static.numbers, static_argnames=static.names)


def _again(fun: Callable[..., Any], options: Options) -> Any:
    return jit(fun, **options._asdict())


@clears_cache
def _clear_all() -> None:
    for jitted in _live:
        jitted.clear_cache()


class _Traced(NamedTuple):
    """One signature's program.

    Attributes:
        closed: the program; its constants are leading arguments.
        consts: their values.
        in_tree: structure of the arguments.
        out_tree: structure of the result.
    """

    closed: ClosedJaxpr
    consts: list[Any]
    in_tree: Any
    out_tree: Any


_live: LiveSet[_Jitted] = LiveSet()
_MAX_TRACES = 4096  # of one function; the oldest are dropped


class _Jitted:
    """A jitted function's traces, by signature."""

    def __init__(self, static: StaticArguments, inline: bool, backend: str | None) -> None:
        self.static = static
        self.fun = static.fun
        self.name = fun_name(static.fun)
        self.inline = inline
        self.backend = backend
        self.traces: dict[Signature, _Traced] = {}
        self.dispatcher: Callable[[], Any] = lambda: None  # a weak reference: it holds this object

    def clear_cache(self) -> None:
        """Forget all traces and what was compiled of them."""
        self.traces.clear()
        self._forget_signatures()

    def _forget_signatures(self) -> None:
        """Have the dispatcher ask again for every signature.

        Threads that call with the signature of a call that is going on wait for its end, without a way out. So this
        comes before the user's functions run: what these wait for may be such a thread. Those that come later find
        nothing to wait for. Left are calls that enter in the microseconds before this: they wait, as all do in JAX.
        """
        dispatch = self.dispatcher()
        if dispatch is not None:
            dispatch._clear_cache()

    # -- signatures --------------------------------------------------------------------------------

    def trace(self, avals: Sequence[ShapedArray], in_tree: Any, static: StaticKey | None) -> _Traced:
        """The program for a signature, traced at its first call."""
        key = self._key(avals, in_tree, static)
        found = self.traces.get(key)
        return self._traced(key) if found is None else found

    @staticmethod
    def _key(avals: Sequence[ShapedArray], in_tree: Any, static: StaticKey | None) -> Signature:
        return Signature(in_tree, tuple(avals), static, config.trace_key(), axes_in_scope())

    def _traced(self, key: Signature) -> _Traced:
        shared = shared_traces(self.fun)
        if key in shared:
            self.traces[key] = shared[key]
            return self.traces[key]
        started = time.perf_counter()
        debug = self.static.debug_info(key.in_tree, key.static)
        why = reasons(key, self.traces, debug.arg_names, self.static.name_of) if observe.observed() else ()
        flat = FlatFunction(self.static.closed(key.static), key.in_tree, with_kwargs=True)
        jaxpr, consts = stage(flat, key.avals, debug)
        found = _Traced(close_over_consts(jaxpr), consts, key.in_tree, flat.out_tree)
        kept = not any(isinstance(c, Tracer) for c in consts)  # those belong to one trace of a function around
        if kept:
            found = shared[key] = self.traces.setdefault(key, found)  # another thread's, so that it is compiled once
            while len(self.traces) > _MAX_TRACES:
                self.traces.pop(next(iter(self.traces), key), None)
        if why:
            report_trace(self.name, why, 1000 * (time.perf_counter() - started), key, kept=kept)
        return found

    def _signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Signature]:
        """Leaves of the traced arguments, and what the call's trace depends on."""
        traced_args, traced_kwargs, static = self.static.split(args, kwargs)
        leaves, in_tree = tree.tree_flatten((traced_args, traced_kwargs))
        check_arguments("jit", self.fun, leaves, lambda: self.static.debug_info(in_tree, static).arg_names())
        return leaves, self._key([get_aval(x) for x in leaves], in_tree, static)

    # -- calls -------------------------------------------------------------------------------------

    def _bind(self, leaves: Sequence[Any], traced: _Traced) -> Any:
        """Apply `xla_call` under the transformations that are running."""
        operands = [*traced.consts, *leaves]
        if self.inline:
            outs = inline_closed(traced.closed, operands)
        else:
            outs = xla_call_p.bind(*operands, call_jaxpr=traced.closed, name=self.name, backend=self.backend)
        return tree.tree_unflatten(traced.out_tree, outs)

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, RepeatableCall | None]:
        """A call that the dispatcher cannot repeat yet: compile, run, and tell it how."""
        if observe.observed():
            observe.notify(observe.Event("call", self.name))
        leaves, key = self._signature(args, kwargs)
        traced = self.traces.get(key)
        if traced is None:
            self._forget_signatures()
            traced = self._traced(key)
        if in_context() or any(isinstance(x, Tracer) for x in (*traced.consts, *leaves)):
            return self._bind(leaves, traced), None
        backend, platform = backends.find(self.backend)
        executable = compiled(traced.closed, self.name, backend, platform)
        if executable.calls_python:
            self._forget_signatures()
        consts = [as_array(c) for c in traced.consts]
        outs = run(executable, backend, [*consts, *map(as_array, leaves)], traced.closed.out_avals)
        result = tree.tree_unflatten(traced.out_tree, outs)
        traced_args, traced_kwargs, _ = self.static.split(args, kwargs)
        return result, RepeatableCall(executable, consts, traced_args, traced_kwargs, result)

    # -- stages ------------------------------------------------------------------------------------

    def _abstractly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Traced:
        traced_args, traced_kwargs, static = self.static.split(args, kwargs)
        leaves, in_tree = tree.tree_flatten((traced_args, traced_kwargs))
        avals = []
        for i, x in enumerate(leaves):
            try:
                avals.append(shaped_abstractify(x))
            except TypeError as error:
                name = self.static.debug_info(in_tree, static).arg_names()[i]
                raise TypeError(f"jit of function {self.name}: argument {name}: {error}") from None
        return self.trace(avals, in_tree, static)

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The StableHLO program for arguments (or `ShapeDtypeStruct`s) of one signature, not compiled yet."""
        traced = self._abstractly(args, kwargs)
        return Lowered(traced.closed, traced.consts, traced.in_tree, traced.out_tree, self.name, self.backend)

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shape and dtype of the result, without computing it."""
        traced = self._abstractly(args, kwargs)
        shapes = [ShapeDtypeStruct(a.shape, a.dtype, a.weak_type) for a in traced.closed.out_avals]
        return tree.tree_unflatten(traced.out_tree, shapes)
