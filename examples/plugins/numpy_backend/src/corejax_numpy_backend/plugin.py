"""Hooks of the plugin. Discovery imports this module, so that the hooks import everything else when called."""

from __future__ import annotations

from corejax.extend import hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Return the version of the plugin API that this plugin uses."""
    return 1


@hookimpl
def corejax_provide_backends() -> dict[str, str]:
    """Provide the backend of `jit(f, backend="numpy")`, imported when a program is first compiled for it."""
    return {"numpy": "corejax_numpy_backend.backend:NUMPY"}
