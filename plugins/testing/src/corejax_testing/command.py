"""`corejax verify`: check the rules of plugins' primitives."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

# Of the JSON that is printed. Keys may be added to a version; what is removed or means something else makes a new one.
JSON_VERSION = 1
INTERRUPTED = 130  # the exit code; as shells have it, 128 and the number of the signal


@click.command("verify")
@click.argument("names", nargs=-1, metavar="[PLUGIN | DISTRIBUTION | PRIMITIVE]...")
@click.option("--quick", is_flag=True, help="Fewer variations of the examples.")
@click.option("--check", "checks", multiple=True, metavar="CHECK", help="Only this check; may be repeated.")
@click.option("--list-checks", is_flag=True, help="Say what the checks check, and exit.")
@click.option("--allow-missing-examples", is_flag=True, help="Primitives without examples are no failure.")
@click.option("--devices", type=click.IntRange(1), help="Have the CPU pass for so many devices (check `sharded`).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(
    names: Sequence[str],
    quick: bool,
    checks: Sequence[str],
    list_checks: bool,
    allow_missing_examples: bool,
    devices: int | None,
    as_json: bool,
) -> None:
    """Check the rules of primitives, one by one and together, on the examples that their plugins give.

    Without names, all plugins. One row for each primitive, one column for each check: ✓ it holds, ○ it holds by a
    rule that is derived, ✗ it does not (what fails follows, with the smallest operands found, the rule to look at and
    what is probably wrong), · a rule is missing, – the check means nothing there.

    A primitive without examples fails the check `examples`: nothing else can be said of it. For primitives of a plugin
    give some in its hook corejax_provide_examples. Of plugins, also whether their manifests say what their code does
    (check `manifest`). Plugins add checks for rules of their own kinds (hook corejax_provide_checks); of a plugin that
    has no primitives these are run, on the primitives that it has rules for.

    \b
    Exit codes
      0  every check holds, or means nothing, or lacks a rule
      1  a check fails, a primitive has no examples (unless allowed), or a plugin that is meant did not load
      2  wrong usage: a name or check that does not exist
    130  interrupted: what was found until then is shown
    """
    from corejax.extend import load_everything
    from corejax.extend.commands import say
    from corejax.extend.messages import json_text
    from corejax_testing.checks import all_checks
    from corejax_testing.manifests import check as manifests
    from corejax_testing.selection import faults, notes, planned

    if devices is not None:
        _set_devices(devices)
    load_everything()
    known = all_checks()
    if list_checks:
        for check in known.values():
            say(f"{check.name:<14}{check.doc}")
        click.echo(f"{manifests.NAME:<14}{manifests.DOC}")
        return
    for name in checks:
        if name not in known and name != manifests.NAME:
            raise click.UsageError(_no_check(name, [*known, manifests.NAME]))
    of_rules = [name for name in checks or known if name in known]
    try:
        plan = planned(names, of_rules) if of_rules else []
    except KeyError as error:
        raise click.UsageError(error.args[0]) from None
    results, interrupted = _run(plan, quick, not allow_missing_examples)
    asked = (not checks or manifests.NAME in checks) and not interrupted
    of_plugins = list(manifests.verify_manifests(names)) if asked else []
    problems = faults(names)
    failed = problems or any(result.failed for result in [*results, *of_plugins])
    status = INTERRUPTED if interrupted else 1 if failed else 0
    if as_json:
        click.echo(json_text(_as_json([*results, *of_plugins], problems, status, quick)))
    else:
        from corejax_testing.report import print_report

        if results or problems:
            print_report(results, problems, notes(names))
        else:
            for note in notes(names):
                say(note)
        manifests.print_results(of_plugins)
    if interrupted:
        of_all = sum(len(checks) for _, checks in plan)
        click.echo(f"interrupted: {len(results)} of {of_all} checks were made", err=True)
    click.get_current_context().exit(status)


def _set_devices(count: int) -> None:
    from corejax.extend import config

    try:
        config.update("num_cpu_devices", count)
    except AttributeError:
        raise click.UsageError(
            "--devices: corejax-xla-backend, whose devices they would be, is not installed"
        ) from None


def _no_check(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
    return f"there is no check named {name!r}; {meant}"


def _run(plan: Sequence[tuple[Any, Sequence[str]]], quick: bool, examples_required: bool) -> tuple[list[Any], bool]:
    """What the checks say, and whether an interrupt has ended them before they were all made."""
    from corejax_testing.runner import verify as verify_primitive

    results: list[Any] = []
    try:
        with progress(sum(len(checks) for _, checks in plan), counts=True) as step:
            for primitive, checks in plan:
                found = verify_primitive(primitive, checks=checks, quick=quick, examples_required=examples_required)
                for result in found:
                    results.append(result)
                    step(advance=1, description=f"{primitive.name}: {result.check}")
    except KeyboardInterrupt:
        return results, True
    return results, False


@contextmanager
def progress(total: float | None, *, counts: bool = False) -> Iterator[Callable[..., None]]:
    """Show a bar on standard error if it is a terminal; yield what moves it on, as `rich.progress.Progress.update`."""
    if not sys.stderr.isatty():
        yield lambda **fields: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    of = [MofNCompleteColumn()] if counts else []
    columns = (BarColumn(), *of, TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield functools.partial(bar.update, bar.add_task("", total=total))


def _as_json(results: Sequence[Any], faults: Sequence[str], status: int, quick: bool) -> dict[str, Any]:
    import corejax

    statuses = sorted({result.status for result in results})
    return {
        "format": "corejax-verify",
        "version": JSON_VERSION,
        "corejax": corejax.__version__,
        "quick": quick,
        "exit_status": status,
        "faults": list(faults),
        "results": [dataclasses.asdict(result) for result in results],
        "totals": {each: sum(result.status == each for result in results) for each in statuses},
    }
