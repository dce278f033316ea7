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
    """Import the modules that define primitives, and the rules beside them."""
    import corejax_control_flow.barrier
    import corejax_control_flow.checkpoint_rules
    import corejax_control_flow.cond
    import corejax_control_flow.custom_jvp_rules
    import corejax_control_flow.custom_vjp_rules
    import corejax_control_flow.custom_vmap
    import corejax_control_flow.linear_call
    import corejax_control_flow.linear_solve
    import corejax_control_flow.naming
    import corejax_control_flow.progress
    import corejax_control_flow.remat_opt
    import corejax_control_flow.scan
    import corejax_control_flow.while_loop  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Translations live apart: nothing needs them until something is compiled."""
    if kind == "xla_translation":
        import corejax_control_flow.checkpoint_translations
        import corejax_control_flow.custom_translations
        import corejax_control_flow.translations  # noqa: F401


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """Control flow in `corejax.lax`; custom derivatives, checkpointing and scopes in `corejax` itself."""
    return {
        "checkpoint": "corejax_control_flow.checkpoint:checkpoint",
        "remat": "corejax_control_flow.checkpoint:remat",
        "checkpoint_name": "corejax_control_flow.naming:checkpoint_name",
        "named_call": "corejax_control_flow.naming:named_call",
        "named_scope": "corejax_control_flow.naming:named_scope",
        "lax.optimization_barrier": "corejax_control_flow.barrier:optimization_barrier",
        "closure_convert": "corejax_control_flow.custom_gradient:closure_convert",
        "custom_gradient": "corejax_control_flow.custom_gradient:custom_gradient",
        "custom_jvp": "corejax_control_flow.custom_jvp:custom_jvp",
        "custom_vjp": "corejax_control_flow.custom_vjp:custom_vjp",
        "custom_vmap": "corejax_control_flow.custom_vmap:custom_vmap",
        "lax.custom_linear_solve": "corejax_control_flow.linear_solve:custom_linear_solve",
        "lax.custom_root": "corejax_control_flow.root:custom_root",
        "lax.cond": "corejax_control_flow.cond:cond",
        "lax.switch": "corejax_control_flow.cond:switch",
        "lax.scan": "corejax_control_flow.scan:scan",
        "lax.while_loop": "corejax_control_flow.while_loop:while_loop",
        "lax.fori_loop": "corejax_control_flow.fori:fori_loop",
        "lax.map": "corejax_control_flow.mapping:map",
        "lax.ProgressBar": "corejax_control_flow.progress:ProgressBar",
    }


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """What has a module of its own in JAX."""
    return {
        "checkpoint_policies": "corejax_control_flow.policies",
        "ad_checkpoint": "corejax_control_flow.ad_checkpoint",
        "custom_batching": "corejax_control_flow.custom_batching",
        "custom_derivatives": "corejax_control_flow.custom_derivatives",
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
