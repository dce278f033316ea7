"""What rows of tables define, by its name in `corejax.lax`: functions, and primitives as `name_p`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive

ROWS: dict[str, Any] = {}


def defined(
    function: Callable[..., Any], primitive: Primitive, name: str = "", arguments: str = ""
) -> tuple[Callable[..., Any], Primitive]:
    """The public function and the primitive of a row.

    Args:
        function: what binds the primitive; gets its documentation, and the place of the row.
        primitive: the primitive.
        name: of the function, where that is not the primitive's.
        arguments: their names, where they are not those that the function is written with.

    Returns:
        Both, for the row's module.
    """
    named(function, name or primitive.name, arguments=arguments)
    function.__module__ = primitive.provenance.module
    function.__doc__ = primitive.doc
    ROWS[function.__name__], ROWS[f"{primitive.name}_p"] = function, primitive
    return function, primitive


def named(function: Any, name: str, of: str = "", arguments: str = "") -> None:
    """Give a generated function the names that its signature, tracebacks and messages show.

    Args:
        function: the function.
        name: its name.
        of: its class, for a method.
        arguments: names of its first arguments, separated by spaces, "/" after those that are positional; none where
            they stay.
    """
    function.__name__, function.__qualname__ = name, f"{of}.{name}" if of else name
    code, given = function.__code__, tuple(arguments.replace("/", "").split())
    function.__code__ = code.replace(
        co_name=name,
        co_qualname=function.__qualname__,
        co_varnames=given + code.co_varnames[len(given) :],
        co_posonlyargcount=len(given) if arguments.endswith("/") else code.co_posonlyargcount,
    )
