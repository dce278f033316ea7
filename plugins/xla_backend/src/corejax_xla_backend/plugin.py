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
        import corejax_xla_backend.host_callback
        import corejax_xla_backend.translations
    elif kind == "impl":
        import corejax_xla_backend.compiled_impl  # noqa: F401


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """`corejax.jit` and what users ask of devices."""
    names = ("jit", "devices", "default_backend", "device_put", "device_get", "block_until_ready")
    return {name: f"corejax_xla_backend.api:{name}" for name in names}


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """`corejax.ffi`: kernels of other libraries."""
    return {"ffi": "corejax_xla_backend.ffi"}


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Made when somebody checks the rules."""
    from corejax_xla_backend.examples import examples_of

    return examples_of(primitive)
