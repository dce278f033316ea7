"""What the plugin contributes. Discovery imports this module, so everything else is imported inside the hooks."""

from __future__ import annotations

from typing import Any

from corejax.extend import hookimpl


@hookimpl
def corejax_add_cli_commands(group: Any) -> None:
    """`corejax as-jax`."""
    from corejax_as_jax.command import as_jax

    group.add_command(as_jax)
