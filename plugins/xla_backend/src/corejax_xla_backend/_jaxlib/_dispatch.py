"""The fast path of a jitted call: jaxlib's C++ dispatcher over corejax arrays.

A dispatcher flattens the arguments, looks up their signature (tree, shapes, dtypes, weak types, devices), runs
the cached executable and builds the result. All of this happens in C++, without the Python interpreter: about 4
us for two arrays. Whatever the dispatcher cannot handle (a first call, a tracer, an unknown type) goes to
``cache_miss`` in Python.

The dispatcher understands pytrees, device buffers, and NumPy arrays and scalars. A :class:`DispatchRegistry`,
private to corejax, registers the array class as a node with its buffer as the only child. Python scalars are
nodes with an array as the child, so that their signature differs from an array's; these children are cached.

The dispatcher itself puts NumPy values on the device. Two of its habits are wrong for us. It narrows them to 32
bits if its 64-bit setting is off, and jax controls that setting once it is imported. And it may read the memory of
large arrays after the call has returned, when the caller may have modified it (see :data:`SMALL`). So a registry
has a second mode (:meth:`DispatchRegistry.make_buffers`), in which a host value is a node and its child a buffer
that we made.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from corejax.extend.messages import api_boundary
from corejax_xla_backend._exit import stop_at_exit
from corejax_xla_backend._live import clear_dispatchers

from ._buffers import place
from ._classes import Buffer
from ._dispatch_state import make_dispatcher
from ._executable import Executable, FastpathData
from ._probe import core

_MOST_SIGNATURES = 4096  # cached by one dispatcher, which evicts the least recently used
_SCALARS: tuple[type, ...] = (bool, int, float, complex)
_NUMPY_SCALARS: tuple[type, ...] = tuple(
    {np.dtype(code).type for code in "?bhilqBHILQefdFD"}
    | {
        kind
        for kind in vars(ml_dtypes).values()
        if isinstance(kind, type) and kind not in (ml_dtypes.finfo, ml_dtypes.iinfo)
    }
)

UNKNOWN: tuple[tuple[Any], None] = (object(),), None
"""The children and metadata of a node that cannot be flattened: the dispatcher does not know the child, so that the
call takes the slow path, which reports the error.

A node's flatten function must not raise: jaxlib counts nested containers as levels of recursion and does not restore
the count after an exception, so that a thousand such calls would exhaust Python's recursion limit.
"""

ASK_AGAIN = object()
"""A result of `cache_miss` that makes the dispatcher drop the entry: the next call of the signature is a miss again.

No other thread waits for such a call.
"""

SMALL = 65536
"""The dispatcher copies arrays of up to this many bytes, unless it aliases them, before the call returns.

