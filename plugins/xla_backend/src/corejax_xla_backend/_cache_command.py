"""`corejax cache`: the compiled programs on disk."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from typing import Any

import click

from corejax.extend import config
from corejax.extend.messages import shown

JSON_VERSION = 1


@click.command("cache")
@click.option("--clear", is_flag=True, help="Remove all programs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: directory, bytes, limit and a list of functions.")
def cache(clear: bool, as_json: bool) -> None:
    """Show the compiled programs on disk, by function.

    Programs that take longer than 0.1 s to compile are stored, so that later processes load them. Hits count how often
    any process has loaded a program. The settings compilation_cache_dir, compilation_cache_max_size and
    COREJAX_COMPILATION_CACHE=off choose the directory, limit its size, and switch the cache off.

    \b
    Exit codes
      0  success
      1  the directory cannot be read
    """
    from corejax_xla_backend._xla.program_files import current_files

    files = current_files()
    try:
        if files is not None and clear:
            files.clear()
        entries = [] if files is None else files.entries()
    except OSError as error:
        raise click.ClickException(f"the cache of compiled programs cannot be read: {error}") from None
    directory = "" if files is None else str(files.directory)
    nbytes, limit = sum(entry.size for entry in entries), config.compilation_cache_max_size
    rows = _by_function(entries)
    if as_json:
        functions = [dict(zip(("function", "programs", "bytes", "hits", "used"), row, strict=True)) for row in rows]
        content = {"directory": directory, "bytes": nbytes, "limit": limit, "functions": functions}
        click.echo(json.dumps({"format": "corejax-cache", "version": JSON_VERSION, **content}))
        return
    if files is None:
        click.echo("The cache of compiled programs is off (compilation_cache, compilation_cache_dir).")
        return
    limit_text = "" if limit < 0 else f" of {limit / 2**20:,.0f} MiB"
    click.echo(shown(f"{directory}: {len(entries)} programs, {nbytes / 2**20:,.2f} MiB{limit_text}"))
    if rows:
        click.echo(f"{'programs':>8}  {'KiB':>10}  {'hits':>6}  {'last used':16}  function")
    for name, count, size, hits, used in rows:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(used))
        click.echo(shown(f"{count:8}  {size / 2**10:10,.1f}  {hits:6}  {when:16}  {name}"))


def _by_function(entries: list[Any]) -> list[tuple[str, int, int, int, float]]:
    """Return name, number of programs, bytes, hits and time of last use of each function, the largest first."""
    grouped = defaultdict(list)
    for entry in entries:
        grouped[entry.name.rpartition("-")[0].removeprefix("jit_")].append(entry)
    rows = [
        (name, len(group), sum(e.size for e in group), sum(e.hits for e in group), max(e.used for e in group))
        for name, group in grouped.items()
    ]
    return sorted(rows, key=lambda row: -row[2])
