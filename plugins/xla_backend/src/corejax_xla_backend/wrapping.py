"""What `jit` gives users: the C++ dispatcher, or a callable around it, that can be copied and pickled."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from corejax.extend import frames_left_out


class Options(NamedTuple):
    """The keyword arguments of `jit`, as they were given."""

    static_argnums: Any
    static_argnames: Any
    inline: bool
    backend: str | None


class CheckedCall:
    """A dispatcher of a function with static arguments; what goes wrong with these is told with their names.

    Args:
        dispatch: the dispatcher, which raises `ValueError` for an argument that is not hashable.
        check: called with the call's arguments after that; raises an error that names the argument.
    """

    __slots__ = ("__dict__", "__weakref__", "_check", "_dispatch")

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

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return repr(self._dispatch)


def completed(
    call: Any, fun: Callable[..., Any], options: Options, again: Callable[..., Any], **methods: Callable[..., Any]
) -> Any:
    """`call`, looking like `fun`, with methods; it is copied and pickled as `again(fun, options)`."""
    functools.update_wrapper(call, fun)
    for name, method in methods.items():
        setattr(call, name, method)
    # `copy` and `pickle` look this up in the instance, whose class is jaxlib's.
    call.__reduce_ex__ = functools.partial(_reduced, weakref.ref(call), fun, options, again)
    return call


def _reduced(
    call: weakref.ref[Any], fun: Callable[..., Any], options: Options, again: Callable[..., Any], protocol: Any
) -> Any:
    """A decorated function goes by its name, as functions do; another as its function and the options."""
    name = str(getattr(fun, "__qualname__", ""))
    found: Any = sys.modules.get(str(getattr(fun, "__module__", "")))
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is call() else (again, (fun, options))
