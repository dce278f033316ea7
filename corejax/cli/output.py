"""Tables for eyes and for pipes: rich on a terminal, plain aligned text elsewhere, JSON on request.

Names, docs and errors are others' texts: control characters in them are shown, and nothing obeys them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from corejax.base.texts import json_text, one_line, shown


@dataclass(frozen=True)
class Column:
    """A column's heading and how its cells are set.

    Attributes:
        heading: its name; underscores may become line breaks on a terminal.
        justify: "left", "center" or "right".
    """

    heading: str
    justify: str = "left"


# Cells that a terminal shows in colour.
STYLES = {
    "✓": "green",
    "d": "cyan",
    "p": "yellow",
    "·": "bold red",
    "loaded": "green",
    "failed": "bold red",
    "off": "dim",
    "good": "green",
    "stale": "yellow",
    "unknown": "yellow",
    "malformed": "bold red",
}
ASCII = {"✓": "x", "·": ".", "–": "-"}


def is_terminal() -> bool:
    """Whether somebody looks at standard output."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def mark(text: str) -> str:
    """A mark, or its ASCII form where standard output's encoding has no such character."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return ASCII[text]
    return text


def say(text: str, *, err: bool = False) -> None:
    """Print a text as far as the stream's encoding has its characters; the others are escaped."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    click.echo(shown(text).encode(encoding, "backslashreplace").decode(encoding), err=err)


def print_json(value: Any) -> None:
    """Print a value as JSON, keys in the order given."""
    say(json_text(value))


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
    """Print a table and remarks on it.

    Elsewhere than on a terminal: a line of headings, a line for each row, cells without spaces in aligned
    columns two spaces apart, and the remarks after `# `.
    """
    rows, notes = [[one_line(cell) for cell in row] for row in rows], [shown(note) for note in notes]
    if is_terminal():
        _print_rich(columns, rows, notes)
    else:
        _print_plain(columns, rows, notes)


def _print_plain(columns: Sequence[Column], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
    table = [[column.heading for column in columns], *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    for row in table:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for note in notes:
        say(f"# {note}")


def _print_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for column, heading in zip(columns, _headings(columns, rows, console.width), strict=True):
        table.add_column(heading, justify=column.justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    console.print(table)
    for note in notes:
        console.print(Text(note, style="dim"))


def _headings(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Headings with a word on each line, long words cut where the table would be wider than the terminal."""
    words = [column.heading.split("_") for column in columns]
    cells = [max((len(row[i]) for row in rows), default=0) for i in range(len(columns))]
    needed = sum(max(cell, *map(len, each)) + 1 for cell, each in zip(cells, words, strict=True)) - 1
    if needed > width:
        words = [
            [word if len(word) <= max(cell, 5) else word[:4] + "…" for word in each]
            for cell, each in zip(cells, words, strict=True)
        ]
    return ["\n".join(each) for each in words]


def complain(text: str) -> None:
    """One line on standard error."""
    say(f"corejax: {text}", err=True)
