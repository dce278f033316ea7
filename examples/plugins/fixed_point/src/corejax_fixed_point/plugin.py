"""What the plugin contributes. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from collections.abc import Sequence

from corejax.extend import Example, hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """The version of the plugin API that this is written for."""
    return 1


@hookimpl
def corejax_register_primitives() -> None:
    """The primitive, with the rules beside it."""
    import corejax_fixed_point.primitive  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Translations are imported when something is first compiled."""
    if kind == "xla_translation":
        import corejax_fixed_point.translations  # noqa: F401


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """`corejax.fixed_point`."""
    return {"fixed_point": "corejax_fixed_point.solver"}


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """What `corejax verify` checks the rules on."""
    from corejax_fixed_point.examples import examples_of

    return examples_of(primitive)
