"""The fast path of a jitted call: jaxlib's C++ dispatcher over corejax arrays.

A dispatcher flattens the arguments, looks their signature up (tree, shapes, dtypes, weak types, devices),
runs the executable found there and builds the result, in C++ and without the interpreter in between: about 4
us for two arrays. Everything it cannot do (a first call, a tracer, a type that it does not know) goes to
``cache_miss`` in Python.

It sees pytrees, device buffers, and NumPy arrays and scalars. A :class:`DispatchRegistry`, private to corejax,
holds the array class as a node whose child is its buffer. Python scalars are nodes, too, whose child is an
array: the node tells their signature from an array's. Children of scalars that come again are remembered.

NumPy values are the dispatcher's own to put on the device. It makes them 32 bits wide where its 64-bit setting is
off, to which jax listens from its import on; and it reads the memory of large ones when the call has returned, and
the caller may have written to it (see :data:`SMALL`). So registries are of two kinds: in one that makes buffers,
host values are nodes whose child is a buffer that we made.
"""

from __future__ import annotations

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

from ._buffers import Buffer, place
from ._dispatch_state import make_dispatcher
from ._executable import Executable, FastpathData
from ._probe import core

_MOST_SIGNATURES = 4096  # of one dispatcher; the least recently used are dropped
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
"""A node's children and metadata where it cannot be taken apart: the dispatcher does not know the child, so that the
call takes the slow path, which says what is wrong.

A node's function does not raise: jaxlib counts nested containers as levels of recursion, and does not count back then,
so that a thousand such calls would be Python's last.
"""

ASK_AGAIN = object()
"""A result of `cache_miss`: the next call of the signature is another miss, and this one has made nobody wait."""

SMALL = 65536
"""Bytes up to which a dispatcher copies what it does not alias before the call returns (XLA copies 100 kB at once)."""


