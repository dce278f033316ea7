"""The fast path: jaxlib's C++ dispatcher over arrays, which sees their buffers, and what calls depend on besides."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    ElementBuffer,
    RepeatableCall,
    api_boundary,
    as_array,
    checks_calls,
    checks_values,
    config,
    dtypes,
    get_aval,
    host_value,
    on_context,
    tree,
)
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._xla.buffers import put
from corejax_xla_backend._xla.executable import XlaExecutable

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
            return put(value, aval, config.default_device, alias=False)
        return as_array(value)._buf
    except TypeError:
        return _NOT_AN_ARRAY


def _to_array(_: None, children: Any, new: Any = Array.__new__, array_type: type = Array) -> Array:
    """`Array(*children)` without the constructor's call: each result of each call comes this way."""
    array = new(array_type)
    array._buf = children[0]
    return array  # type: ignore[no-any-return]


dispatch_registry, copying_registry = (
    _jaxlib.DispatchRegistry(Array, _to_array, _host_to_buffer, field="_buf", always_buffer=True) for _ in range(2)
)
# For calls with large NumPy arrays, which are copied before the program runs.
copying_registry.make_buffers()


for _registry in (dispatch_registry, copying_registry):  # the numbers of keys are told from other numbers by the dtype
    _registry.register_node(
        ElementBuffer, lambda x: ((x.buffer,), x.dtype), lambda dtype, children: ElementBuffer(*children, dtype)
    )


_accelerated = _jaxlib.cuda_plugin_path() is not None  # looked for once: the files' system is asked for it


def _choose_host_values() -> None:
    """How wide Python's scalars are; and whether all host values become buffers before the dispatcher sees them.

    They do where they are narrowed, which it cannot be told, and where programs may run when a call has returned.
    """
    if config.x64_compat or config.cpu_enable_async_dispatch or _accelerated:
        dispatch_registry.make_buffers()
    if not dispatch_registry.makes_buffers:
        # NumPy's scalars cost the dispatcher three times as much as its arrays.
        dispatch_registry.make_scalars({kind: dtypes.scalar_dtype(kind) for kind in (bool, int, float, complex)})


config.follow(_choose_host_values, "x64_compat", "cpu_enable_async_dispatch", "default_dtype_bits")
_jaxlib.before_jax(dispatch_registry.make_buffers)


