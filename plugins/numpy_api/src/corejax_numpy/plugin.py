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
    """`corejax.numpy`, and the smaller namespaces that stand beside it."""
    names = ("dlpack", "flatten_util", "image", "nn", "numpy", "ops")
    return {name: f"corejax_numpy.{name}" for name in names}


@hookimpl
def corejax_provide_array_methods() -> Mapping[str, str]:
    """Methods of arrays and tracers that are functions of `corejax.numpy`."""
    return dict.fromkeys(_METHODS.split(), "corejax_numpy.methods:METHODS")


_METHODS = """
    __array_namespace__ argpartition argsort byteswap choose compress diagonal nonzero ptp repeat searchsorted sort take
    trace view
"""
