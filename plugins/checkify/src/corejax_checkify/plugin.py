"""What the plugin contributes. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import Example, hookimpl


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """`corejax.checkify`, and its name in JAX."""
    return {"checkify": "corejax_checkify.api", "experimental.checkify": "corejax_checkify.api"}


@hookimpl
def corejax_declare_rule_kinds() -> Mapping[str, str]:
    """One rule kind of its own: what is checked of a primitive, and how."""
    return {"checkify": "corejax_checkify.interpreter:checkify_rules"}


@hookimpl
def corejax_register_primitives() -> None:
    """The primitives that checks are, with their rules."""
    import corejax_checkify.check  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Rules for other plugins' primitives are imported when the first one is needed."""
    if kind == "checkify":
        import corejax_checkify.rules  # noqa: F401


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Applications of the two primitives, for checks of their rules."""
    if primitive not in ("check", "debug_check"):
        return []
    from corejax_checkify.examples import check_examples

    return check_examples(primitive)


@hookimpl
def corejax_provide_checks() -> Mapping[str, str]:
    """`corejax verify`: whether a checked primitive gives what it gives unchecked, and finds NaN."""
    return {"checkify": "corejax_checkify.verification:CHECKIFY"}
