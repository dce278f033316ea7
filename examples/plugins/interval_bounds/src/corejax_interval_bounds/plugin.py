"""Hooks of the plugin. Discovery imports this module, so that the hooks import everything else when called."""

from __future__ import annotations

from corejax.extend import hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """Return the version of the plugin API that this plugin uses."""
    return 1


@hookimpl
def corejax_declare_rule_kinds() -> dict[str, str]:
    """Declare a rule kind, which becomes a column of `corejax list-primitives` and a row of `corejax show`."""
    return {"interval": "corejax_interval_bounds.interpreter:interval_rules"}


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Import the rules for other plugins' primitives when the first one is needed."""
    if kind == "interval":
        import corejax_interval_bounds.rules  # noqa: F401


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """Export the module as `corejax.interval_bounds`."""
    return {"interval_bounds": "corejax_interval_bounds.api"}


@hookimpl
def corejax_provide_checks() -> dict[str, str]:
    """Add a check to `corejax verify`: whether the bounds contain the results of the primitives."""
    return {"interval": "corejax_interval_bounds.checks:INTERVAL"}
