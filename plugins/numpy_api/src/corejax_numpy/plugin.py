"""What the plugin contributes. Discovery imports this module, so it imports nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corejax.extend import hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Made for version 1 of the plugin API."""
    return 1


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """`corejax.numpy`, and the smaller namespaces that stand beside it."""
    names = ("dlpack", "flatten_util", "image", "nn", "numpy", "ops")
    return {name: f"corejax_numpy.{name}" for name in names}


@hookimpl
def corejax_provide_array_methods() -> Mapping[str, Any]:
    """Methods of arrays and tracers that are functions of `corejax.numpy`."""
    from corejax_numpy.methods import METHODS

    return METHODS
