"""What the plugin contributes. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from corejax.extend import hookimpl


@hookimpl
def corejax_declare_api_version() -> int:
    """The version of the plugin API that this is written for."""
    return 1


@hookimpl
def corejax_declare_rule_kinds() -> dict[str, str]:
    """One rule kind of its own: a column in `corejax list-primitives`, a row in `corejax show`."""
    return {"interval": "corejax_interval_bounds.interpreter:interval_rules"}


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Rules for other plugins' primitives are imported when the first one is needed."""
    if kind == "interval":
        import corejax_interval_bounds.rules  # noqa: F401


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """`corejax.interval_bounds`."""
    return {"interval_bounds": "corejax_interval_bounds.api"}


@hookimpl
def corejax_provide_checks() -> dict[str, str]:
    """`corejax verify`: whether bounds contain what primitives give."""
    return {"interval": "corejax_interval_bounds.checks:INTERVAL"}
