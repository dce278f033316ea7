"""The fast path: jaxlib's C++ dispatcher over arrays, which sees their buffers, and what calls depend on besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    RepeatableCall,
    api_boundary,
    as_array,
    config,
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
            return put(value, aval, alias=False)
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


def dispatcher(
    name: str,
    miss: Callable[..., tuple[Any, RepeatableCall | None]],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> Any:
    """jaxlib's C++ dispatcher; see `corejax.extend.Backend.dispatcher`."""

    def missed(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        result, call = miss(*args, **kwargs)
        return result, None if call is None else _fastpath(call)

    return _jaxlib.fast_dispatch(
        name,
        missed,
        dispatch_registry,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        boundary=api_boundary,
    )


def _fastpath(call: RepeatableCall) -> Any:
    executable = call.executable
    if not isinstance(executable, XlaExecutable) or executable.callbacks:
        return None  # another backend's; what callbacks raise is told in Python
    learn_nodes((call.args, call.kwargs, call.result))
    leaves = tree.tree_leaves((call.args, call.kwargs))
    seen = dispatch_registry.buffers(call.args, call.kwargs)
    if seen is None or len(seen) != len(leaves):
        return None  # a pytree that only the Python side knows, or another backend's buffer
    consts = [c._buf for c in call.consts]
    if not all(type(buffer) is _jaxlib.Buffer for buffer in consts):
        return None
    return _jaxlib.make_fastpath_data(
        executable.executable,
        call.result,
        dispatch_registry,
        num_args=len(leaves),
        kept=executable.kept,
        consts=consts,
    )


_settings: dict[Any, int] = {}


def _follow_context() -> None:
    """Make what a call depends on part of the dispatchers' signatures: staging and named axes, and settings."""
    context = _jaxlib.dispatch_context()

    def settings_changed() -> None:
        key = (config.trace_key(), config.backend)
        context.set_default(2 * _settings.setdefault(key, len(_settings)))

    def inside(entered: bool) -> None:
        if entered:
            context.set(1)
        else:
            context.reset()

    config.on_change.append(settings_changed)
    settings_changed()
    on_context(inside)


_follow_context()
