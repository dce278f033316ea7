"""Names of parts of a program: `named_scope`, `named_call`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from corejax.extend import fun_name
from corejax.extend.messages import Restoring, api_boundary
from corejax.extend.transforms import scope


def named_scope(name: str) -> Restoring:
    """Name the operations in a `with` block or, as a decorator, in a function.

    Names nest. They are part of the operations' names in compiled programs (`jit(f)/layer1/dot_general`), where
    profilers and `lower(...).as_text(debug_info=True)` show them. They do not change results. Transformations wrap the
    names of the operations that they generate: `transpose(jvp(layer1))`.

    Args:
        name: any text.

    Returns:
        A context manager, which is also a decorator.

    Raises:
        TypeError: if the name is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope takes a string for a name, got {name!r} of type {type(name).__name__}")
    return scope(name)


P = ParamSpec("P")
R = TypeVar("R")


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Wrap a function so that its operations are in a scope (see `named_scope`).

    Args:
        fun: any function.
        name: name of the scope; by default the function's name.

    Returns:
        The wrapped function.

    Raises:
        TypeError: if `fun` is not a function, or the name is not a string.
    """
    if not callable(fun):
        raise TypeError(f"named_call takes a function, got {fun!r} of type {type(fun).__name__}")
    scope = named_scope(fun_name(fun) if name is None else name)
    return functools.wraps(fun)(api_boundary(scope(fun)))
