"""`corejax verify`: check the rules of plugins' primitives."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

# The version of the printed JSON. Adding a key keeps the version; removing a key or changing its meaning raises it.
JSON_VERSION = 1
# The exit code after an interrupt: 128 plus the number of the signal, as in shells.
INTERRUPTED = 130


@click.command("verify")
@click.argument("names", nargs=-1, metavar="[PLUGIN | DISTRIBUTION | PRIMITIVE]...")
@click.option("--quick", is_flag=True, help="Try fewer variations of the examples.")
@click.option("--check", "checks", multiple=True, metavar="CHECK", help="Run only this check; may be repeated.")
@click.option("--list-checks", is_flag=True, help="Describe the checks, and exit.")
@click.option("--allow-missing-examples", is_flag=True, help="Accept primitives without examples.")
@click.option("--devices", type=click.IntRange(1), help="Split the CPU into this many devices (check `sharded`).")
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
    """Check the rules of primitives, alone and combined, on the examples that their plugins provide.

    Checks all plugins if no names are given. Prints one row for each primitive and one column for each check:
    ✓ the check passes, ○ it passes with a derived rule, ✗ it fails, · a rule is missing, – the check does not apply.
    For each failure, prints the smallest failing operands, the rule to look at and the probable mistake.

    A primitive without examples fails the check `examples`, since no other check can run. Provide examples in the
    plugin's hook corejax_provide_examples. The check `manifest` compares each plugin's manifest with its code. Plugins
    add checks for their own kinds of rules with the hook corejax_provide_checks. For a plugin that has no primitives,
    its own checks run on the primitives that it has rules for.

    \b
    Exit codes
      0  every check passes, does not apply, or lacks a rule
      1  a check fails, a primitive has no examples (unless allowed), or a selected plugin did not load
      2  wrong usage: unknown name or check
    130  interrupted: the results so far are shown
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
        width = max(map(len, [*known, manifests.NAME])) + 2
        for check in known.values():
            say(f"{check.name:<{width}}{check.doc}")
        click.echo(f"{manifests.NAME:<{width}}{manifests.DOC}")
        return
    for name in checks:
        if name not in known and name != manifests.NAME:
            raise click.UsageError(_no_check(name, [*known, manifests.NAME]))
    rule_checks = [name for name in checks or known if name in known]
    try:
        plan = planned(names, rule_checks) if rule_checks else []
    except KeyError as error:
        raise click.UsageError(error.args[0]) from None
    results, interrupted = _run(plan, quick, not allow_missing_examples)
    checks_manifests = (not checks or manifests.NAME in checks) and not interrupted
    manifest_results = list(manifests.verify_manifests(names)) if checks_manifests else []
    problems = faults(names)
    failed = problems or any(result.failed for result in [*results, *manifest_results])
    status = INTERRUPTED if interrupted else 1 if failed else 0
    if as_json:
        click.echo(json_text(_as_json([*results, *manifest_results], problems, status, quick)))
    else:
        from corejax_testing.report import print_report

        if results or problems:
            print_report(results, problems, notes(names))
        else:
            for note in notes(names):
                say(note)
        manifests.print_results(manifest_results)
    if interrupted:
        total = sum(len(checks) for _, checks in plan)
        click.echo(f"interrupted: {len(results)} of {total} checks were made", err=True)
    click.get_current_context().exit(status)


def _set_devices(count: int) -> None:
    from corejax.extend import config

    try:
        config.update("num_cpu_devices", count)
    except AttributeError:
        raise click.UsageError("--devices: the devices belong to corejax-xla-backend, which is not installed") from None


def _no_check(name: str, known: list[str]) -> str:
    from corejax.extend.messages import did_you_mean

    hint = did_you_mean(name, known) or f"; the checks are {', '.join(known)}"
    return f"there is no check named {name!r}{hint}"


def _run(plan: Sequence[tuple[Any, Sequence[str]]], quick: bool, examples_required: bool) -> tuple[list[Any], bool]:
    """Return the results of the checks, and whether an interrupt stopped them early."""
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
    """Show a progress bar if standard error is a terminal; yield a function like `rich.progress.Progress.update`.

    The function raises KeyboardInterrupt if Python has dropped one, as it does in callbacks of the garbage collector,
    of which hypothesis has one.
    """
    dropped: list[Any] = []
    report = sys.unraisablehook

    def keep(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            dropped.append(unraisable.exc_type)
        else:
            report(unraisable)

    with _bar(total, counts) as update:

        def step(**fields: Any) -> None:
            if dropped:
                raise KeyboardInterrupt
            update(**fields)

        sys.unraisablehook = keep
        try:
            yield step
        finally:
            sys.unraisablehook = report


@contextmanager
def _bar(total: float | None, counts: bool) -> Iterator[Callable[..., None]]:
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