(XLA copies up to 100 kB at once.)
"""


class DispatchRegistry:
    """The pytrees that corejax's dispatchers understand.

    These are tuples, lists, dicts, named tuples and ``None``; ``OrderedDict``, ``defaultdict`` and ``deque``; the
    array class; and the classes that :meth:`register_node` adds. An instance of any other class is a leaf that the
    dispatcher does not know, and calls with it take the slow path.

    Args:
        array_type: the class of arrays; ``array._buf`` is an array's buffer.
        to_array: makes an array from a result: ``to_array(None, (buffer,))``.
        to_buffer: makes the buffer of a NumPy array or a scalar, with the aval that has its shape, dtype and weak
            type. Exceptions that it raises reach the caller of the jitted function.
    """

    def __init__(
        self,
        array_type: type,
        to_array: Callable[[None, tuple[Buffer]], Any],
        to_buffer: Callable[[Any], Buffer],
    ) -> None:
        self.array_type = array_type
        self._to_buffer = to_buffer
        self._registry = core.pytree.PyTreeRegistry()
        # Results have a registry of their own. In C++ dataclasses flatten in half the time of nodes, which suits
        # arguments, but unflatten in twice the time, so results use nodes.
        self._results = core.pytree.PyTreeRegistry()
        self._results.register_node(array_type, lambda array: ((array._buf,), None), to_array)
        # Host values are leaves of a third registry, so that it makes no buffers of them.
        self._arrays = core.pytree.PyTreeRegistry()
        for registry in (self._registry, self._arrays):
            registry.register_dataclass_node(array_type, ["_buf"], [])

        self.makes_buffers = False
        self._scalars = {kind: _ScalarChildren(kind, to_buffer) for kind in _SCALARS}
        for kind, children in self._scalars.items():
            self._registry.register_node(kind, children.__getitem__, _never)
        self._register_containers()

    def make_scalars(self, dtypes: Mapping[type, np.dtype[Any]]) -> None:
        """Convert Python scalars to NumPy arrays of these dtypes from now on; before, they become buffers."""
        for kind, dtype in dtypes.items():
            self._scalars[kind].convert_by(functools.partial(np.array, dtype=dtype))

    def make_buffers(self) -> None:
        """Convert all host values to buffers from now on, and clear the dispatchers' caches."""
        if self.makes_buffers:
            return
        self.makes_buffers = True
        for children in self._scalars.values():
            children.convert_by(self._to_buffer)
        to_buffer = self._to_buffer

        def host_to_children(value: Any) -> tuple[tuple[Buffer], None]:
            return (to_buffer(value),), None

        for kind in (np.ndarray, *_NUMPY_SCALARS):
            self._registry.register_node(kind, host_to_children, _never)
        clear_dispatchers()

    def _register_containers(self) -> None:
        self.register_node(
            OrderedDict,
            lambda x: (tuple(x.values()), tuple(x)),
            lambda keys, xs: OrderedDict(zip(keys, xs, strict=True)),
        )
        self.register_node(deque, lambda x: (tuple(x), x.maxlen), lambda maxlen, xs: deque(xs, maxlen))
        self.register_node(defaultdict, _flatten_defaultdict, _unflatten_defaultdict)

    def register_node(
        self,
        kind: type,
        flatten: Callable[[Any], tuple[Iterable[Any], Any]],
        unflatten: Callable[[Any, Iterable[Any]], Any],
        flatten_argument: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
    ) -> None:
        """Register a container: ``flatten(x) -> (children, aux)`` and ``unflatten(aux, children)``.

        These are the two functions of optree's registry; the order of the children must agree with optree's.
        `flatten_argument`, by default `flatten`, flattens arguments of calls: its ``aux`` must be hashable. Raises
        ``ValueError`` if the class is registered already.
        """
        self._registry.register_node(kind, flatten_argument or flatten, _never)
        self._results.register_node(kind, flatten, unflatten)
        self._arrays.register_node(kind, flatten, _never)

    def is_node(self, kind: type) -> bool:
        """Return whether instances of exactly this class are flattened."""
        return bool(self._registry.is_node(kind))

    def flatten(self, tree: Any) -> tuple[list[Any], Any]:
        """Return the leaves that a dispatcher sees (buffers, or objects that it does not know) and the tree."""
        flat: tuple[list[Any], Any] = self._registry.flatten(tree)
        return flat

    def buffers(self, tree: Any) -> list[Buffer]:
        """Return the buffers of the arrays in a tree."""
        return [leaf for leaf in self._arrays.flatten(tree)[0] if type(leaf) is Buffer]

    def flatten_result(self, tree: Any) -> tuple[list[Any], Any]:
        """Return the leaves of a result and the tree that rebuilds such results."""
        flat: tuple[list[Any], Any] = self._results.flatten(tree)
        return flat

    def inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """Return the inputs of a call, in the order in which a dispatcher passes them to the executable.

        Args:
            args: the positional arguments without static ones.
            kwargs: the keyword arguments without static ones.

        Returns:
            None if some leaf is neither a buffer nor a NumPy value that the dispatcher accepts: the call has no fast
            path then.
        """
        leaves, _ = self._registry.flatten((args, kwargs))
        known = (Buffer,) if self.makes_buffers else (Buffer, np.ndarray, *_NUMPY_SCALARS)
        return leaves if all(type(leaf) in known for leaf in leaves) else None


_MOST_SCALARS = 1024  # cached for each type


class _ScalarChildren(dict[Any, tuple[tuple[Any], None]]):
    """The flatten function of Python scalars of one type, as a cache: `scalars[value]` are its children and metadata.

    A cache hit runs no Python. Four kinds of values are not cached: float zeros, because 0.0 equals -0.0; complex
    numbers, which may have such parts; NaNs, which equal nothing; and buffers, which may be donated to a program.
    """

    def __init__(self, kind: type, to_buffer: Callable[[Any], Buffer]) -> None:
        super().__init__()
        self._kind = kind
        self._make: Callable[[Any], Any] = to_buffer

    def convert_by(self, make: Callable[[Any], Any]) -> None:
        """Convert scalars by this function, to arrays or buffers, from now on."""
        self._make = make
        self.clear()

    def __missing__(self, value: Any) -> tuple[tuple[Any], None]:
        make = self._make
        try:
            child: Any = make(value)
        except OverflowError:
            return UNKNOWN
        children = (child,), None
        if type(child) is np.ndarray and self._kind is not complex and (self._kind is not float or 0 != value == value):
            if len(self) >= _MOST_SCALARS:
                self.clear()
            self[value] = children
            if self._make is not make:  # another thread called `convert_by` in between
                self.clear()
        return children