class DispatchRegistry:
    """The pytrees that corejax's dispatchers understand.

    Tuples, lists, dicts, named tuples and ``None`` as everywhere; ``OrderedDict``, ``defaultdict``,
    ``deque``; the array class; and whatever :meth:`register_node` adds. An instance of any other class is a
    leaf that the dispatcher does not know, and calls with it take the slow path.

    Args:
        array_type: the class of arrays; ``array._buf`` is an array's buffer.
        to_array: makes an array of a result: ``to_array(None, (buffer,))``.
        to_buffer: makes the buffer of a NumPy array or a scalar, with the aval that says its shape, dtype and weak
            type. What it raises reaches the caller of the jitted function.
        wait: called with ``array._buf`` before the program gets it. Arrays are then taken apart in Python, and
            otherwise in C++, which saves about 0.2 us of a call.
    """

    def __init__(
        self,
        array_type: type,
        to_array: Callable[[None, tuple[Buffer]], Any],
        to_buffer: Callable[[Any], Buffer],
        *,
        wait: Callable[[Any], None] | None = None,
    ) -> None:
        self.array_type = array_type
        self._to_buffer = to_buffer
        self._registry = core.pytree.PyTreeRegistry()
        # Results are put together by a registry of their own: C++ puts dataclasses together in twice the time of nodes,
        # and takes them apart in half of it.
        self._results = core.pytree.PyTreeRegistry()
        self._results.register_node(array_type, lambda array: ((array._buf,), None), to_array)
        if wait is None:
            self._registry.register_dataclass_node(array_type, ["_buf"], [])
        else:
            self._registry.register_node(array_type, _waiting(wait), _never)

        self.makes_buffers = False
        self._scalars = {kind: _ScalarChildren(kind, to_buffer) for kind in _SCALARS}
        for kind, children in self._scalars.items():
            self._registry.register_node(kind, children.__getitem__, _never)
        self._register_containers()

    def make_scalars(self, dtypes: Mapping[type, np.dtype[Any]]) -> None:
        """Have Python scalars made arrays of these dtypes, by type; they are made buffers until then."""
        for kind, dtype in dtypes.items():
            self._scalars[kind].made_by(lambda value, array=np.array, dtype=dtype: array(value, dtype))

    def make_buffers(self) -> None:
        """Have host values made buffers from now on, whatever dispatchers knew before."""
        if self.makes_buffers:
            return
        self.makes_buffers = True
        for children in self._scalars.values():
            children.made_by(self._to_buffer)
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
    ) -> None:
        """Teach dispatchers a container: ``flatten(x) -> (children, aux)`` and ``unflatten(aux, children)``.

        The same two functions that optree's registry has; ``aux`` must be hashable. Order of children has to
        agree with optree's. Raises ``ValueError`` if the class is known already.
        """
        self._registry.register_node(kind, flatten, unflatten)
        self._results.register_node(kind, flatten, unflatten)

    def is_node(self, kind: type) -> bool:
        """Whether instances of exactly this class are taken apart."""
        return self._registry.is_node(kind)

    def flatten(self, tree: Any) -> tuple[list[Any], Any]:
        """Leaves as a dispatcher sees them (buffers, or what it does not know) and the tree around them."""
        return self._registry.flatten(tree)

    def flatten_result(self, tree: Any) -> tuple[list[Any], Any]:
        """The same of a result, with the tree that puts its like together."""
        return self._results.flatten(tree)

    def inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The inputs of a call, in the order in which a dispatcher passes them to the executable.

        ``None`` if some leaf is not a buffer, nor a NumPy value that the dispatcher takes, so that there can be no
        fast path. Leave out static arguments.
        """
        leaves, _ = self._registry.flatten((args, kwargs))
        known = (Buffer,) if self.makes_buffers else (Buffer, np.ndarray, *_NUMPY_SCALARS)
        return leaves if all(type(leaf) in known for leaf in leaves) else None


_MOST_SCALARS = 1024  # of one type that are remembered


class _ScalarChildren(dict[Any, tuple[tuple[Any], None]]):
    """How Python scalars of one type are taken apart: `scalars[value]` are a node's children and what else it has.

    Looking up what came before runs no Python. Not remembered are zeros of floats, for 0.0 equals -0.0; complex
    numbers, whose parts may be such; NaNs, which equal nothing; and buffers, for a program may be given their memory.
    """

    def __init__(self, kind: type, to_buffer: Callable[[Any], Buffer]) -> None:
        super().__init__()
        self._kind = kind
        self._to_buffer = self._make = to_buffer

    def made_by(self, make: Callable[[Any], Any]) -> None:
        """Have arrays, or buffers, made by this function from now on."""
        self._make = make
        self.clear()

    def __missing__(self, value: Any) -> tuple[tuple[Any], None]:
        make = self._make
        try:
            child = make(value)
        except OverflowError:
            return UNKNOWN
        children = (child,), None
        if type(child) is np.ndarray and self._kind is not complex and (self._kind is not float or 0 != value == value):
            if len(self) >= _MOST_SCALARS:
                self.clear()
            self[value] = children
            if self._make is not make:  # another thread has changed it meanwhile
                self.clear()
        return children


def _waiting(wait: Callable[[Any], None]) -> Callable[[Any], tuple[tuple[Any], None]]:
    """How arrays are taken apart of programs that run when the arguments are there."""

    def to_children(array: Any) -> tuple[tuple[Any], None]:
        wait(array._buf)
        return (array._buf,), None

    return to_children


def _never(aux: Any, children: Any) -> Any:
    raise TypeError("arguments of a dispatcher are never put together")


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
    """A callable that runs compiled programs by signature.

    Args:
        name: shown in its ``repr`` and in profiles.
        cache_miss: called as the callable itself was, where no fast path is known. Returns the result for the
            caller and, where calls of the same signature may skip Python from now on, what
            :func:`make_fastpath_data` made. The result may be :data:`ASK_AGAIN`.
        registry: the pytrees of arguments and results.
        static_argnums: positions of hashable arguments that are part of the signature; not negative.
        static_argnames: the same for keyword arguments.

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
    without_dispatcher.__wrapped__ = _Dispatched(dispatcher)  # type: ignore[attr-defined]
    return dispatcher


class _Dispatched:
    """Tells the signature of what a dispatcher wraps: jaxlib's asks the function that runs without it."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = weakref.ref(dispatcher)  # which holds this

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._dispatcher().__wrapped__)


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
    """What a dispatcher needs to repeat a call, or ``None`` where it could not build the result.

    Args:
        executable: its inputs are the kept ones of ``(*consts, *arguments)``, its outputs the leaves of
            ``result``.
        result: what the call returned: a pytree of arrays that hold the executable's output buffers, in its
            order.
        registry: the dispatcher's.
        num_args: how many leaves the dynamic arguments have.
        kept: which of ``(*consts, *arguments)`` the executable takes; all unless given.
        consts: buffers of values that the function closed over.
        committed: whether an argument is bound to the device.
    """
    leaves, out_tree = registry.flatten_result(result)
    same = len(leaves) == len(executable.out_avals) and all(
        type(leaf) is Buffer and leaf.aval is aval for leaf, aval in zip(leaves, executable.out_avals, strict=True)
    )
    if not same:
        return None
    keep = [True] * (len(consts) + num_args) if kept is None else kept
    return executable.fastpath_data(out_tree, keep, consts, committed)
