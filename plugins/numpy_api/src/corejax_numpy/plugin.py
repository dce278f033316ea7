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
    """`corejax.numpy`, `corejax.nn`, `corejax.ops` and `corejax.flatten_util`."""
    names = ("flatten_util", "nn", "numpy", "ops")
    return {name: f"corejax_numpy.{name}" for name in names}
