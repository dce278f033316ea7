"""What rows of tables define, by its name in `corejax.lax`: functions, and primitives as `name_p`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive

ROWS: dict[str, Any] = {}


def defined(function: Callable[..., Any], primitive: Primitive, name: str = "") -> tuple[Callable[..., Any], Primitive]:
    """The public function and the primitive of a row.

    Args:
        function: what binds the primitive; gets its documentation, and the place of the row.
        primitive: the primitive.
        name: of the function, where that is not the primitive's.

    Returns:
        Both, for the row's module.
    """
    function.__name__ = function.__qualname__ = name or primitive.name
    function.__module__ = primitive.provenance.module
    function.__doc__ = primitive.doc
    ROWS[function.__name__], ROWS[f"{primitive.name}_p"] = function, primitive
    return function, primitive
