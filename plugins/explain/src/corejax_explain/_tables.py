"""Tables for a terminal, in colour, and for other outputs, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]  # title, headings, rows


def tables_text(summary: str, tables: Sequence[Table]) -> str:
    """Format a line and tables as plain text in aligned columns."""
    return "\n".join([summary, *(line for table in tables for line in _as_lines(table))])


def print_tables(summary: str, tables: Sequence[Table], file: IO[str] | None = None) -> None:
    """Print a line and tables, in colour on a terminal and as plain text elsewhere."""
    from rich.console import Console

    console = Console(file=file, highlight=False)
    if console.is_terminal:
        _print_rich(console, summary, tables)
    else:
        console.file.write(tables_text(summary, tables) + "\n")


def _as_lines(table: Table) -> list[str]:
    title, headings, rows = table
    cells = [headings, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return ["", f"{title}:", *(f"  {line}" for line in lines)]


def _print_rich(console: Any, summary: str, tables: Sequence[Table]) -> None:
    """Print on a terminal. Cells are wrapped between words only, so that names stay whole."""
    from rich.table import Table as RichTable
    from rich.text import Text

    console.print(Text(summary, style="bold"))
    for title, headings, rows in tables:
        columns = zip(headings, *rows, strict=True)
        longest = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
        if sum(longest) + 2 * len(longest) >= console.width:
            _print_stacked(console, title, headings, rows)
            continue
        shown = RichTable(title=title, title_justify="left", box=None, header_style="bold", title_style="cyan")
        for heading, width in zip(headings, longest, strict=True):
            shown.add_column(heading, overflow="fold", min_width=width)
        for row in rows:
            shown.add_row(*(Text(cell, style=_style(cell)) for cell in row))
        console.print(shown)


def _print_stacked(console: Any, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print each row as lines: its first cell, then each other cell that is not empty after its heading."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text(title, style="italic cyan"))
    for first, *others in rows:
        console.print(Text(first))
        for heading, cell in zip(headings[1:], others, strict=True):
            if cell:
                line = Text.assemble((f"{heading}: ", "bold"), (cell, _style(cell)))
                console.print(Padding(line, (0, 0, 0, 4), expand=False))


def _style(cell: str) -> str:
    return "yellow" if cell.startswith("derived (") else ""
