"""`corejax write-manifest PLUGIN`: write a plugin's manifest from its code to a file in its package."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command("write-manifest")
@click.argument("plugins", nargs=-1, required=True, metavar="PLUGIN...")
@click.option("--check", is_flag=True, help="Write nothing; print differences, and exit with 1 if there are any.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file to write; by default corejax_manifest.json in the plugin's package.",
)
def write_manifest(plugins: tuple[str, ...], check: bool, output: Path | None) -> None:
    """Write the manifest of a plugin, or of a distribution's plugins.

    A manifest lists what a plugin offers, so that corejax need not import it. Ship it with the distribution (package
    data). If the manifest is missing, belongs to another version of the plugin, or to other sources of an editable
    install, corejax ignores it and loads the plugin instead.

    Exit codes: 0; 1 if the plugin failed or is off, its package cannot be written to, or --check finds differences;
    2 for a plugin that does not exist.
    """
    from corejax.extend import load_everything
    from corejax.extend.commands import plugins_named, say
    from corejax_testing.manifests import files

    load_everything()
    records = [record for name in plugins for record in plugins_named(name)]
    if output is not None and (len(records) > 1 or check):
        raise click.UsageError("--output requires a single plugin, and excludes --check")
    differ = False
    for record in records:
        name = record.name
        try:
            if check:
                lines = files.differences(record)
                differ = differ or bool(lines)
                for line in lines:
                    say(f"{name}: {line}")
            else:
                say(f"wrote {os.fspath(files.write(record, output))}")
        except (ValueError, OSError) as error:
            raise click.ClickException(f"{name}: {error}") from None
    if differ:
        say(f"to update the manifest: corejax write-manifest {' '.join(plugins)}", err=True)
        click.get_current_context().exit(1)
