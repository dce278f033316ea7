"""The fast path of jitted calls: jaxlib's C++ dispatcher.

The dispatcher flattens the arguments, reads the arrays' buffers and types, finds the executable, runs it and wraps the
results, without Python. For this it needs three things from here: functions that flatten arrays and registered
containers (`DispatchRegistry`), a conversion of host values to buffers, and a number for everything else that a call
depends on (`_follow_context`). The invariant: a call that Python would handle differently has another signature, or the
dispatcher never learns it (`_fastpath` returns None).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from corejax.extend import Array, as_array, config, dtypes, get_aval, host_value, tree
from corejax.extend.devices import RepeatableCall, checks_values
from corejax.extend.messages import frames_left_out, observe
from corejax.extend.transforms import on_context
from corejax.extend.types import ElementBuffer, Packed
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._parts import stored_arrays
from corejax_xla_backend._xla.calling_back import CallingBack, can_wait, must_wait
from corejax_xla_backend._xla.executable import XlaExecutable
from corejax_xla_backend.settings import DIRECTIONS

_NOT_AN_ARRAY = object()


def _host_to_buffer(value: Any) -> Any:
    """Return a buffer for a host value; NumPy arrays are copied, because their owner may write to them.

    For a value that is not an array, return a leaf that the dispatcher does not know. The call then goes to Python,
    which names the argument in its error.
    """
    try:
        if type(value) is np.ndarray:
            aval = get_aval(value)
            if aval.dtype is not value.dtype:  # `config.x64_compat` narrows it
                value = host_value(value)
            return _jaxlib.put(value, aval, config.default_device, alias=False)
        return as_array(value)._buf
    except TypeError:
        return _NOT_AN_ARRAY


def _to_array(_: None, children: Any, new: Any = Array.__new__, array_type: type = Array) -> Array:
    """Return `Array(*children)` without a call of the constructor, because this runs for each result of each call."""
    array = new(array_type)
    array._buf = children[0]
    return array  # type: ignore[no-any-return]  # `new` makes an Array


def _plain_buffer(held: Any) -> Any:
    """Return the buffer of numbers behind one with an extended dtype, such as keys."""
    return held.buffer if type(held) is ElementBuffer else held


dispatch_registry = _jaxlib.DispatchRegistry(Array, _to_array, _host_to_buffer)


def _element_buffer(dtype: Any, children: Iterable[Any]) -> ElementBuffer:
    """Return the buffer of an array of an extended dtype from the dispatcher's children and metadata."""
    [buffer] = children
    return ElementBuffer(buffer, dtype)


# The dtype, as metadata, distinguishes keys from plain numbers.
dispatch_registry.register_node(ElementBuffer, lambda x: ((x.buffer,), x.dtype), _element_buffer)
dispatch_registry.register_node(Packed, lambda x: (x.parts, x.aval), lambda aval, parts: Packed(aval, tuple(parts)))


_accelerated = _jaxlib.cuda_plugin_path() is not None  # looked up once, because it searches the file system


def _choose_host_values() -> None:
    """Set the dtypes of Python scalars, and whether all host values become buffers before the dispatcher sees them.

    They become buffers if they are narrowed, which the dispatcher cannot do, or if programs may still read them after a
    call has returned.
    """
    if config.x64_compat or config.cpu_enable_async_dispatch or _accelerated:
        dispatch_registry.make_buffers()
    if not dispatch_registry.makes_buffers:
        # The dispatcher takes three times as long for NumPy scalars as for NumPy arrays.
        dispatch_registry.make_scalars({kind: dtypes.scalar_dtype(kind) for kind in (bool, int, float, complex)})


config.changed.connect(_choose_host_values)
_choose_host_values()
_jaxlib.before_jax(dispatch_registry.make_buffers)


def _with_large_put(args: tuple[Any, ...], kwargs: dict[str, Any], static: set[int]) -> Any:
    """Return a call's `(args, kwargs)` with copies of its large NumPy arrays in buffers; None if it has none.

    C++ reads the memory of such an array after the call has returned, when the array's owner may have written to it.
    `static` has the `id` of each static argument; these are not searched.
    """
    if dispatch_registry.makes_buffers or (not kwargs and set(map(type, args)) == {Array}):
        return None
    leaves, structure = tree.tree_flatten((args, kwargs), is_leaf=(lambda x: id(x) in static) if static else None)
    put = {i: _host_to_buffer(x) for i, x in enumerate(leaves) if type(x) is np.ndarray and _is_large(x)}
    for i, buffer in put.items():
        leaves[i] = leaves[i] if buffer is _NOT_AN_ARRAY else Array(buffer)
    any_put = any(buffer is not _NOT_AN_ARRAY for buffer in put.values())
    return tree.tree_unflatten(structure, leaves) if any_put else None


