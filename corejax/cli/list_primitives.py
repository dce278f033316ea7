"""`corejax list-primitives`: which plugin contributed each primitive, and which rules the primitive has."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import click

from corejax.cli.faults import report_faults
from corejax.cli.output import print_json, print_table
from corejax.cli.primitive_table import PrimitiveTable, Row, primitive_table
from corejax.cli.rule_status import STATUSES, Status
from corejax.plugins import manager
from corejax.plugins._records import PluginRecord, named

_FEW = 30  # names that are listed in place of a suggestion

MARKS: dict[Status, str] = {"own": "✓", "platform": "p", "derived": "d", "missing": "·", "not_required": "–"}


@click.command("list-primitives")
@click.option(
    "--plugin", "plugins", multiple=True, metavar="NAME", help="Only primitives of this plugin, or distribution."
)
@click.option("--rule", "present", multiple=True, metavar="KIND", help="Only those with such a rule, own or derived.")
@click.option("--missing", multiple=True, metavar="KIND", help="Only those without; exit code 1 if there are any.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_primitives(plugins: Sequence[str], present: Sequence[str], missing: Sequence[str], as_json: bool) -> None:
    """List primitives: who contributed each, and which rules it has.

    One column for each rule kind: ✓ somebody wrote the rule, d the kernel derives it, p somebody wrote it for
    some platforms only, · it is missing, – there is none and none is required. Options may be repeated, all of
    them have to hold; of several plugins, one. Where standard output is no terminal, columns are aligned with
    spaces and remarks start with `#`.

    Plugins whose manifests are good (`corejax plugins`) are not imported for the table; for --missing, which looks
    at the code itself, and for --json, which also says where each primitive is defined, they are.

    Exit codes: 0; 1 if --missing finds primitives, or a plugin named by --plugin is off or failed; 2 for a name
    that does not exist.
    """
    found = primitive_table(load=bool(missing) or as_json)
    present = [_kind(k, "--rule", found) for k in present]
    missing = [_kind(k, "--missing", found) for k in missing]
    records = [record for name in plugins for record in plugins_named(name, "--plugin: ")]
    wanted = {record.name for record in records}
    chosen = [
        row
        for row in found.rows
        if (not plugins or row.plugin in wanted)
        and all(row.rules[kind].present for kind in present)
        and not any(row.rules[kind].present for kind in missing)
    ]
    if as_json:
        _print_json(chosen, found)
    else:
        _print_text(chosen, found)
    report_faults()
    if (missing and chosen) or not all(record.status in ("loaded", "found") for record in records):
        click.get_current_context().exit(1)


def _kind(text: str, option: str, found: PrimitiveTable) -> str:
    kind = text.replace("-", "_")
    if kind not in found.kinds:
        raise click.UsageError(f"{option}: {no_such('rule kind', text, found.kinds)}")
    return kind


def plugins_named(name: str, option: str = "") -> list[PluginRecord]:
    """Return the plugin of a name, or those of a distribution; `option` begins the error if nothing is found."""
    found = named(manager().discover(), name)
    if not found:
        raise click.UsageError(option + no_such("plugin", name, manager().records))
    return found


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """A sentence about a name that does not exist: the one that was probably meant, or all if they are few.

    A primitive's name without its namespace stands for it.
    """
    names = sorted(known)
    close = [other for other in names if other.endswith(f".{name}")] or difflib.get_close_matches(name, names, 1)
    few = ", ".join(names) or "none"
    there = f"there are {few}." if len(names) <= _FEW else f"there are {len(names)}: see corejax list-primitives."
    hint = f"did you mean {close[0]!r}?" if close else there
    return f"there is no {what} named {name!r}; {hint}"


def _totals(rows: Sequence[Row], kinds: Sequence[str]) -> dict[str, dict[str, int]]:
    counts = {kind: Counter(row.rules[kind].status for row in rows) for kind in kinds}
    return {kind: {status: count[status] for status in STATUSES} for kind, count in counts.items()}


def _as_json(row: Row) -> dict[str, Any]:
    return {
        **row._asdict(),
        "rules": {kind: found.status for kind, found in row.rules.items()},
        "derived_by": {kind: found.derivation for kind, found in row.rules.items() if found.derivation},
    }


def _print_json(rows: Sequence[Row], found: PrimitiveTable) -> None:
    print_json(
        {
            "rule_kinds": found.kinds,
            "primitives": [_as_json(row) for row in rows],
            "overrides": [override._asdict() for override in found.overrides],
            "totals": _totals(rows, found.kinds),
            "problems": manager().problems(),
        }
    )


def _print_text(rows: Sequence[Row], found: PrimitiveTable) -> None:
    columns = {"primitive": "left", "plugin": "left", **dict.fromkeys(found.kinds, "center")}
    cells = [[row.name, row.owner, *(MARKS[row.rules[kind].status] for kind in found.kinds)] for row in rows]
    shown = {row.name for row in rows}
    replaced = [f"replaced on purpose: {override}" for override in found.overrides if override.primitive in shown]
    print_table(columns, cells, [_legend(rows), _summary(rows), *replaced])


def _legend(rows: Sequence[Row]) -> str:
    shown = {found.status for row in rows for found in row.rules.values()} | {"own", "derived", "missing"}
    return "   ".join(f"{MARKS[status]} {text}" for status, text in STATUSES.items() if status in shown)


def _summary(rows: Sequence[Row]) -> str:
    count: Counter[Status] = Counter(found.status for row in rows for found in row.rules.values())
    ways = Counter(found.derivation for row in rows for found in row.rules.values() if found.derivation)
    by = f" ({', '.join(f'{n} by {way}' for way, n in ways.most_common())})" if ways else ""
    owners = len({row.plugin for row in rows if row.plugin})
    rules = f"{count['own'] + count['platform']} own, {count['derived']} derived{by}, {count['missing']} missing"
    return (
        f"{_plural(len(rows), 'primitive')} from {_plural(owners, 'plugin') if owners else 'no plugin'}; rules: {rules}"
    )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
