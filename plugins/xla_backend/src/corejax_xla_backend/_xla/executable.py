"""From a program to an executable, and from arrays to buffers; each compiled once and kept with the program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import (
    Array,
    BufferFunctions,
    ClosedJaxpr,
    ShapedArray,
    Var,
    as_array,
    bytes_text,
    check_memory,
    clears_cache,
    config,
    context_hooks,
    get_aval,
    host_value,
    observe,
    set_buffer_functions,
    trace_state,
    tree,
)
from corejax_xla_backend import _jaxlib, host_callback
from corejax_xla_backend.live import LiveSet
from corejax_xla_backend.stablehlo import ModuleBuilder


def _to_device(array: Array) -> Any:
    return _put(array._fetch(), array.aval, alias=True)


def _put(value: np.ndarray[Any, Any], aval: ShapedArray, *, alias: bool) -> Any:
    """A buffer on the default device.

    Raises:
        MemoryError: there is no place for it. A broadcast array is written out, and may be larger than the memory.
    """
    if value.nbytes > _LARGE:
        check_memory(value.nbytes, f"a buffer for an array of shape {aval.shape} and dtype {aval.dtype.name}")
    return _jaxlib.put(value, aval, alias=alias)


set_buffer_functions(
    BufferFunctions(
        to_host=_jaxlib.to_numpy,
        to_device=_to_device,
        block_until_ready=lambda buffer: _jaxlib.block_until_ready([buffer]),
        devices_of=lambda buffer: {_jaxlib.device_of(buffer)},
    )
)


_LARGE = 1 << 30  # bytes of a program below which nothing is checked
_NOT_AN_ARRAY = object()


def _host_to_buffer(value: Any) -> Any:
    """A buffer for a host value met by the dispatcher: NumPy arrays are copied, for their owner may write to them.

    What is not an array stays a leaf that the dispatcher does not know: the call then goes to Python, which names
    the argument in its error.
    """
    try:
        if type(value) is np.ndarray:
            aval = get_aval(value)
            if aval.dtype is not value.dtype:  # under `config.x64_compat`
                value = host_value(value)
            return _put(value, aval, alias=False)
        return as_array(value)._buf
    except TypeError:
        return _NOT_AN_ARRAY


dispatch_registry = _jaxlib.DispatchRegistry(Array, _host_to_buffer, field="_buf", always_buffer=True)


def learn_nodes(values: Any) -> None:
    """Teach dispatchers the registered containers in a pytree, so that calls with them have a fast path too."""
    for leaf in dispatch_registry.flatten(values)[0]:
        kind = type(leaf)
        if kind is not _jaxlib.Buffer and tree.is_tree_node(kind) and not dispatch_registry.is_node(kind):
            dispatch_registry.register_node(kind, _one_level, _from_one_level)
            learn_nodes(leaf)


def _one_level(node: Any) -> tuple[list[Any], Any]:
    return tree.tree_flatten(node, is_leaf=lambda x: x is not node)  # type: ignore[no-any-return]


def _from_one_level(treedef: Any, children: Any) -> Any:
    return tree.tree_unflatten(treedef, children)


_settings: dict[Any, int] = {}


def _follow_context() -> None:
    """Make what a trace depends on part of the dispatchers' signatures: staging and named axes, and settings."""
    context = _jaxlib.dispatch_context()

    def settings_changed() -> None:
        context.set_default(2 * _settings.setdefault(config.trace_key(), len(_settings)))

    def inside(entered: bool) -> None:
        if entered:
            context.set(1)
        else:
            context.reset()

    config.on_change.append(settings_changed)
    context_hooks.append(inside)
    settings_changed()
    if trace_state.contexts:
        inside(True)


_follow_context()


class Compiled(NamedTuple):
    """A program compiled for one device.

    Attributes:
        executable: it takes the operands that are used.
        kept: which of (constants, arguments) those are.
        consts: buffers of the constants.
        callbacks: Python functions that it calls.
        name: the program's, for messages.
        nbytes: bytes of the machine's memory that its results and temporaries take.
    """

    executable: Any
    kept: tuple[bool, ...]
    consts: list[Any]
    callbacks: list[Callable[..., Any]]
    name: str
    nbytes: int

    def run(self, args: Sequence[Array]) -> list[Array]:
        """Run on arrays; the results are computed when they are read.

        Raises:
            MemoryError: the results and temporaries are larger than the machine's memory.
        """
        if self.nbytes > _LARGE:
            check_memory(self.nbytes, f"{self._program()} (results and temporaries)")
        buffers = [*self.consts, *(x._buf for x in args)]
        used = [b for b, keep in zip(buffers, self.kept, strict=True) if keep]
        try:
            outs = _run_with_callbacks(self.executable, used) if self.callbacks else self.executable(*used)
        except (RuntimeError, ValueError) as error:
            if not _jaxlib.is_out_of_memory(error):
                raise
            raise MemoryError(
                f"{self._program()} takes {bytes_text(self.nbytes)} beside its arguments: {error}"
            ) from None
        return [Array(b) for b in outs]

    def _program(self) -> str:
        results = ", ".join(aval.str_short(short_dtypes=False) for aval in self.executable.out_avals)
        return f"the compiled program {self.name!r}, with results [{results}],"


