"""`corejax write-stubs`: write the stubs that type checkers and editors read."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command("write-stubs")
@click.argument("plugins", nargs=-1, metavar="[PLUGIN...]")
def write_stubs(plugins: tuple[str, ...]) -> None:
    """Write stubs for type checkers and editors.

    The stubs of each PLUGIN, which must be installed editable, are written from its code to `stubs/` in its package.
    Then the stubs of all installed plugins are joined under the names of corejax. Run the command without PLUGIN after
    installing or removing a plugin.

    Exit codes: 0; 1 if a plugin failed or is off, or a directory cannot be written to; 2 for a plugin that does not
    exist.
    """
    from corejax.extend import load_everything
    from corejax.extend.commands import plugins_named, printable
    from corejax.extend.plugins import plugin_records
    from corejax_testing.manifests.files import package_directory
    from corejax_testing.stub_files.facade import write_facade
    from corejax_testing.stub_files.fragments import fragments

    load_everything()
    records = plugin_records()
    try:
        for record in [record for name in plugins for record in plugins_named(name)]:
            directory = package_directory(record, "a stub") / "stubs"
            directory.mkdir(exist_ok=True)
            files = fragments(record, records)
            for old in set(directory.glob("*.pyi")) - {directory / f"{name}.pyi" for name in files}:
                old.unlink()
            for name, text in files.items():
                (directory / f"{name}.pyi").write_text(text, encoding="utf-8", newline="\n")
            click.echo(printable(f"wrote {os.fspath(directory)}"))
        joined = write_facade(record for record in records if record.status == "loaded")
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(printable(f"wrote {len(joined)} stubs in {Path(os.path.commonpath(joined))}"))
