"""What the plugin contributes. Discovery imports this module, so the rest is imported only inside hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corejax.extend import Example, hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Made for version 1 of the plugin API."""
    return 1


@hookimpl
def corejax_register_primitives() -> None:
    """Import `cond` and `scan` with their rules."""
    import corejax_control_flow.cond
    import corejax_control_flow.scan  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Translations live apart: nothing needs them until something is compiled."""
    if kind == "xla_translation":
        import corejax_control_flow.translations  # noqa: F401


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """`corejax.lax.cond`, `corejax.lax.switch`, `corejax.lax.scan`."""
    return {
        "lax.cond": "corejax_control_flow.cond:cond",
        "lax.switch": "corejax_control_flow.cond:switch",
        "lax.scan": "corejax_control_flow.scan:scan",
    }


@hookimpl
def corejax_provide_operations() -> Mapping[str, Callable[..., Any]]:
    """The loop that vmap needs for primitives without a vmap rule."""
    from corejax_control_flow.operations import loop

    return {"loop": loop}


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Made when somebody checks the rules."""
    from corejax_control_flow.examples import examples_of

    return examples_of(primitive)
