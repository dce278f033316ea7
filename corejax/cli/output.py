"""Output of the command: tables by rich on a terminal, plain aligned text elsewhere, JSON on request.

Names, docs and errors are texts of plugins, so control characters in them are escaped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from corejax.base.texts import json_text, one_line, shown

_COLOURS = {
    "green": ("✓", "○", "loaded", "good"),
    "cyan": ("d",),
    "yellow": ("p", "stale", "unknown"),
    "bold red": ("·", "✗", "failed", "malformed"),
    "dim": ("off",),
}
STYLES = {cell: colour for colour, cells in _COLOURS.items() for cell in cells}  # text of a cell -> colour
_ASCII = str.maketrans({"✓": "x", "○": "o", "✗": "F", "·": ".", "–": "-"})


def is_terminal() -> bool:
    """Return True if standard output is a terminal that shows colours."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def printable(text: str, *, err: bool = False) -> str:
    """Convert a text to the characters of a stream's encoding; marks become ASCII, other characters are escaped.

    Control characters are escaped in any encoding.
    """
    text = shown(text)
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def say(text: str, *, err: bool = False) -> None:
    """Print a text in a printable form."""
    click.echo(printable(text, err=err), err=err)


def complain(text: str) -> None:
    """Print one line on standard error."""
    say(f"corejax: {text}", err=True)


def print_json(value: Any) -> None:
    """Print a value as JSON with keys in their order."""
    say(json_text(value))


def print_table(columns: Mapping[str, str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
    """Print a table and remarks below it.

    If standard output is not a terminal, print a line of headings and a line for each row, in aligned columns two
    spaces apart, and each remark after `# `.

    Args:
        columns: heading -> alignment of the cells: "left", "center" or "right". A terminal breaks headings at
            underscores.
        rows: cells of each row, in the order of the columns.
        notes: remarks, one line each.
    """
    rows = [[printable(one_line(cell)) for cell in row] for row in rows]
    if is_terminal():
        _print_rich(columns, rows, notes)
        return
    table = [list(columns), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for note in notes:
        say(f"# {note}")


def _print_rich(columns: Mapping[str, str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    headings = _headings(list(columns), rows, console.width)
    for heading, justify in zip(headings, columns.values(), strict=True):
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    console.print(table)
    for note in notes:
        console.print(Text(printable(note), style="dim"))


def _headings(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return headings with a word on each line; if the table is wider than the terminal, long words are cut."""
    words = [heading.split("_") for heading in headings]
    cells = [max((len(row[i]) for row in rows), default=0) for i in range(len(headings))]
    needed = sum(max(cell, *map(len, each)) + 1 for cell, each in zip(cells, words, strict=True)) - 1
    if needed > width:
        words = [
            [word if len(word) <= max(cell, 5) else word[:4] + "…" for word in each]
            for cell, each in zip(cells, words, strict=True)
        ]
    return ["\n".join(each) for each in words]
