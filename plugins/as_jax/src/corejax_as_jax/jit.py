"""`jax.jit`: all `jit(f)` of the same function and options share their traces, as in JAX.

Libraries rely on it: NumPyro jits the same function at each step of a loop.
"""

from __future__ import annotations

import types
import weakref
from typing import Any

import corejax

_JITTED = "__corejax_jitted__"


class _Jitted(dict[Any, Any]):
    """The jitted functions made from a function, by options: an attribute of the function, and freed with it.

    Pickles are empty, because executables belong to this process.
    """

    def __init__(self, fun: Any = None) -> None:
        super().__init__()
        self.owner = None if fun is None else weakref.ref(fun)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _Jitted, ()


def jit(*args: Any, **options: Any) -> Any:
    """Return a compiled version of a function; see `corejax.jit`, which traces the function anew for each version."""
    if len(args) != 1 or type(args[0]) is not types.FunctionType:
        return corejax.jit(*args, **options)
    [fun] = args
    made = fun.__dict__.get(_JITTED)
    if made is None or made.owner is None or made.owner() is not fun:  # `functools.wraps` copies attributes
        made = fun.__dict__[_JITTED] = _Jitted(fun)
    key = tuple(sorted(options.items()))
    try:
        return made.get(key) or made.setdefault(key, corejax.jit(fun, **options))
    except TypeError:  # options that are not hashable, or that `corejax.jit` refuses
        return corejax.jit(fun, **options)
