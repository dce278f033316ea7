"""Print a table of the results, and each failure in full."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from corejax.extend.commands import print_table, printable, say
from corejax_testing.runner import FAILED, MISSING, PASSED, SKIPPED, Result

DERIVED = "○"
MARKS = {PASSED: "✓", FAILED: "✗", MISSING: "·", SKIPPED: "–"}


def mark_of(result: Result) -> str:
    """Return the sign that stands for a result in the table."""
    return DERIVED if result.status == PASSED and result.derived else MARKS[result.status]


def print_report(results: Sequence[Result], faults: Sequence[str] = (), notes: Sequence[str] = ()) -> None:
    """Print a row of marks for each primitive, then failures, missing rules, faults and a line of totals.

    For a single primitive, prints a line for each check, with the sentence that describes the check.
    """
    checks = list(dict.fromkeys(result.check for result in results))
    rows: dict[str, dict[str, str]] = {}
    for result in results:
        rows.setdefault(result.primitive, {})[result.check] = mark_of(result)
    if len(rows) == 1 and len(checks) > _FEW_CHECKS:
        _print_single(results)
    elif rows:
        columns = {"primitive": "left", **dict.fromkeys(checks, "center")}
        print_table(columns, [[name, *(marks.get(c, "") for c in checks)] for name, marks in rows.items()])
    for result in results:
        if result.failed and not result.after:
            say(f"\n{result.report()}")
    for line in [*_following(results), *_missing(results), *(f"failed: {fault}" for fault in faults), *notes]:
        say(f"\n{line}")
    for note in dict.fromkeys(result.note for result in results if result.note):
        names = dict.fromkeys(result.check for result in results if result.note == note)
        say(f"\n# {', '.join(names)}: {note}")
    say(f"\n# {_totals(results)}")


_FEW_CHECKS = 6


def _print_single(results: Sequence[Result]) -> None:
    from corejax_testing.checks import all_checks

    checks = all_checks()
    say(results[0].primitive)
    width = max(len(result.check) for result in results)
    for result in results:
        mark, text = mark_of(result), checks[result.check].doc
        if result.status in (SKIPPED, MISSING):
            text = f"{result.status}: {result.message}"
        elif mark == DERIVED:
            text += f" (a rule derived from {result.derived})"
        line = printable(f"  {mark} {result.check:<{width}}  {text}")
        click.echo(click.style(line, dim=result.status == SKIPPED, bold=result.failed) if sys.stdout.isatty() else line)


def _following(results: Sequence[Result]) -> list[str]:
    """Return a line for each earlier failure that may be the cause of later ones."""
    found: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.failed and result.after:
            found.setdefault((result.primitive, result.after), []).append(result.check)
    return [
        f"{primitive}: {', '.join(names)} also {'fail' if len(names) > 1 else 'fails'}, perhaps for the same reason as "
        f"{first}: fix {first} first"
        for (primitive, first), names in found.items()
    ]


def _missing(results: Sequence[Result]) -> list[str]:
    """Return a line for each missing rule."""
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
