"""What the plugin contributes. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Made for version 1 of the plugin API."""
    return 1


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """`corejax.checkpoints`."""
    return {"checkpoints": "corejax_checkpoints.checkpoints"}
