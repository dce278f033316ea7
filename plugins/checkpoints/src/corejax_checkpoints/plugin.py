"""The plugin's hooks. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export the namespace `corejax.checkpoints`."""
    return {"checkpoints": "corejax_checkpoints.checkpoints"}