def _run_with_callbacks(executable: Any, buffers: list[Any]) -> list[Any]:
    """Run, and wait before and after.

    Were such programs queued up, the callbacks of the first could wait for computations of their own that found no
    place behind the others.
    """
    _jaxlib.block_until_ready(buffers)
    try:
        outs: list[Any] = executable(*buffers)
        _jaxlib.block_until_ready(outs)
    except Exception as error:
        failure = host_callback.original_failure(error)
        if failure is error:
            raise
    else:
        return outs
    raise failure


class Lowering(NamedTuple):
    """A program as text.

    Attributes:
        text: StableHLO, with locations.
        kept: which of (constants, arguments) it takes.
        callbacks: Python functions that it calls, by index.
    """

    text: str
    kept: tuple[bool, ...]
    callbacks: list[Callable[..., Any]]


def lower(closed: ClosedJaxpr, name: str, platform: str) -> Lowering:
    """StableHLO of a program."""
    jaxpr = closed.jaxpr
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var} | {
        v for v in jaxpr.outvars if type(v) is Var
    }
    kept = tuple(v in used for v in (*jaxpr.constvars, *jaxpr.invars))
    builder = ModuleBuilder(platform, name)
    builder.add_main(closed, kept)
    return Lowering(builder.text(f"jit_{name}", locations=True), kept, builder.callbacks)


def compiled(closed: ClosedJaxpr, name: str, backend: str | None) -> Compiled:
    """The program's executable; compiled at the first call, by one thread while others that ask for it wait."""
    key = ("executable", backend, config.rule_overrides)  # which rules it was translated by
    found = closed.memo.get(key)
    if found is None:
        device = _jaxlib.default_device() if backend is None else _jaxlib.devices(backend)[0]
        # Reentrant, and of one program only: rules that run meanwhile may compile, and wait for threads that compile.
        with closed.memo.setdefault(("compiling", *key), threading.RLock()):
            try:
                found = closed.memo.get(key)
                if found is None:
                    found = closed.memo[key] = _compile(closed, name, device)
                    _programs.add(closed)
            finally:
                closed.memo.pop(("compiling", *key), None)
    return found  # type: ignore[no-any-return]


def _compile(closed: ClosedJaxpr, name: str, device: Any) -> Compiled:
    started = time.perf_counter()
    text, kept, callbacks = lower(closed, name, device.platform)
    module = _jaxlib.parse_module(text)
    executable = _jaxlib.compile_module(module, closed.out_avals, device, callbacks=callbacks)
    consts = [as_array(c)._buf for c in closed.consts]
    if observe.observed():
        _report(closed, name, device.platform, 1000 * (time.perf_counter() - started))
    nbytes = executable.nbytes() if device.platform == "cpu" else 0
    return Compiled(executable, kept, consts, callbacks, name, nbytes)


_programs: LiveSet[ClosedJaxpr] = LiveSet()  # those with an executable in their memo


@clears_cache
def _clear_executables() -> None:
    _jaxlib.forget_readers()
    for closed in _programs:
        for key in list(closed.memo):
            if _is_executable(key):
                closed.memo.pop(key, None)


def _is_executable(key: Any) -> bool:
    return isinstance(key, tuple) and key[:1] == ("executable",)


def _report(closed: ClosedJaxpr, name: str, platform: str, ms: float) -> None:
    """Tell observers of a compilation."""
    elsewhere = any(_is_executable(key) for key in closed.memo)
    why = f"first run on platform {platform!r}" if elsewhere else "first run of this program"
    facts = {"platform": platform, "equations": len(closed.jaxpr.eqns)}
    observe.notify(observe.Event("compile", name, (why,), ms, facts))


def execute(closed: ClosedJaxpr, args: Sequence[Array], name: str, backend: str | None) -> list[Array]:
    """Compile a program if need be, and run it."""
    return compiled(closed, name, backend).run(args)
