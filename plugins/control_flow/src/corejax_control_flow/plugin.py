"""Hook implementations of the plugin. Discovery imports this module, so hooks import the rest when they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import Primitive, hookimpl

if TYPE_CHECKING:
    from corejax.extend import Example


@hookimpl
def corejax_register_primitives() -> None:
    """Import the modules that define primitives, and the rules beside them."""
    import corejax_control_flow.branches.cond
    import corejax_control_flow.branches.if_taken
    import corejax_control_flow.checkpoint.checkpoint
    import corejax_control_flow.custom.composite
    import corejax_control_flow.custom.custom_jvp
    import corejax_control_flow.custom.custom_vjp
    import corejax_control_flow.custom.custom_vmap
    import corejax_control_flow.custom.linear_call
    import corejax_control_flow.loops.progress
    import corejax_control_flow.loops.scan
    import corejax_control_flow.loops.while_loop
    import corejax_control_flow.markers.dce_sink
    import corejax_control_flow.markers.name
    import corejax_control_flow.markers.optimization_barrier
    import corejax_control_flow.solvers.custom_linear_solve  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Import the translations to StableHLO, which are needed only when a program is compiled."""
    if kind == "xla_translation":
        import corejax_control_flow.translations.checkpoint
        import corejax_control_flow.translations.composite
        import corejax_control_flow.translations.loops
        import corejax_control_flow.translations.operations  # noqa: F401


@hookimpl
def corejax_export_names() -> dict[str, str]:
    """Export control flow to `corejax.lax`, and custom derivatives, checkpointing and scopes to `corejax`."""
    return {
        "checkpoint": "corejax_control_flow.checkpoint.checkpoint:checkpoint",
        "remat": "corejax_control_flow.checkpoint.checkpoint:remat",
        "recomputation": "corejax_control_flow.programs.recomputation:RECOMPUTATION",
        "checkpoint_name": "corejax_control_flow.markers.name:checkpoint_name",
        "named_call": "corejax_control_flow.markers.named_scope:named_call",
        "named_scope": "corejax_control_flow.markers.named_scope:named_scope",
        "lax.optimization_barrier": "corejax_control_flow.markers.optimization_barrier:optimization_barrier",
        "closure_convert": "corejax_control_flow.custom.custom_gradient:closure_convert",
        "custom_gradient": "corejax_control_flow.custom.custom_gradient:custom_gradient",
        "custom_jvp": "corejax_control_flow.custom.custom_jvp:custom_jvp",
        "custom_vjp": "corejax_control_flow.custom.custom_vjp:custom_vjp",
        "custom_vmap": "corejax_control_flow.custom.custom_vmap:custom_vmap",
        "lax.custom_linear_solve": "corejax_control_flow.solvers.custom_linear_solve:custom_linear_solve",
        "lax.custom_root": "corejax_control_flow.solvers.custom_root:custom_root",
        "lax.cond": "corejax_control_flow.branches.cond:cond",
        "lax.switch": "corejax_control_flow.branches.cond:switch",
        "lax.scan": "corejax_control_flow.loops.scan:scan",
        "lax.while_loop": "corejax_control_flow.loops.while_loop:while_loop",
        "lax.fori_loop": "corejax_control_flow.loops.fori_loop:fori_loop",
        "lax.map": "corejax_control_flow.loops.map:map",
        "lax.composite": "corejax_control_flow.custom.composite:composite",
        "lax.cond_p": "corejax_control_flow.branches.cond_rules:cond_p",
        "lax.dce_sink": "corejax_control_flow.markers.dce_sink:dce_sink",
        "lax.dce_sink_p": "corejax_control_flow.markers.dce_sink:dce_sink_p",
        "lax.linear_solve_p": "corejax_control_flow.solvers.custom_linear_solve:custom_linear_solve_p",
        "lax.optimization_barrier_p": "corejax_control_flow.markers.optimization_barrier:optimization_barrier_p",
        "lax.scan_p": "corejax_control_flow.loops.scan_rules:scan_p",
        "lax.while_p": "corejax_control_flow.loops.while_rules:while_p",
        "lax.ProgressBar": "corejax_control_flow.loops.progress:ProgressBar",
    }


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export the namespaces that are separate modules in JAX."""
    return {
        "checkpoint_policies": "corejax_control_flow.checkpoint.policies",
        "ad_checkpoint": "corejax_control_flow.namespaces.ad_checkpoint",
        "custom_batching": "corejax_control_flow.namespaces.custom_batching",
        "custom_derivatives": "corejax_control_flow.namespaces.custom_derivatives",
    }


@hookimpl
def corejax_provide_operations() -> Mapping[str, Callable[..., Any]]:
    """Provide the loop that vmap runs for primitives without a vmap rule (see `corejax.arrays.structural`)."""
    return {"loop": _loop}


def _loop(f: Callable[..., Sequence[Any]], axis_size: int, xs: Sequence[Any]) -> list[Any]:
    """Apply `f` to each element of `xs` along the first axis and stack the results: a `scan` without a carry."""
    from corejax_control_flow.loops.scan import scan

    _, outs = scan(lambda carry, elements: (carry, list(f(*elements))), (), list(xs), length=axis_size)
    return list(outs)


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Return example applications of one primitive, on which its rules are checked."""
    from corejax_control_flow.examples import examples_of

    return examples_of(primitive)