def _has_large(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call has host values that are copied before it."""
    if not kwargs and set(map(type, args)) == {Array}:
        return False
    return any(map(_is_large, tree.tree_leaves((args, kwargs))))


def _is_large(x: Any) -> bool:
    return type(x) is np.ndarray and (x.nbytes > _jaxlib.SMALL or not x.dtype.isnative)


def learn_nodes(values: Any) -> None:
    """Teach dispatchers the registered containers in a pytree, so that calls with them have a fast path too."""
    for leaf in dispatch_registry.flatten(values)[0]:
        kind = type(leaf)
        if kind is not _jaxlib.Buffer and tree.is_tree_node(kind) and not dispatch_registry.is_node(kind):
            own = tree.is_registered_node(kind)
            parts = (_parts, functools.partial(_from_parts, kind)) if own else (_one_level, _from_one_level)
            for registry in (dispatch_registry, copying_registry):
                registry.register_node(kind, *parts)
            learn_nodes(leaf)


class _Unhashable:
    """Metadata without a hash, and their content as it is now: what is written to them later makes another key."""

    __slots__ = ("content", "metadata")

    def __init__(self, kind: type, metadata: Any) -> None:
        self.metadata = metadata
        try:
            self.content = tree.metadata_content(kind, metadata)
        except TypeError:
            self.content = object()  # equal to nothing, so that the call goes to Python, whose error it is

    def __eq__(self, other: object) -> bool:
        return type(other) is _Unhashable and self.content == other.content and bool(self.metadata == other.metadata)

    def __hash__(self) -> int:
        return hash(self.content)


def _parts(node: Any) -> tuple[list[Any], Any]:
    """Children and metadata of a registered node, without a treedef: each argument of each call comes this way."""
    children, metadata = tree.flatten_one_level(node)
    try:
        hash(metadata)
    except TypeError:
        return children, _Unhashable(type(node), metadata)
    return children, metadata


def _from_parts(kind: type, metadata: Any, children: Any) -> Any:
    if type(metadata) is _Unhashable:
        metadata = metadata.metadata
    return tree.unflatten_one_level(kind, metadata, children)


def _one_level(node: Any) -> tuple[list[Any], Any]:
    return tree.tree_flatten(node, is_leaf=lambda x: x is not node)  # type: ignore[no-any-return]


def _from_one_level(treedef: Any, children: Any) -> Any:
    return tree.tree_unflatten(treedef, children)


def dispatcher(
    name: str,
    miss: Callable[..., tuple[Any, RepeatableCall | None]],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> Any:
    """jaxlib's C++ dispatcher; see `corejax.extend.Backend.dispatcher`."""
    options = {"static_argnums": static_argnums, "static_argnames": static_argnames, "boundary": api_boundary}

    def asked(registry: _jaxlib.DispatchRegistry, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        result, call = miss(*args, **kwargs)
        if call is not None and _waits(call):
            this()._waits = True
        return result, None if call is None else _fastpath(call, registry)

    def second(attribute: str, registry: _jaxlib.DispatchRegistry) -> Any:
        """Another dispatcher, for calls that this one does not repeat; this one has it as an attribute."""
        own = this()
        if not hasattr(own, attribute):
            missed_again = functools.partial(asked, registry)
            setattr(own, attribute, _jaxlib.fast_dispatch(name, missed_again, registry, **options))
            kind = type(own)
            own._clear_cache = lambda: (kind._clear_cache(this()), *[d._clear_cache() for d in _seconds(this())])
        return getattr(own, attribute)

    def missed(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        own = this()
        if not dispatch_registry.makes_buffers and _has_large(args, kwargs):
            result = second("_copying", copying_registry)(*args, **kwargs)
            return _waited_for(result) if hasattr(own, "_waits") else result, None
        if hasattr(own, "_waits"):
            return _waited_for(second("_waiting", dispatch_registry)(*args, **kwargs)), None
        result, fastpath = asked(dispatch_registry, *args, **kwargs)
        return result, None if hasattr(own, "_waits") else fastpath

    dispatch = _jaxlib.fast_dispatch(name, missed, dispatch_registry, **options)
    this = weakref.ref(dispatch)  # a dispatcher that held itself would not be freed
    return dispatch


def _seconds(dispatch: Any) -> list[Any]:
    return [getattr(dispatch, name) for name in ("_copying", "_waiting") if hasattr(dispatch, name)]


def _waits(call: RepeatableCall) -> bool:
    """Whether the program is waited for (see `PartitionedExecutable.waits`)."""
    return getattr(getattr(call.executable, "executable", None), "waits", False)


def _waited_for(result: Any) -> Any:
    """The results of a program; all of them are there when the first one is. Tracers wait for nothing."""
    alone = type(result) is list and len(result) == 1 and type(result[0]) is Array
    for x in result if alone else tree.tree_leaves(result)[:1]:
        if type(x) is Array:
            x.block_until_ready()
    return result


def _fastpath(call: RepeatableCall, registry: _jaxlib.DispatchRegistry) -> Any:
    executable = call.executable
    if not isinstance(executable, XlaExecutable) or executable.callbacks:
        return None  # another backend's; what callbacks raise is told in Python
    leaves = tree.tree_leaves((call.args, call.kwargs))
    learn_nodes((call.args, call.kwargs, call.result))
    seen = registry.inputs(call.args, call.kwargs)
    if seen is None or len(seen) != len(leaves):
        return None  # a pytree that only the Python side knows, or another backend's buffer
    consts = [*executable.consts, *map(_buffer, call.consts)]
    if not all(type(buffer) is _jaxlib.Buffer for buffer in consts):
        return None
    if isinstance(executable.executable, _jaxlib.PartitionedExecutable):
        consts = executable.executable.placed(consts, executable.kept)
    return _jaxlib.make_fastpath_data(
        executable.executable,
        call.result,
        registry,
        num_args=len(leaves),
        kept=executable.kept,
        consts=consts,
        committed=any(_jaxlib.is_committed(x) for x in (*consts, *seen) if type(x) is _jaxlib.Buffer),
    )


def _buffer(const: Any) -> Any:
    held = const._buf
    return held.buffer if type(held) is ElementBuffer else held


_settings: dict[Any, int] = {}


def _follow_context() -> None:
    """Make what a call depends on part of the dispatchers' signatures: staging and named axes, and settings."""
    context = _jaxlib.dispatch_context()

    def settings_changed() -> None:
        checked = checks_values() or checks_calls()
        key = (config.trace_key(), config.backend, config.default_device, config.disable_jit, checked)
        context.set_default(2 * _settings.setdefault(key, len(_settings)))

    def inside(entered: bool) -> None:
        if entered:
            context.set(1)
        else:
            context.reset()

    config.on_change.append(settings_changed)
    settings_changed()
    on_context(inside)


_DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")


def _follow_transfer_guards() -> None:
    """The settings hold in every thread that is in no `with transfer_guard(...)`."""
    every = config.transfer_guard
    levels = {name: getattr(config, f"transfer_guard_{name}") or every for name in _DIRECTIONS}
    _jaxlib.set_default_transfer_guards(levels)


_follow_context()
config.follow(_follow_transfer_guards, "transfer_guard", *(f"transfer_guard_{name}" for name in _DIRECTIONS))
