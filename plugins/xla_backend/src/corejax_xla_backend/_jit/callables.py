"""What `jit` gives users: a backend's dispatcher, or a callable in Python, that can be copied and pickled."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from corejax.extend import api_boundary, frames_left_out
from corejax_xla_backend._jit.options import JitOptions


class PythonCallable:
    """Takes attributes, and binds as a method, as functions do."""

    __slots__ = ("__dict__", "__weakref__")

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        """The wrapped function's, also for who does not follow `__wrapped__`."""
        return inspect.signature(self.__wrapped__)  # type: ignore[attr-defined]


class UndispatchedCall(PythonCallable):
    """For a backend without a dispatcher: asks for each call what to do.

    Args:
        name: the function's.
        miss: gives the result of a call, and how to repeat it.
    """

    __slots__ = ("_call", "_name")

    def __init__(self, name: str, miss: Callable[..., tuple[Any, Any]]) -> None:
        self._name = name
        self._call = api_boundary(lambda *args, **kwargs: miss(*args, **kwargs)[0])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def _clear_cache(self) -> None:
        """It keeps nothing."""

    def __repr__(self) -> str:
        return f"<jitted function {self._name}>"


class TieredCall(UndispatchedCall):
    """For `tier="auto"`: asks for each call what to do until `begin` gives it a dispatcher.

    Args:
        name: the function's.
        miss: gives the result of a call, and how to repeat it.
        make: makes the dispatcher; None where the backend has none.
    """

    __slots__ = ("_dispatch", "_make")

    def __init__(self, name: str, miss: Callable[..., tuple[Any, Any]], make: Callable[[], Any]) -> None:
        super().__init__(name, miss)
        self._make = make
        self._dispatch: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._call if self._dispatch is None else self._dispatch
        return call(*args, **kwargs)

    def begin(self) -> None:
        """Have calls go to a dispatcher, which knows none yet."""
        if self._dispatch is None:
            self._dispatch = self._make()
        self._clear_cache()

    def _clear_cache(self) -> None:
        if self._dispatch is not None:
            self._dispatch._clear_cache()

    def _let_others_in(self) -> None:
        let_others_in(self._dispatch)


def let_others_in(call: Any) -> None:
    """Have what `jit` gives make nobody wait for calls that are going on, and that it has no program for yet."""
    let_in = getattr(call, "_let_others_in", None) or getattr(call, "_clear_cache", None)
    if let_in is not None:
        let_in()


class CheckedCall(PythonCallable):
    """A dispatcher of a function with static arguments; what goes wrong with these is told with their names.

    Args:
        dispatch: the dispatcher, which raises `ValueError` for an argument that is not hashable.
        check: called with the call's arguments after that; raises an error that names the argument.
    """

    __slots__ = ("_check", "_dispatch")

    def __init__(self, dispatch: Callable[..., Any], check: Callable[..., Any]) -> None:
        self._dispatch = dispatch
        self._check = check

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return self._dispatch(*args, **kwargs)
            except ValueError:  # or it is what the user's function raises
                self._check(args, kwargs)
                raise
        except frames_left_out():  # as `api_boundary`, without its call
            raise

    def __repr__(self) -> str:
        return repr(self._dispatch)


Remake = Callable[[Callable[..., Any], JitOptions], Any]


def completed(
    call: Any, fun: Callable[..., Any], options: JitOptions, remake: Remake, **methods: Callable[..., Any]
) -> Any:
    """`call`, looking like `fun`, with methods; it is copied and pickled as `remake(fun, options)`."""
    functools.update_wrapper(call, fun)
    for name, method in methods.items():
        setattr(call, name, method)
    # `copy` and `pickle` look this up in the instance, whose class is jaxlib's.
    call.__reduce_ex__ = functools.partial(_reduced, weakref.ref(call), fun, options, remake)
    return call


def _reduced(
    call: weakref.ref[Any], fun: Callable[..., Any], options: JitOptions, remake: Remake, protocol: Any
) -> Any:
    """A decorated function goes by its name, as functions do; another as its function and the options."""
    name = str(getattr(fun, "__qualname__", ""))
    found: Any = sys.modules.get(str(getattr(fun, "__module__", "")))
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is call() else (remake, (fun, options))
