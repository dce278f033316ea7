"""The hooks that the plugin implements. Discovery imports this module, so the hooks import everything else."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.experimental.jet`."""
    return {"experimental.jet": "corejax_jet.jet"}


@hookimpl
def corejax_declare_rule_kinds() -> Mapping[str, str]:
    """Declare the rule kind `jet`: Taylor series through a primitive."""
    return {"jet": "corejax_jet.interpreter:jet_rules"}


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Register rules for other plugins' primitives, when the first one is needed."""
    if kind == "jet":
        import corejax_jet.rules  # noqa: F401


@hookimpl
def corejax_provide_checks() -> Mapping[str, str]:
    """Provide a check for `corejax verify`: a jet rule gives the derivatives that nested `jvp` gives."""
    return {"jet": "corejax_jet.verification:JET"}
