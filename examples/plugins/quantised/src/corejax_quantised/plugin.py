"""Hooks of the plugin. Discovery imports this module, so that the hooks import everything else when called."""

from __future__ import annotations

from collections.abc import Sequence

from corejax.extend import Example, hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Return the version of the plugin API that this plugin uses."""
    return 1


@hookimpl
def corejax_register_primitives() -> None:
    """Import the module that defines the type, the primitives and their rules."""
    import corejax_quantised.matrices  # noqa: F401


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """Export the module as `corejax.quantised`."""
    return {"quantised": "corejax_quantised.matrices"}


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """Return the examples that `corejax verify` checks the rules with."""
    from corejax_quantised.examples import EXAMPLES

    return EXAMPLES.get(primitive, ())
