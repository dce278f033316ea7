"""What `jit` returns: the backend's dispatcher itself, or a callable that runs Python around it."""

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
    """Return what users hold of a jitted function: a callable that looks like the function, with methods.

    The callable holds the `Jitted`, which gets a weak reference to it; `remake(fun, options)` makes copies.
    """
    call = None if jitted.tier == "auto" else _dispatcher(jitted)
    if call is None or jitted.static or jitted.donated:
        call = JittedCall(jitted, call)
    jitted.call = weakref.ref(call)
    functools.update_wrapper(call, jitted.fun)
    for name in ("trace", "lower", "eval_shape", "clear_cache", "_compilation"):
        setattr(call, name, getattr(jitted, name))
    call._cache_size = lambda: len(jitted.traces)  # jaxlib's own counts the signatures that need no Python
    # `copy` and `pickle` look this up in the instance, whose class is jaxlib's.
    call.__reduce_ex__ = functools.partial(_reduced, jitted.call, jitted.fun, jitted.options, remake)
    return call


def _dispatcher(jitted: Any) -> Any:
    """Return a dispatcher of the backend that is to compile, as far as it is known now; None if it has none."""
    try:
        backend, _ = backends.find(jitted.options.backend)
    except (BackendError, PluginError):
        return None  # the first call raises it
    if not backend.capabilities.dispatcher:
        return None
    static = jitted.static
    return backend.dispatcher(jitted.name, jitted.miss, static_argnums=static.numbers, static_argnames=static.names)


def _reduced(call: weakref.ref[Any], fun: Callable[..., Any], options: Any, remake: Remake, protocol: Any) -> Any:
    """Pickle a decorated function by its name, as functions are; another as its function and the options."""
    name = str(getattr(fun, "__qualname__", ""))
    found: Any = sys.modules.get(str(getattr(fun, "__module__", "")))
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is call() else (remake, (fun, options))


class JittedCall:
    """A jitted function of which every call runs Python: before, after, or in place of the dispatcher.

    There are four reasons: an error about a static argument has to name it; donated arrays are deleted after the call;
    `tier="auto"` has no dispatcher until the program is compiled; and the backend may have none.
    """

    __slots__ = ("__dict__", "__weakref__", "_dispatcher", "_donated", "_jitted")

    def __init__(self, jitted: Any, dispatcher: Any) -> None:
        self._jitted = jitted
        self._dispatcher = dispatcher
        self._donated = jitted.donated or None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._dispatcher or self._miss
        try:
            try:
                if self._donated is None:
                    return call(*args, **kwargs)
                return run_donating(call, args, kwargs, self._donated.given(args, kwargs), self._jitted.name)
            except ValueError:  # of the dispatcher, for a static argument without a hash; or of the user's function
                self._jitted.static.split(args, kwargs)
                raise
        except frames_left_out():  # as `api_boundary`, without its call
            raise

    def _miss(self, *args: Any, **kwargs: Any) -> Any:
        return self._jitted.miss(*args, **kwargs)[0]

    def _begin(self) -> None:
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
        """The wrapped function's, also for libraries that do not follow `__wrapped__`."""
        return inspect.signature(self.__wrapped__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        plain = self._dispatcher is None or self._jitted.options.tier is not None
        return f"<jitted function {self._jitted.name}>" if plain else repr(self._dispatcher)


def begin_dispatch(call: Any) -> None:
    """Have the next call run the compiled program: by a dispatcher that has not learned any signature yet."""
    if type(call) is JittedCall:
        call._begin()
    elif call is not None:
        call._clear_cache()


def let_others_in(call: Any) -> None:
    """Have calls that begin from now on not wait for calls that are going on and have no program yet.

    A dispatcher forgets its programs; those that call back are in one beside it, which makes no call wait.
    """
    dispatcher = call._dispatcher if type(call) is JittedCall else call
    clear = getattr(type(dispatcher), "_clear_cache", None)
    if clear is not None:
        clear(dispatcher)


def run_donating(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], donated: list[Any], name: str
) -> Any:
    """Return `call(*args, **kwargs)`; delete the arrays in `donated`, some of its arguments, whose memory it took.

    If an interrupt keeps them from being marked, their buffers still say that they are deleted, if not by what.

    Raises:
        ValueError: an array is donated, and an argument a second time.
    """
    donation = donating(_arrays(donated), name)
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
        f"jit of {name}: an array that is donated is an argument of the same call a second time; pass a copy "
        "(x.copy()) as one of them"
    )


def _arrays(donated: list[Any]) -> list[Array]:
    """Return the arrays in arguments, in any order; those in one container are found without `tree`."""
    found: list[Array] = []
    for x in donated:
        items = x.values() if type(x) is dict else x if type(x) in (list, tuple) else (x,)
        one_level = set(map(type, items)) == {Array}
        found += items if one_level else [leaf for leaf in tree.tree_leaves(x) if type(leaf) is Array]
    return found
