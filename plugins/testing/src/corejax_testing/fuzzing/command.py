"""`corejax fuzz`: random programs over installed primitives."""

from __future__ import annotations

from typing import Any

import click

from corejax_testing.command import INTERRUPTED, progress


@click.command("fuzz")
@click.option(
    "--primitives", "given", multiple=True, metavar="A,B",
    help="Use only these primitives, or those of these plugins; may be repeated.",
)  # fmt: skip
@click.option("--minutes", type=click.FloatRange(min=0), help="The time to run.  [default: 1, without --programs]")
@click.option("--programs", type=click.IntRange(min=1), help="The number of programs.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed of the programs.")
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True,
              help="The number of the first program.")  # fmt: skip
@click.option("--max-equations", "most", type=click.IntRange(min=1), default=10, show_default=True,
              help="The equations of a program, before nests and glue add theirs.")  # fmt: skip
@click.option("--max-failures", type=click.IntRange(min=1), default=10, show_default=True,
              help="Stop after this many different failures.")  # fmt: skip
@click.option("--relation", "relations", multiple=True, metavar="RELATION",
              help='Check only this relation, such as "jit of vjp"; may be repeated.')  # fmt: skip
@click.option("--list-relations", is_flag=True, help="List the relations and nests, and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fuzz(
    given: tuple[str, ...], minutes: float | None, programs: int | None, seed: int, first: int, most: int,
    max_failures: int, relations: tuple[str, ...], list_relations: bool, as_json: bool,
) -> None:  # fmt: skip
    """Build random programs from the examples of plugins, and compare the results of all transformations.

    Programs apply primitives to each other's results, and wrap parts in jit, vmap, jvp, vjp, linearize, cond, scan and
    other installed transformations. Each program must have the same results if it is evaluated, compiled, batched,
    differentiated, split and printed, up to the effect of rounding errors. A failing program is reduced and printed
    with its operands and the command that reproduces it. The same seed gives the same programs.

    Exit codes: 0; 1 if a program fails; 2 for an unknown name; 130 if interrupted, after printing the failures so far.
    """
    from corejax.extend import load_everything
    from corejax.extend.messages import json_text
    from corejax_testing.fuzzing.nests import NESTS
    from corejax_testing.fuzzing.relations import RELATIONS, known
    from corejax_testing.fuzzing.session import as_json as described
    from corejax_testing.fuzzing.session import fuzz as run
    from corejax_testing.selection import chosen

    if list_relations:
        for name, relation in RELATIONS.items():
            click.echo(f"{name:<12}{(relation.__doc__ or '').strip().splitlines()[0]}")
        click.echo(f"each also applies to nests: {', '.join(NESTS)}; for example `jit of vjp of scan`")
        return
    load_everything()
    for wanted in relations:
        if not known(wanted):
            raise click.UsageError(f"there is no relation {wanted!r}; see corejax fuzz --list-relations")
    names = [name.strip() for some in given for name in some.split(",") if name.strip()]
    try:
        selected = chosen(names)
    except KeyError as error:
        raise click.UsageError(error.args[0]) from None
    again = [f"--primitives {','.join(names)}"] if names else []
    again += [f"--max-equations {most}"] if most != 10 else []
    again += [f"--relation '{name}'" for name in relations]
    options = "".join(f" {option}" for option in again)
    seconds = 60.0 * minutes if minutes is not None else None if programs is not None else 60.0
    summary, interrupted = None, False

    def show_progress(so_far: Any) -> None:
        nonlocal summary
        summary = so_far
        rate = so_far.programs / so_far.seconds if so_far.seconds else 0.0
        step(
            completed=so_far.programs if programs is not None else so_far.seconds,
            description=f"{so_far.programs} programs, {rate:.1f}/s, {len(so_far.primitives)} primitives "
            f"({len(selected)} wanted), {len(so_far.failures)} failures",
        )

    try:
        with progress(programs if programs is not None else seconds) as step:
            summary = run(
                selected, seed=seed, first=first, programs=programs, seconds=seconds, most=most,
                most_failures=max_failures, relations=relations or None, options=options,
                progress=show_progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        if summary is None:
            raise
        interrupted = True
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        click.echo(json_text(described(summary)))
    else:
        _print(summary)
    if interrupted:
        click.echo("interrupted", err=True)
    if interrupted or summary.failures:
        click.get_current_context().exit(INTERRUPTED if interrupted else 1)


def _print(summary: Any) -> None:
    from corejax.extend.commands import say

    for failure in summary.failures:
        say(f"{failure.report()}\n")
    rare = summary.primitives.most_common()[::-1][:8]
    asked: dict[str, int] = {}
    for name, count in summary.asked.items():
        key = name if " of " not in name else f"{name.split(' of ')[0]} of a nest"
        asked[key] = asked.get(key, 0) + count
    rate = summary.programs / summary.seconds if summary.seconds else 0.0
    rows = [
        ("programs", f"{summary.programs} of {summary.equations} equations, {rate:.1f} programs/s"),
        ("checked", ", ".join(f"{name} {count}" for name, count in sorted(asked.items()))),
        ("primitives", f"{len(summary.primitives)} seen; rarest: {', '.join(f'{n} {c}' for n, c in rare)}"),
    ]
    if summary.unseen:
        rows.append(("never seen", ", ".join(summary.unseen)))
    if summary.without:
        rows.append(("left out", f"{', '.join(summary.without)}: no examples on arrays, or effects"))
    for name, text in rows:
        say(f"{name:<12}{text}")
    repeated = f", and {summary.repeated} more programs that fail like these" if summary.repeated else ""
    click.echo(f"\n# {len(summary.failures)} failures{repeated}")
