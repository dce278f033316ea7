"""The hooks that the plugin implements. Discovery imports this module, so the hooks import everything else."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export the example libraries and the solver of differential equations."""
    return {
        "example_libraries.optimizers": "corejax_libraries.optimizers",
        "example_libraries.stax": "corejax_libraries.stax",
        "experimental.ode": "corejax_libraries.ode",
    }
