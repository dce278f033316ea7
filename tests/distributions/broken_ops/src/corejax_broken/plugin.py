"""Hooks that contribute something before one of them raises."""

from __future__ import annotations

from corejax.extend import Primitive, hookimpl


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """A name that is asked for afterwards."""
    return {"broken_call": "corejax_broken.plugin:corejax_export_names"}


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """A namespace that is asked for afterwards."""
    return {"broken": "corejax_broken"}


@hookimpl
def corejax_provide_operations() -> dict[str, object]:
    """Registers a primitive and fails, as an author's missing dependency would make it."""
    Primitive("broken.half", impl=lambda x: x)
    try:
        import a_module_that_nobody_has  # noqa: F401
    except ImportError as error:
        raise RuntimeError("broken_ops needs its accelerator library") from error
    return {}
