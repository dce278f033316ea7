"""The hooks that the plugin implements. Discovery imports this module, so the hooks import everything else."""

from __future__ import annotations

from typing import Any

from corejax.extend import hookimpl


@hookimpl
def corejax_add_cli_commands(group: Any) -> None:
    """Add the command `corejax as-jax`."""
    from corejax_as_jax.command import as_jax

    group.add_command(as_jax)
