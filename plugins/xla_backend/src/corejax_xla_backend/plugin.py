"""The hooks of the XLA backend's plugin; heavy modules are imported when a hook is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corejax.extend import hookimpl

if TYPE_CHECKING:
    from corejax.extend import Example

# Module -> the names of `corejax` that it defines.
_NAMES = {
    "_jaxlib": "Device",
    "_jit.jit": "jit xla_computation",
    "arrays_of_parts": """
        make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays
    """,
    "_callbacks": "effects_barrier",
    "callbacks.io": "io_callback experimental.io_callback",
    "callbacks.pure": "pure_callback",
    "_devices": """
        block_until_ready copy_to_host_async default_backend device_count device_get device_put devices live_arrays
        local_device_count local_devices process_count process_index process_indices
    """,
    "environment": "print_environment_info",
    "forward_backward": "fwd_and_bwd",
    "precompile": "compiling_together precompile",
    "platform_dependent": "lax.platform_dependent lax.platform_index_p",
    "_lowering.sharding_rules": "sharding.factors_of",
    "sharding_constraint": "lax.sharding_constraint_p lax.with_sharding_constraint",
    "sharding": "Shard",
    "settings": "default_device explain_cache_misses log_compiles",
    "transfers": """
        transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device
    """,
}
_ATTRIBUTES = """
    addressable_data addressable_shards committed global_shards is_fully_addressable is_fully_replicated platform
    sharding unsafe_buffer_pointer
"""


@hookimpl
def corejax_register_primitives() -> None:
    """Import the primitives with their rules."""
    import corejax_xla_backend.callbacks.debug_callback
    import corejax_xla_backend.callbacks.inspect_sharding
    import corejax_xla_backend.callbacks.io
    import corejax_xla_backend.callbacks.pure
    import corejax_xla_backend.export.calling
    import corejax_xla_backend.export.dims
    import corejax_xla_backend.ffi
    import corejax_xla_backend.platform_dependent
    import corejax_xla_backend.sharding_constraint
    import corejax_xla_backend.xla_call  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Import translation rules when something is first compiled, and derivations with the rules of their kind."""
    if kind == "xla_translation":
        import corejax_xla_backend._lowering.host_callback
        import corejax_xla_backend._lowering.translations
        import corejax_xla_backend.export.translation
    elif kind == "impl":
        import corejax_xla_backend._compiled_impl  # noqa: F401


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """Return the names of `corejax`: `jit`, functions on devices, callbacks and others."""
    return {
        name: f"corejax_xla_backend.{place}:{name.rpartition('.')[2]}"
        for place, names in _NAMES.items()
        for name in names.split()
    }


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """Return the namespaces: kernels (`ffi`), callbacks (`debug`), shardings, stages, exported programs and others."""
    return {
        "compilation_cache": "corejax_xla_backend.compilation_cache",
        "debug": "corejax_xla_backend.callbacks.debug",
        "distributed": "corejax_xla_backend.distributed",
        "experimental.buffer_callback": "corejax_xla_backend.callbacks.buffers",
        "experimental.compilation_cache.compilation_cache": "corejax_xla_backend.compilation_cache",
        "experimental.serialize_executable": "corejax_xla_backend.serialize_executable",
        "experimental.topologies": "corejax_xla_backend.topologies",
        "export": "corejax_xla_backend.export.api",
        "ffi": "corejax_xla_backend.ffi",
        "memory": "corejax_xla_backend.memory_spaces",
        "monitoring": "corejax_xla_backend.monitoring",
        "profiler": "corejax_xla_backend.profiler",
        "sharding": "corejax_xla_backend.sharding",
        "stages": "corejax_xla_backend.stages",
    }


@hookimpl
def corejax_provide_array_methods() -> dict[str, str]:
    """Return the methods and properties of arrays about their placement."""
    return dict.fromkeys(_ATTRIBUTES.split(), "corejax_xla_backend._array_attributes:ATTRIBUTES")


@hookimpl
def corejax_declare_settings() -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """Return the settings: logs of `jit`, default device, caches of programs, and others."""
    from corejax_xla_backend.settings import SETTINGS

    return dict(SETTINGS)


@hookimpl
def corejax_provide_backends() -> dict[str, str]:
    """Return the backend `xla`; it is imported, and jaxlib with it, when something is first compiled."""
    return {"xla": "corejax_xla_backend._xla.backend:XLA"}


@hookimpl
def corejax_add_cli_commands(group: Any) -> None:
    """Add `corejax hlo` and `corejax cache`."""
    from corejax_xla_backend._cache_command import cache
    from corejax_xla_backend._command import hlo

    group.add_command(hlo)
    group.add_command(cache)


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Return example applications of a primitive, for checks of its rules."""
    from corejax_xla_backend._examples import examples_of

    return examples_of(primitive)
