"""What the plugin contributes. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from corejax.extend import hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """The version of the plugin API that this is written for."""
    return 1


@hookimpl
def corejax_provide_backends() -> dict[str, str]:
    """`jit(f, backend="numpy")`; imported when something is first compiled for it."""
    return {"numpy": "corejax_numpy_backend.backend:NUMPY"}
