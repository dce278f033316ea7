"""The table of marks, and what fails in full."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from corejax_testing.runner import FAILED, MISSING, PASSED, SKIPPED, Result

MARKS = {PASSED: "✓", FAILED: "✗", MISSING: "·", SKIPPED: "–"}
_STYLES = {"✓": "green", "✗": "bold red", "·": "yellow", "–": "dim"}
_ASCII = {"✓": "x", "✗": "F", "·": ".", "–": "-"}


def print_report(results: Sequence[Result]) -> None:
    """Rows of marks, one for each primitive; failures below, then a line of totals."""
    checks = list(dict.fromkeys(result.check for result in results))
    rows: dict[str, dict[str, str]] = {}
    for result in results:
        rows.setdefault(result.primitive, {})[result.check] = MARKS[result.status]
    if sys.stdout.isatty():
        _print_rich(checks, rows)
    else:
        _print_plain(checks, rows)
    for result in results:
        if result.failed:
            click.echo(f"\n{_printable(result.report())}")
    click.echo(_printable(f"\n# {_totals(results)}"))


def _totals(results: Sequence[Result]) -> str:
    counts = {status: sum(result.status == status for result in results) for status in MARKS}
    named = ", ".join(f"{MARKS[status]} {count} {status}" for status, count in counts.items())
    without = len({r.primitive for r in results} - {r.primitive for r in results if r.applications})
    note = f"; {without} without examples (hook corejax_provide_examples)" if without else ""
    return f"{len({r.primitive for r in results})} primitives: {named}{note}"


def _printable(text: str) -> str:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        for mark, plain in _ASCII.items():
            text = text.replace(mark, plain)
        return text.encode("ascii", "backslashreplace").decode()
    return text


def _print_plain(checks: Sequence[str], rows: dict[str, dict[str, str]]) -> None:
    table = [["primitive", *checks], *([name, *(marks[check] for check in checks)] for name, marks in rows.items())]
    widths = [max(len(row[i]) for row in table) for i in range(len(checks) + 1)]
    for row in table:
        click.echo(_printable("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()))


def _print_rich(checks: Sequence[str], rows: dict[str, dict[str, str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("primitive")
    for check in checks:
        table.add_column(check.replace("_", "\n"), justify="center", overflow="fold")
    for name, marks in rows.items():
        table.add_row(name, *(Text(marks[check], style=_STYLES[marks[check]]) for check in checks))
    Console().print(table)