def _never(aux: Any, children: Any) -> Any:
    raise TypeError("arguments of a dispatcher are never unflattened")


def _flatten_defaultdict(x: defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Any]:
    keys = sorted(x)
    return tuple(x[key] for key in keys), (x.default_factory, tuple(keys))


def _unflatten_defaultdict(aux: Any, children: Iterable[Any]) -> Any:
    factory, keys = aux
    return defaultdict(factory, zip(keys, children, strict=True))


def fast_dispatch(
    name: str,
    cache_miss: Callable[..., tuple[Any, FastpathData | None]],
    registry: DispatchRegistry,
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> Any:
    """Return a callable that runs compiled programs by signature.

    Args:
        name: shown in the callable's ``repr`` and in profiles.
        cache_miss: called with the arguments of a call that has no fast path. Returns the result for the caller
            and the data of :func:`make_fastpath_data` if later calls of the same signature may skip Python, else
            None. The result may be :data:`ASK_AGAIN`.
        registry: the pytrees of arguments and results.
        static_argnums: positions, not negative, of hashable arguments that are part of the signature.
        static_argnames: names of keyword arguments that are part of the signature.

    Returns:
        jaxlib's ``PjitFunction``: attributes can be set on it, it binds as a method, and it has
        ``_cache_size()`` and ``_clear_cache()``.
    """

    @api_boundary
    def _on_miss(*args: Any, **kwargs: Any) -> tuple[Any, FastpathData | None, bool]:
        stop_at_exit()
        result, data = cache_miss(*args, **kwargs)
        return result, data, result is ASK_AGAIN

    @api_boundary
    def without_dispatcher(*args: Any, **kwargs: Any) -> Any:
        return cache_miss(*args, **kwargs)[0]

    dispatcher = make_dispatcher(
        name.encode("utf-8", "replace").decode(),
        without_dispatcher,
        _on_miss,
        list(static_argnums),
        list(static_argnames),
        object(),
        registry._registry,
        place,
        core.PjitFunctionCache(_MOST_SIGNATURES),
    )
    without_dispatcher.__wrapped__ = _Dispatched(dispatcher)  # type: ignore[attr-defined]  # as a wrapper has
    return dispatcher


class _Dispatched:
    """An object with the signature of the wrapped function, for ``inspect.signature`` of a dispatcher.

    jaxlib takes a dispatcher's signature from the function that runs in its place if it is disabled.
    """

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = weakref.ref(dispatcher)  # weak, because the dispatcher refers to this object

    @property
    def __signature__(self) -> inspect.Signature:
        dispatcher: Any = self._dispatcher()
        return inspect.signature(dispatcher.__wrapped__)


def make_fastpath_data(
    executable: Executable,
    result: Any,
    registry: DispatchRegistry,
    *,
    num_args: int,
    kept: Sequence[bool] | None = None,
    consts: Sequence[Buffer] = (),
    committed: bool = False,
) -> FastpathData | None:
    """Return the data that a dispatcher needs to repeat a call, or ``None`` if it cannot build the result.

    Args:
        executable: the program; its inputs are the kept ones of ``(*consts, *arguments)``, its outputs the leaves
            of ``result``.
        result: the result of the call: a pytree of arrays that hold the executable's output buffers, in order.
        registry: the registry of the dispatcher.
        num_args: number of leaves of the dynamic arguments.
        kept: for each of ``(*consts, *arguments)``, whether the executable takes it; all unless given.
        consts: buffers of values that the function closes over.
        committed: whether an argument is bound to the device.
    """
    leaves, out_tree = registry.flatten_result(result)
    is_output = len(leaves) == len(executable.out_avals) and all(
        type(leaf) is Buffer and leaf.aval is aval for leaf, aval in zip(leaves, executable.out_avals, strict=True)
    )
    if not is_output:
        return None
    keep = [True] * (len(consts) + num_args) if kept is None else kept
    return executable.fastpath_data(out_tree, keep, consts, committed)
