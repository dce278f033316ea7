"""The table of marks, and what fails in full."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from corejax.extend.messages import shown
from corejax_testing.runner import FAILED, MISSING, PASSED, SKIPPED, Result

DERIVED = "○"
MARKS = {PASSED: "✓", FAILED: "✗", MISSING: "·", SKIPPED: "–"}
_STYLES = {"✓": "green", DERIVED: "green", "✗": "bold red", "·": "yellow", "–": "dim"}
_ASCII = {"✓": "x", DERIVED: "o", "✗": "F", "·": ".", "–": "-"}


def mark_of(result: Result) -> str:
    """The sign in the table."""
    return DERIVED if result.status == PASSED and result.derived else MARKS[result.status]


def print_report(results: Sequence[Result], faults: Sequence[str] = (), notes: Sequence[str] = ()) -> None:
    """Rows of marks, one for each primitive; failures, missing rules and faults below, then a line of totals.

    Of a single primitive, one line for each check, with the sentence that it checks.
    """
    checks = list(dict.fromkeys(result.check for result in results))
    rows: dict[str, dict[str, str]] = {}
    for result in results:
        rows.setdefault(result.primitive, {})[result.check] = mark_of(result)
    if len(rows) == 1 and len(checks) > _FEW_CHECKS:
        _print_single(results)
    elif rows and sys.stdout.isatty():
        _print_rich(checks, rows)
    elif rows:
        _print_plain(checks, rows)
    for result in results:
        if result.failed and not result.after:
            click.echo(f"\n{printable(result.report())}")
    for line in [*_following(results), *_missing(results), *(f"failed: {fault}" for fault in faults), *notes]:
        click.echo(f"\n{printable(line)}")
    for note in dict.fromkeys(result.note for result in results if result.note):
        names = dict.fromkeys(result.check for result in results if result.note == note)
        click.echo(printable(f"\n# {', '.join(names)}: {note}"))
    click.echo(printable(f"\n# {_totals(results)}"))


_FEW_CHECKS = 6


def _print_single(results: Sequence[Result]) -> None:
    from corejax_testing.checks import all_checks

    checks = all_checks()
    click.echo(printable(results[0].primitive))
    width = max(len(result.check) for result in results)
    for result in results:
        mark, said = mark_of(result), checks[result.check].doc
        if result.status in (SKIPPED, MISSING):
            said = f"{result.status}: {result.message}"
        elif mark == DERIVED:
            said += f" (a rule derived from {result.derived})"
        line = printable(f"  {mark} {result.check:<{width}}  {said}")
        click.echo(click.style(line, dim=result.status == SKIPPED, bold=result.failed) if sys.stdout.isatty() else line)


def _following(results: Sequence[Result]) -> list[str]:
    """One line for the failures that another one may be the reason of."""
    found: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.failed and result.after:
            found.setdefault((result.primitive, result.after), []).append(result.check)
    return [
        f"{primitive}: {', '.join(names)} {'fail' if len(names) > 1 else 'fails'} too, perhaps for the same reason as "
        f"{first}: mend that first"
        for (primitive, first), names in found.items()
    ]


def _missing(results: Sequence[Result]) -> list[str]:
    """One line for each rule that is missing."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.status == MISSING:
            lacking.setdefault((result.primitive, result.message), []).append(result.check)
    return [
        f"{primitive}: {message} Not checked: {', '.join(names)}." for (primitive, message), names in lacking.items()
    ]


def _totals(results: Sequence[Result]) -> str:
    counts = {status: sum(result.status == status for result in results) for status in MARKS}
    named = ", ".join(f"{MARKS[status]} {count} {status}" for status, count in counts.items())
    derived = sum(mark_of(result) == DERIVED for result in results)
    of_these = f" ({DERIVED} {derived} of these by derived rules)" if derived else ""
    count = len({r.primitive for r in results})
    return f"{count} primitive{'' if count == 1 else 's'}: {named}{of_these}"


def printable(text: str) -> str:
    """The text in what standard output can show; control characters in it are shown, not obeyed."""
    text = shown(text)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        for mark, plain in _ASCII.items():
            text = text.replace(mark, plain)
        return text.encode("ascii", "backslashreplace").decode()
    return text


def _print_plain(checks: Sequence[str], rows: dict[str, dict[str, str]]) -> None:
    table = [
        ["primitive", *checks],
        *([name, *(marks.get(check, "") for check in checks)] for name, marks in rows.items()),
    ]
    widths = [max(len(row[i]) for row in table) for i in range(len(checks) + 1)]
    for row in table:
        click.echo(printable("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()))


def _print_rich(checks: Sequence[str], rows: dict[str, dict[str, str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("primitive")
    for check in checks:
        table.add_column(check.replace("_", "\n"), justify="center", overflow="fold")
    for name, marks in rows.items():
        table.add_row(
            Text(printable(name)),
            *(Text(mark, style=_STYLES.get(mark, "")) for mark in (marks.get(check, "") for check in checks)),
        )
    Console().print(table)
