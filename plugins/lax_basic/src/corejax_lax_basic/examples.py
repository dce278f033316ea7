"""Applications of every primitive here, for whoever checks its rules (`corejax verify lax_basic`)."""

from __future__ import annotations

from importlib import import_module

from corejax.extend import Example

_PACKAGES = (
    *("conversion", "convolution", "creation", "elementwise", "indexing", "linear", "reductions", "shape", "sorting"),
    *("special", "windows"),
)
_NAMED = {
    name: make
    for package in _PACKAGES
    for name, make in import_module(f"corejax_lax_basic.{package}.examples").NAMED.items()
}


def examples_of(primitive: str) -> list[Example]:
    """Applications of one primitive; none for a name that is not of this plugin."""
    return _NAMED[primitive]() if primitive in _NAMED else []