def _is_large(x: np.ndarray[Any, Any]) -> bool:
    """Return whether jaxlib would read an array after the call; byte-swapped arrays are copied as well."""
    return x.nbytes > _jaxlib.SMALL or not x.dtype.isnative


def learn_nodes(values: Any) -> None:
    """Teach the dispatchers the registered containers in a pytree, so that calls with them take the fast path."""
    for leaf in dispatch_registry.flatten(values)[0]:
        kind = type(leaf)
        if kind is not _jaxlib.Buffer and tree.is_tree_node(kind) and not dispatch_registry.is_node(kind):
            own = tree.node_types.get(kind)
            if own is not None:
                dispatch_registry.register_node(kind, _parts, own.unflatten, _key_parts)
            else:
                dispatch_registry.register_node(kind, _one_level, _from_one_level)
            learn_nodes(leaf)


class _Unhashable:
    """Metadata without a hash, with a copy of its present content, so that a later change makes another key."""

    __slots__ = ("content", "metadata")

    def __init__(self, kind: type, metadata: Any) -> None:
        self.metadata = metadata
        try:
            self.content = tree.metadata_content(kind, metadata)
        except TypeError:
            self.content = object()  # equal to nothing, so that the call goes to Python, which raises the error

    def __eq__(self, other: object) -> bool:
        return type(other) is _Unhashable and self.content == other.content and bool(self.metadata == other.metadata)

    def __hash__(self) -> int:
        return hash(self.content)


def _parts(node: Any) -> tuple[Sequence[Any], Any]:
    """Return children and metadata of a registered node."""
    try:
        return tree.flatten_one_level(node)
    except Exception:
        return _jaxlib.UNKNOWN


def _key_parts(node: Any) -> tuple[Sequence[Any], Any]:
    """Return children and hashable metadata of a node, without a treedef: this runs for each node of each call."""
    children, metadata = _parts(node)
    # A hash that is written in Python may take longer than the rest of a call. It runs once, when the dispatcher learns
    # the call (`_is_constant`).
    if type(type(metadata).__hash__) is FunctionType or _is_hashable(metadata):
        return children, metadata
    return children, _Unhashable(type(node), metadata)


def _is_hashable(metadata: Any) -> bool:
    try:
        hash(metadata)
    except TypeError:
        return False
    return True


def _is_constant(structure: Any) -> bool:
    """Return whether the metadata of all nodes in a dispatcher's tree are hashable, and so never change."""
    kind, metadata = structure.node_data() or (None, None)
    return (kind is dict or _is_hashable(metadata)) and all(map(_is_constant, structure.children()))


def _one_level(node: Any) -> tuple[list[Any], Any]:
    """Flatten one level of a node that another library registered."""
    return tree.tree_flatten(node, is_leaf=lambda x: x is not node)


def _from_one_level(treedef: Any, children: Any) -> Any:
    """Unflatten one level of a node that another library registered."""
    return tree.tree_unflatten(treedef, children)


