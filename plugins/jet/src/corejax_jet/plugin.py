"""What the plugin contributes. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """`corejax.experimental.jet`."""
    return {"experimental.jet": "corejax_jet.jet"}


@hookimpl
def corejax_declare_rule_kinds() -> Mapping[str, str]:
    """One rule kind of its own: Taylor series through a primitive."""
    return {"jet": "corejax_jet.interpreter:jet_rules"}


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Rules for other plugins' primitives are imported when the first one is needed."""
    if kind == "jet":
        import corejax_jet.rules  # noqa: F401


@hookimpl
def corejax_provide_checks() -> Mapping[str, str]:
    """`corejax verify`: whether a rule gives the derivatives that nested `jvp` gives."""
    return {"jet": "corejax_jet.verification:JET"}
