"""Output of the command: tables by rich on a terminal, plain aligned text elsewhere, JSON on request.

Names, docs and errors are texts of plugins, so control characters in them are escaped.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from string import ascii_letters, digits

import click

from corejax.base.texts import json_text, one_line, shown
from corejax.plugins import manager
from corejax.settings.config import config
from corejax.settings.selection import Selection

_COLOURS = {
    "green": ("✓", "○", "loaded", "good"),
    "cyan": ("d",),
    "yellow": ("p", "stale", "unknown"),
    "bold red": ("·", "✗", "failed", "malformed"),
    "dim": ("off",),
}
STYLES = {cell: colour for colour, cells in _COLOURS.items() for cell in cells}  # text of a cell -> colour
JSON_VERSION = 1  # new keys keep the version; a removed key or a key with a new meaning changes it
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


def report_faults() -> None:
    """Print failed plugins, and the names in `COREJAX_PLUGINS` that no plugin has, to standard error."""
    for record in list(manager().records.values()):
        for problem in record.problems():
            remedy = f"upgrade, repair or uninstall it, or switch it off (COREJAX_PLUGINS=-{record.name})"
            complain(f"{problem.rstrip('.')}. To see why: corejax plugins --load. Then {remedy}.")
    report_selection()


def report_selection() -> None:
    """Print names in `COREJAX_PLUGINS` and `COREJAX_RULE_OVERRIDES` that no plugin has to standard error."""
    problems = manager().selection.problems(manager().records)
    if isinstance(config.rule_overrides, str):
        problems += Selection(config.rule_overrides).problems(manager().records, "COREJAX_RULE_OVERRIDES")
    for problem in problems:
        complain(f"{problem}.")


def print_json(value: object) -> None:
    """Print a value as JSON with keys in their order."""
    say(json_text(value))


def discard_output() -> None:
    """Discard what is still to be written: Python would try once more when it exits, and fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_table(columns: Mapping[str, str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
    """Print a table and remarks below it.

    If standard output is not a terminal, print a line of headings and a line for each row, in aligned columns two
    spaces apart, and each remark after `# `. On a terminal that is too narrow for this, letters with a legend replace
    headings that are wider than their columns; if that does not suffice, each row's first cell gets a line of its own.

    Args:
        columns: heading -> alignment of the cells: "left", "center" or "right".
        rows: cells of each row, in the order of the columns.
        notes: remarks, one line each.
    """
    rows = [[printable(one_line(cell)) for cell in row] for row in rows]
    if is_terminal():
        _print_rich(columns, rows, notes)
        return
    for line in _lines([list(columns), *rows], ["left"] * len(columns), ["", *["  "] * (len(columns) - 1)]):
        say("".join(line).rstrip())
    for note in notes:
        say(f"# {note}")


def _lines(table: Sequence[Sequence[str]], aligned: Sequence[str], gaps: Sequence[str]) -> list[list[str]]:
    """Return the padded cells of each row; the gap of a column comes before it."""
    pad = {"left": str.ljust, "center": str.center, "right": str.rjust}
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    columns = list(zip(gaps, aligned, widths, strict=True))
    return [[g + pad[a](cell, w) for cell, (g, a, w) in zip(row, columns, strict=True)] for row in table]


def _print_rich(columns: Mapping[str, str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    words = [heading.split("_") for heading in columns]
    height = max(map(len, words))
    headings = [[(*[""] * (height - len(each)), *each)[i] for each in words] for i in range(height)]
    aligned, gaps, legend = list(columns.values()), ["", *[" "] * (len(columns) - 1)], list[str]()
    lines = _lines([*headings, *rows], aligned, gaps)
    if sum(map(len, lines[0])) > console.width:
        letters = iter(ascii_letters + digits)
        short = [h if any(len(row[i]) >= len(h) for row in rows) else next(letters, "?") for i, h in enumerate(columns)]
        legend = [f"{letter}={heading}" for letter, heading in zip(short, columns, strict=True) if letter != heading]
        gaps = ["" if a == b == "center" else g for a, b, g in zip(["", *aligned], aligned, gaps, strict=False)]
        headings, lines = [short], _lines([short, *rows], aligned, gaps)
        if sum(map(len, lines[0])) > console.width:
            lines = [[line[0].rstrip() + "\n ", *line[1:]] for line in lines]
    for line, cells in zip(lines, [*headings, *rows], strict=True):
        styles = ["bold"] * len(line) if cells in headings else [STYLES.get(cell, "") for cell in cells]
        console.print(Text.assemble(*zip(line, styles, strict=True)), soft_wrap=True)
    for note in ["   ".join(legend)] * bool(legend) + list(notes):
        console.print(Text(printable(note), style="dim"))
