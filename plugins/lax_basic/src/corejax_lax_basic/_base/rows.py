"""What rows of tables define, by its name in `corejax.lax`: functions, and primitives as `name_p`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive

__all__ = ["named"]  # in `corejax.lax`, for other plugins

ROWS: dict[str, Any] = {}


def defined(function: Callable[..., Any], primitive: Primitive, name: str = "") -> tuple[Callable[..., Any], Primitive]:
    """Return the public function and the primitive of a row.

    Args:
        function: what binds the primitive; gets its documentation, and the place of the row.
        primitive: the primitive.
        name: the function's name, if it is not the primitive's.

    Returns:
        Both, for the row's module.
    """
    named(function, name or primitive.name, primitive.doc)
    function.__module__ = primitive.provenance.module
    ROWS[function.__name__], ROWS[f"{primitive.name}_p"] = function, primitive
    return function, primitive


def named(function: Any, name: str, doc: str | None = None, of: str = "") -> Any:
    """Give a generated function its name and docstring, and the class `of` if it is a method; return it."""
    function.__name__, function.__qualname__ = name, f"{of}.{name}" if of else name
    # Tracebacks and messages (`called_function`) take the name from the code.
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=function.__qualname__)
    function.__doc__ = doc or function.__doc__
    return function