def dispatcher(
    name: str,
    miss: Callable[..., tuple[Any, RepeatableCall | None]],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> Any:
    """Return jaxlib's C++ dispatcher; see `corejax.extend.Backend.dispatcher`.

    Programs with callbacks go through a second dispatcher (`CallingBack`), which is made at the first such program.
    """

    def make(on_miss: Callable[..., tuple[Any, Any]]) -> Any:
        return _jaxlib.fast_dispatch(
            name, on_miss, dispatch_registry, static_argnums=static_argnums, static_argnames=static_argnames
        )

    def run_miss(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        result, call = miss(*args, **kwargs)
        if call is None or not _calls_back(call):
            return result, None if call is None else _fastpath(call)
        own: Any = this()
        if not hasattr(own, "_calling") and _fastpath(call) is not None:
            own._calling = CallingBack(miss, make, _fastpath, dispatch_registry.buffers)
            own._clear_cache = functools.partial(_clear_both, this)
            own.repeat = functools.partial(_repeat, this)
        return result, None

    def on_miss(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        own: Any = this()
        calling = getattr(own, "_calling", None)
        if calling is not None:
            type(own)._clear_cache(own)  # so that no other call waits for this one, which runs callbacks
            result = calling.call_fast(args, kwargs)
            if result is not _jaxlib.ASK_AGAIN:
                return result, None
        static = {id(x) for i, x in enumerate(args) if i in static_argnums}
        static.update(id(x) for name, x in kwargs.items() if name in static_argnames)
        put = _with_large_put(args, kwargs, static)
        args, kwargs = put or (args, kwargs)
        if calling is not None:
            return calling(args, kwargs), None
        return run_miss(*args, **kwargs) if put is None else (own(*args, **kwargs), None)

    dispatch = make(on_miss)
    this = weakref.ref(dispatch)  # a weak reference, because a dispatcher that held itself would not be freed
    return dispatch


def _repeat(this: weakref.ref[Any], *args: Any, **kwargs: Any) -> Any:
    """Call a dispatcher; a signature that its second dispatcher knows is not looked up in the first one."""
    own: Any = this()
    result = own._calling.call_fast(args, kwargs)
    return own(*args, **kwargs) if result is _jaxlib.ASK_AGAIN else result


def _clear_both(this: weakref.ref[Any]) -> None:
    """Clear the caches of a dispatcher and of its second dispatcher, for programs with callbacks."""
    own: Any = this()
    if own is not None:
        type(own)._clear_cache(own)
        own._calling.dispatch._clear_cache()


def _waits(call: RepeatableCall) -> bool:
    """Return whether calls wait for the first result: `PartitionedExecutable.waits`, or `must_wait` for callbacks."""
    program: Any = getattr(call.executable, "executable", None)
    return must_wait(program) if _calls_back(call) else getattr(program, "waits", False)


def _calls_back(call: RepeatableCall) -> bool:
    """Return whether the program of a call has callbacks."""
    return bool(getattr(call.executable, "callbacks", ()))


class _Awaited(Array):
    """The first result of a program that calls wait for; the other results are computed at the same time."""

    __slots__ = ()


def _awaited(result: Any) -> Any:
    """Return a result with its first array as `_Awaited`, so that dispatchers wait for it."""
    leaves, structure = tree.tree_flatten(result)
    if leaves:
        first = leaves[0]
        [part, *parts] = first.parts if type(first) is Packed else (first,)
        awaited = _Awaited(part._buf, part.aval)
        leaves[0] = Packed(first.aval, (awaited, *parts)) if type(first) is Packed else awaited
    return tree.tree_unflatten(structure, leaves)


def _to_awaited_array(_: None, children: Any) -> Array:
    """Return the array of a result after waiting for it."""
    try:
        _jaxlib.block_until_ready((_plain_buffer(children[0]),))
    except frames_left_out():  # does the same as `api_boundary` without a further call
        raise
    return _to_array(None, children)


dispatch_registry.register_node(_Awaited, lambda x: ((x._buf,), None), _to_awaited_array)


def _fastpath(call: RepeatableCall) -> Any:
    """Return the dispatcher's entry for a call; None if C++ cannot repeat the call."""
    executable = call.executable
    # C++ cannot run another backend's executable, nor raise the error of a callback that a call does not wait for.
    if not isinstance(executable, XlaExecutable) or (executable.callbacks and not can_wait(executable)):
        return None
    arguments = (call.args, call.kwargs)
    leaves = stored_arrays(tree.tree_leaves(arguments))
    learn_nodes((arguments, call.result))
    seen = dispatch_registry.inputs(call.args, call.kwargs)
    if seen is None or len(seen) != len(leaves) or not _is_constant(dispatch_registry.flatten(arguments)[1]):
        return None  # a pytree that only Python can flatten, or another backend's buffer
    consts = [*executable.consts, *(_plain_buffer(const._buf) for const in stored_arrays(call.consts))]
    if not all(type(buffer) is _jaxlib.Buffer for buffer in consts):
        return None
    if isinstance(executable.executable, _jaxlib.PartitionedExecutable):
        consts = executable.executable.placed(consts, executable.kept)
    return _jaxlib.make_fastpath_data(
        executable.executable,
        _awaited(call.result) if _waits(call) else call.result,
        dispatch_registry,
        num_args=len(leaves),
        kept=executable.kept,
        consts=consts,
        committed=any(_jaxlib.is_committed(x) for x in (*consts, *seen) if type(x) is _jaxlib.Buffer),
    )


_settings: dict[Any, int] = {}  # combinations of settings -> their number in the dispatchers' signatures


def _follow_context() -> None:
    """Add the settings, and whether a trace or named axes are in scope, to the dispatchers' signatures."""
    context = _jaxlib.dispatch_context()

    def settings_changed() -> None:
        checked = checks_values() or observe.checking
        key = (config.trace_key(), config.backend, config.default_device, config.disable_jit, checked)
        context.set_global(2 * _settings.setdefault(key, len(_settings)))

    def inside(entered: bool) -> None:
        context.set_local(1 if entered else _jaxlib.NO_CONTEXT)

    config.changed.connect(settings_changed)
    settings_changed()
    on_context(inside)


def _follow_transfer_guards() -> None:
    """Pass the settings of transfer guards to jaxlib; they hold in threads outside of `with transfer_guard(...)`."""
    default = config.transfer_guard
    levels = {name: getattr(config, f"transfer_guard_{name}") or default for name in DIRECTIONS}
    _jaxlib.set_default_transfer_guards(levels)


_follow_context()
config.changed.connect(_follow_transfer_guards)
_follow_transfer_guards()
