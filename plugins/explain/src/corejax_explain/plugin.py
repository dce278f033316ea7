"""The plugin's hooks. This module is imported when the plugin is loaded, so it imports the others only when needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corejax.extend import hookimpl


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Return the places of the functions for users, and of the checks that settings turn on."""
    return {
        "debug_checks": "corejax_explain.checks:DEBUG_CHECKS",
        "draw_jaxpr": "corejax_explain.drawing:draw_jaxpr",
        "explain": "corejax_explain._explain:explain",
        "parse_jaxpr": "corejax_explain.program_text:parse_jaxpr",
        "program_graph": "corejax_explain.drawing:program_graph",
    }


@hookimpl
def corejax_add_cli_commands(group: Any) -> None:
    """Add `corejax jaxpr` and `corejax show`."""
    from corejax_explain._command import jaxpr
    from corejax_explain.show import show

    group.add_command(jaxpr)
    group.add_command(show)
