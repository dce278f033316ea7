"""The callable that `jit` returns: the backend's dispatcher, or a callable that runs Python around the dispatcher."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from corejax.extend import Array, BackendError, backends, tree
from corejax.extend.devices import donating
from corejax.extend.messages import PluginError, frames_left_out

Remake = Callable[[Callable[..., Any], Any], Any]


def make_callable(jitted: Any, remake: Remake) -> Any:
    """Return the callable that users get from `jit`: it looks like the function and has the methods of `Wrapped`.

    The callable holds the `Jitted`, which gets a weak reference to the callable; `remake(fun, options)` makes copies.
    """
    call: Any = None if jitted.tier == "auto" else _dispatcher(jitted)
    if call is None or jitted.static or jitted.donated:
        call = JittedCall(jitted, call)
    jitted.call = weakref.ref(call)
    functools.update_wrapper(call, jitted.fun)
    for name in ("trace", "lower", "eval_shape", "clear_cache", "_compilation"):
        setattr(call, name, getattr(jitted, name))
    # jaxlib's own `_cache_size` counts only the signatures that its fast path knows.
    call._cache_size = lambda: len(jitted.traces)
    # `copy` and `pickle` look this up in the instance, because the class is jaxlib's.
    call.__reduce_ex__ = functools.partial(_reduced, jitted.call, jitted.fun, jitted.options, remake)
    return call


def _dispatcher(jitted: Any) -> Any:
    """Return a dispatcher of the backend that the options name now; None if the backend has none."""
    try:
        backend, _ = backends.find(jitted.options.backend)
    except (BackendError, PluginError):
        return None  # the first call raises the error
    if not backend.capabilities.dispatcher:
        return None
    static = jitted.static
    return backend.dispatcher(jitted.name, jitted.miss, static_argnums=static.numbers, static_argnames=static.names)


def _reduced(call: weakref.ref[Any], fun: Callable[..., Any], options: Any, remake: Remake, protocol: Any) -> Any:
    """Pickle a decorated function by its name, as Python does; pickle any other by its function and the options."""
    name = str(getattr(fun, "__qualname__", ""))
    global_value: Any = sys.modules.get(str(getattr(fun, "__module__", "")))
    for part in name.split("."):
        global_value = getattr(global_value, part, None)
    return name if global_value is call() else (remake, (fun, options))


class JittedCall:
    """A jitted function that runs Python at every call: before, after, or in place of the dispatcher.

    There are four reasons: an error about a static argument has to name the argument; donated arrays are deleted after
    the call; `tier="auto"` has no dispatcher until the program is compiled; and the backend may have no dispatcher.
    """

    __slots__ = ("__dict__", "__weakref__", "_dispatcher", "_donated", "_jitted")

    def __init__(self, jitted: Any, dispatcher: Any) -> None:
        self._jitted = jitted
        self._dispatcher = dispatcher
        self._donated = jitted.donated or None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._dispatcher or self._miss
        call = getattr(call, "repeat", call)  # shorter for programs with callbacks
        try:
            try:
                if self._donated is None:
                    return call(*args, **kwargs)
                return run_donating(call, args, kwargs, self._donated.select(args, kwargs), self._jitted.name)
            except ValueError:
                # The dispatcher raises this for a static argument without a hash: `split` raises a better error. The
                # user's function may also have raised it.
                self._jitted.static.split(args, kwargs)
                raise
        except frames_left_out():  # does the same as `api_boundary` without a further call
            raise

    def _miss(self, *args: Any, **kwargs: Any) -> Any:
        return self._jitted.miss(*args, **kwargs)[0]

    def _begin(self) -> None:
        """Send calls from now on to a dispatcher with an empty cache."""
        if self._dispatcher is None:
            self._dispatcher = _dispatcher(self._jitted)
        self._clear_cache()

    def _clear_cache(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher._clear_cache()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        """The wrapped function's signature, for libraries that do not follow `__wrapped__`."""
        return inspect.signature(self.__wrapped__)  # type: ignore[attr-defined]  # set by functools.update_wrapper

    def __repr__(self) -> str:
        plain = self._dispatcher is None or self._jitted.options.tier is not None
        return f"<jitted function {self._jitted.name}>" if plain else repr(self._dispatcher)


def begin_dispatch(call: Any) -> None:
    """Send the next call of a jitted function to a dispatcher with an empty cache, so that it runs the program."""
    if type(call) is JittedCall:
        call._begin()
    elif call is not None:
        call._clear_cache()


def unblock_new_calls(call: Any) -> None:
    """Let calls that begin from now on proceed without waiting for calls that are still compiling.

    This clears the dispatcher's cache. Programs that call back are cached in a second dispatcher, which never blocks.
    """
    dispatcher = call._dispatcher if type(call) is JittedCall else call
    clear = getattr(type(dispatcher), "_clear_cache", None)
    if clear is not None:
        clear(dispatcher)


def run_donating(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], donated: list[Any], name: str
) -> Any:
    """Return `call(*args, **kwargs)`, and mark the donated arrays as deleted if the program has taken their memory.

    If an interrupt prevents the marking, an error about such an array still says that it is deleted, but not by which
    call.

    Raises:
        ValueError: a donated array is also another argument of the call.
    """
    arrays = _arrays(donated)
    if not arrays:
        return call(*args, **kwargs)
    donation = donating(arrays, name)
    try:
        try:
            donation.__enter__()
            return call(*args, **kwargs)
        finally:
            donation.restore()
    except Exception as error:
        if "donate(a)" not in str(error):  # the toy example of XLA's message
            raise
    raise ValueError(
        f"jit of {name}: a donated array is passed a second time in the same call; pass a copy (x.copy()) as one of "
        "the two arguments"
    )


def _arrays(donated: list[Any]) -> list[Array]:
    """Return the arrays among the arguments' leaves, in any order; one level of containers takes a fast path."""
    arrays: list[Array] = []
    for x in donated:
        items = x.values() if type(x) is dict else x if type(x) in (list, tuple) else (x,)
        one_level = not items or set(map(type, items)) <= {Array}
        arrays += items if one_level else [leaf for leaf in tree.tree_leaves(x) if type(leaf) is Array]
    return arrays
