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
    """Import the module that defines the primitives and their rules."""
    import corejax_running_statistics.statistics  # noqa: F401


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """Export the module as `corejax.running_statistics`."""
    return {"running_statistics": "corejax_running_statistics.statistics"}


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """Return the examples that `corejax verify` checks the rules with."""
    from corejax_running_statistics.examples import EXAMPLES

    return EXAMPLES.get(primitive, ())
