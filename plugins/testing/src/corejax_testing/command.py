"""`corejax verify`: check the rules of plugins' primitives."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click


@click.command("verify")
@click.argument("names", nargs=-1, metavar="[PLUGIN | PRIMITIVE]...")
@click.option("--quick", is_flag=True, help="Fewer variations of the examples.")
@click.option("--check", "checks", multiple=True, metavar="CHECK", help="Only this check; may be repeated.")
@click.option("--list-checks", is_flag=True, help="Say what the checks check, and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(names: Sequence[str], quick: bool, checks: Sequence[str], list_checks: bool, as_json: bool) -> None:
    """Check the rules of primitives, one by one and together, on the examples that their plugins give.

    Without names, all plugins. One row for each primitive, one column for each check: ✓ it holds, ✗ it does not
    (what fails follows, with the smallest operands found and the rule to look at), · a rule is missing, – the
    check means nothing there.

    Exit codes: 0; 1 if a check fails; 2 for a name that does not exist.
    """
    from corejax.extend import load_everything
    from corejax_testing.checks import CHECKS
    from corejax_testing.selection import chosen

    if list_checks:
        for check in CHECKS.values():
            click.echo(f"{check.name:<14}{check.doc}")
        return
    load_everything()
    for name in checks:
        if name not in CHECKS:
            raise click.UsageError(f"there is no check named {name!r}; there are {', '.join(CHECKS)}")
    try:
        primitives = chosen(names)
    except KeyError as error:
        raise click.UsageError(error.args[0]) from None
    results = _run(primitives, list(checks) or list(CHECKS), quick)
    if as_json:
        click.echo(json.dumps(_as_json(results), indent=2, ensure_ascii=False))
    else:
        from corejax_testing.report import print_report

        print_report(results)
    if any(result.failed for result in results):
        click.get_current_context().exit(1)


def _run(primitives: Sequence[Any], checks: Sequence[str], quick: bool) -> list[Any]:
    from corejax_testing.runner import verify as verify_primitive

    results = []
    with _progress(len(primitives) * len(checks)) as step:
        for primitive in primitives:
            for result in verify_primitive(primitive, checks=checks, quick=quick):
                results.append(result)
                step(f"{primitive.name}: {result.check}")
    return results


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A bar on standard error, if somebody looks at it."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda text: bar.update(task, advance=1, description=text)


def _as_json(results: Sequence[Any]) -> dict[str, Any]:
    statuses = sorted({result.status for result in results})
    return {
        "results": [dataclasses.asdict(result) for result in results],
        "totals": {status: sum(result.status == status for result in results) for status in statuses},
    }
