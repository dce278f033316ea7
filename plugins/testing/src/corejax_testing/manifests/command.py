"""`corejax write-manifest PLUGIN`: what a plugin offers, written from its code to a file in its package."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any

import click


@click.command("write-manifest")
@click.argument("plugins", nargs=-1, required=True, metavar="PLUGIN...")
@click.option("--check", is_flag=True, help="Write nothing; say what differs, exit code 1 if anything does.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write; by default corejax_manifest.json in the plugin's package.",
)
def write_manifest(plugins: tuple[str, ...], check: bool, output: Path | None) -> None:
    """Write the manifest of a plugin, or of a distribution's plugins: what it offers, listed without importing it.

    It belongs into the distribution (package data). One that is missing, of another version of the plugin, or in
    an editable install of other sources is not used: the plugin is loaded instead.

    Exit codes: 0; 1 if the plugin failed or is off, its package cannot be written to, or --check finds differences;
    2 for a plugin that does not exist.
    """
    from corejax.extend import load_everything
    from corejax_testing.manifests import files
    from corejax_testing.report import printable

    load_everything()
    records = [record for name in plugins for record in named(name)]
    if output is not None and (len(records) > 1 or check):
        raise click.UsageError("--output is for writing one plugin's manifest")
    differ = False
    for record in records:
        name = record.name
        try:
            if check:
                lines = files.differences(record)
                differ = differ or bool(lines)
                for line in lines:
                    click.echo(printable(f"{name}: {line}"))
            else:
                click.echo(printable(f"wrote {os.fspath(files.write(record, output))}"))
        except (ValueError, OSError) as error:
            raise click.ClickException(f"{name}: {error}") from None
    if differ:
        click.echo(printable(f"to write what the code says: corejax write-manifest {' '.join(plugins)}"), err=True)
        click.get_current_context().exit(1)


def named(name: str) -> list[Any]:
    """The plugin of a name, else those of the distribution of that name."""
    from corejax.extend.plugins import plugin_records

    records = {record.name: record for record in plugin_records()}
    found = [records[name]] if name in records else [r for r in records.values() if r.comes_from(name)]
    if not found:
        close = difflib.get_close_matches(name, sorted(records), 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(records)) or 'none'}."
        raise click.UsageError(f"there is no plugin named {name!r}; {hint}")
    return found
