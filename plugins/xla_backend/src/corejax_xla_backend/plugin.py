"""What the XLA backend contributes; nothing heavy is imported until a hook is called."""

from __future__ import annotations

from corejax.extend import Example, hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Made for plugin API version 1."""
    return 1


@hookimpl
def corejax_register_primitives() -> None:
    """Import `xla_call` and `ffi_call` with their rules."""
    import corejax_xla_backend.ffi
    import corejax_xla_backend.xla_call  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Import translation rules when something is first compiled, and ways to make rules with the rules of a kind."""
    if kind == "xla_translation":
        import corejax_xla_backend._lowering.host_callback
        import corejax_xla_backend._lowering.translations
    elif kind == "impl":
        import corejax_xla_backend._compiled_impl  # noqa: F401


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """`corejax.jit` and what users ask of devices."""
    names = ("devices", "default_backend", "device_put", "device_get", "block_until_ready")
    return {"jit": "corejax_xla_backend._jit.functions:jit"} | {
        name: f"corejax_xla_backend._devices:{name}" for name in names
    }


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """`corejax.ffi`: kernels of other libraries."""
    return {"ffi": "corejax_xla_backend.ffi"}


@hookimpl
def corejax_provide_backends() -> dict[str, str]:
    """`xla`: imported, and jaxlib with it, when something is first compiled."""
    return {"xla": "corejax_xla_backend._xla.backend:XLA"}


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Made when somebody checks the rules."""
    from corejax_xla_backend._examples import examples_of

    return examples_of(primitive)
