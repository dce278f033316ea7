"""The structures that stages of compilation and exported functions return to users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def public(structure: Any) -> Any:
    """Return a structure of corejax as users get it."""
    return structure if conversion is None else conversion(structure)


conversion: Callable[[Any], Any] | None = None
"""Conversion to another library's structures, if a plugin sets it: those of `jax.tree` are jaxlib's."""
