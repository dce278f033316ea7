"""What the plugin contributes. Discovery imports this module, so it imports nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Made for version 1 of the plugin API."""
    return 1


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """`corejax.numpy`, `corejax.nn` and `corejax.image`."""
    return {"numpy": "corejax_numpy.numpy", "nn": "corejax_numpy.nn", "image": "corejax_numpy.image"}
