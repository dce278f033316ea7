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
    """The primitives, with the rules beside it."""
    import corejax_special_functions.functions  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Translations are imported when something is first compiled."""
    if kind == "xla_translation":
        import corejax_special_functions.translations  # noqa: F401


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """`corejax.special_functions`."""
    return {"special_functions": "corejax_special_functions.functions"}


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """What `corejax verify` checks the rules on."""
    from corejax_special_functions.examples import EXAMPLES

    return EXAMPLES.get(primitive, ())
