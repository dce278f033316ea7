"""The kit's hooks: its commands and `corejax.test_util`. Everything else is imported on first use."""

from __future__ import annotations

from typing import Any

from corejax.extend import hookimpl


@hookimpl
def corejax_add_cli_commands(group: Any) -> None:
    """Add the commands `verify`, `fuzz`, `new-plugin`, `write-manifest` and `write-stubs`."""
    from corejax_testing.command import verify
    from corejax_testing.fuzzing.command import fuzz
    from corejax_testing.manifests.command import write_manifest
    from corejax_testing.scaffolding.command import new_plugin
    from corejax_testing.stub_files.command import write_stubs

    for command in (verify, fuzz, new_plugin, write_manifest, write_stubs):
        group.add_command(command)


@hookimpl
def corejax_export_namespaces() -> dict[str, str]:
    """Export `corejax.test_util`."""
    return {"test_util": "corejax_testing.test_util"}
