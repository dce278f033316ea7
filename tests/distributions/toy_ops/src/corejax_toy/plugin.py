"""What the toy plugin contributes: one of everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Made for version 1."""
    return 1


@hookimpl
def corejax_register_primitives() -> None:
    """Three primitives."""
    import corejax_toy.ops  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Translations and the plugin's own rule kind live apart."""
    if kind == "xla_translation":
        import corejax_toy.translations  # noqa: F401


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """`corejax.toy_twice`."""
    return {"toy_twice": "corejax_toy.ops:twice"}


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """`corejax.toy`."""
    return {"toy": "corejax_toy.toy"}


@hookimpl
def corejax_provide_array_methods() -> dict[str, Any]:
    """`x.toy_twice()`."""
    from corejax_toy.ops import twice

    return {"toy_twice": lambda self: twice(self)}


@hookimpl
def corejax_declare_settings() -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """`config.toy_level`."""
    return {"toy_level": (1, int)}


@hookimpl
def corejax_add_cli_commands(group: Any) -> None:
    """`corejax toy-hello`."""
    from corejax_toy.cli import hello

    group.add_command(hello)
