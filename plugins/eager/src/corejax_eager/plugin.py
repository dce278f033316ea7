"""The plugin's hooks. Discovery imports this module, so all other modules are imported on first use."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Return the place of the engine, which the kernel imports at the first eager operation."""
    return {"eager_engine": "corejax_eager.engine:ENGINE"}
