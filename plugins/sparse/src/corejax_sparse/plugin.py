"""The hooks that the plugin implements. Discovery imports this module, so the hooks import everything else."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.experimental.sparse` and its `linalg`."""
    return {"experimental.sparse": "corejax_sparse.sparse", "experimental.sparse.linalg": "corejax_sparse.linalg"}
