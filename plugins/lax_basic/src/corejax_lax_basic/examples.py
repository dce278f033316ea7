"""Examples of every primitive of this plugin, from which `corejax verify lax_basic` checks their rules."""

from __future__ import annotations

from importlib import import_module

from corejax.extend import Example

_PACKAGES = (
    *("conversion", "convolution", "creation", "elementwise", "indexing", "linear", "reductions", "shape", "sorting"),
    *("special", "transforms", "values", "windows"),
)
_NAMED = {
    name: make
    for package in _PACKAGES
    for name, make in import_module(f"corejax_lax_basic.{package}.examples").NAMED.items()
}


def examples_of(primitive: str) -> list[Example]:
    """Return the examples of a primitive; an empty list if the plugin does not define it."""
    return _NAMED[primitive]() if primitive in _NAMED else []
