"""Functions and primitives that rows of tables define, by their names in `corejax.lax`; primitives are `name_p`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from corejax.extend import Primitive

__all__ = ["named"]  # in `corejax.lax`, for other plugins

ROWS: dict[str, Any] = {}

F = TypeVar("F", bound=Callable[..., Any])


def defined(function: Callable[..., Any], primitive: Primitive, name: str = "") -> tuple[Callable[..., Any], Primitive]:
    """Return the public function and the primitive of a row.

    Args:
        function: the function that binds the primitive; it gets the primitive's docstring and the row's module.
        primitive: the primitive of the row.
        name: the function's name, if it is not the primitive's.

    Returns:
        The function and the primitive, for the row's module.
    """
    named(function, name or primitive.name, primitive.doc)
    function.__module__ = primitive.provenance.module
    ROWS[function.__name__], ROWS[f"{primitive.name}_p"] = function, primitive
    return function, primitive


def named(function: F, name: str, doc: str | None = None, of: str = "") -> F:
    """Set the name and docstring of a generated function, and the class `of` if it is a method; return the function."""
    f: Any = function  # with the attributes of a Python function
    f.__name__, f.__qualname__ = name, f"{of}.{name}" if of else name
    # Tracebacks and messages (`called_function`) take the name from the code.
    f.__code__ = f.__code__.replace(co_name=name, co_qualname=f.__qualname__)
    f.__doc__ = doc or f.__doc__
    return function
