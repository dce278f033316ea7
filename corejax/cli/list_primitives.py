"""`corejax list-primitives`: lists primitives with their plugins and their rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import click

from corejax.base.texts import closest
from corejax.cli.output import JSON_VERSION, print_json, print_table, report_faults
from corejax.cli.primitive_table import PrimitiveTable, Row, primitive_table
from corejax.cli.rule_status import STATUSES, Status
from corejax.plugins import manager
from corejax.plugins._records import PluginRecord, named

_FEW = 30  # up to so many names are listed if there is no suggestion

MARKS: dict[Status, str] = {"own": "✓", "platform": "p", "derived": "d", "missing": "·", "not_required": "–"}


@click.command("list-primitives")
@click.option(
    "--plugin", "plugins", multiple=True, metavar="NAME", help="Only primitives of this plugin, or distribution."
)
@click.option("--rule", "present", multiple=True, metavar="KIND", help="Only those with such a rule, own or derived.")
@click.option("--missing", multiple=True, metavar="KIND", help="Only those without; exit code 1 if there are any.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_primitives(plugins: Sequence[str], present: Sequence[str], missing: Sequence[str], as_json: bool) -> None:
    """List primitives, the plugin of each, and its rules.

    The table has a column for each rule kind: ✓ the rule is written, d the kernel derives it, p it is written for
    some platforms only, · it is missing, – it is missing and not required. Options may be repeated: a primitive is
    listed if it meets all of them and belongs to one of the plugins. If standard output is not a terminal, columns
    are aligned with spaces and remarks start with `#`.

    Plugins with good manifests (`corejax plugins`) are not imported, except for --missing, which inspects the code
    itself, and --json, which includes the place of each definition.

    Exit codes: 0; 1 if --missing finds primitives, or a plugin named by --plugin is off or failed; 2 for an unknown
    name.
    """
    table = primitive_table(load=bool(missing) or as_json)
    present = [_kind(k, "--rule", table) for k in present]
    missing = [_kind(k, "--missing", table) for k in missing]
    records = [record for name in plugins for record in plugins_named(name, "--plugin: ")]
    owners = {record.name for record in records}
    rows = [
        row
        for row in table.rows
        if (not plugins or row.plugin in owners)
        and all(row.rules[kind].present for kind in present)
        and not any(row.rules[kind].present for kind in missing)
    ]
    (_print_json if as_json else _print_text)(rows, table)
    report_faults()
    if (missing and rows) or not all(record.status in ("loaded", "found") for record in records):
        click.get_current_context().exit(1)


def _kind(text: str, option: str, table: PrimitiveTable) -> str:
    kind = text.replace("-", "_")
    if kind not in table.kinds:
        raise click.UsageError(f"{option}: {no_such('rule kind', text, table.kinds)}")
    return kind


def plugins_named(name: str, option: str = "") -> list[PluginRecord]:
    """Return the plugin of a name, or those of a distribution; `option` begins the error if no plugin is found."""
    records = named(manager().discover(), name)
    if not records:
        raise click.UsageError(option + no_such("plugin", name, manager().records))
    return records


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence about an unknown name, with a close one (or one with a namespace), or all if they are few."""
    names = sorted(known)
    close = next((other for other in names if other.endswith(f".{name}")), None) or closest(name, names)
    few = ", ".join(names) or "none"
    listing = f"there are {few}." if len(names) <= _FEW else f"there are {len(names)}: see corejax list-primitives."
    return f"there is no {what} named {name!r}; {f'did you mean {close!r}?' if close else listing}"


def _totals(rows: Sequence[Row], kinds: Sequence[str]) -> dict[str, dict[str, int]]:
    statuses = {kind: [row.rules[kind].status for row in rows] for kind in kinds}
    return {kind: {status: each.count(status) for status in STATUSES} for kind, each in statuses.items()}


def _as_json(row: Row) -> dict[str, Any]:
    return {
        **row._asdict(),
        "rules": {kind: rule.status for kind, rule in row.rules.items()},
        "derived_by": {kind: rule.derivation for kind, rule in row.rules.items() if rule.derivation},
    }


def _print_json(rows: Sequence[Row], table: PrimitiveTable) -> None:
    print_json(
        {
            "format": "corejax-primitives",
            "version": JSON_VERSION,
            "rule_kinds": table.kinds,
            "primitives": [_as_json(row) for row in rows],
            "overrides": [override._asdict() for override in table.overrides],
            "totals": _totals(rows, table.kinds),
            "problems": manager().problems(),
        }
    )


def _print_text(rows: Sequence[Row], table: PrimitiveTable) -> None:
    columns = {"primitive": "left", "plugin": "left", **dict.fromkeys(table.kinds, "center")}
    cells = [[row.name, row.owner, *(MARKS[row.rules[kind].status] for kind in table.kinds)] for row in rows]
    shown = {row.name for row in rows}
    replaced = [f"replaced on purpose: {override}" for override in table.overrides if override.primitive in shown]
    statuses = {rule.status for row in rows for rule in row.rules.values()} | {"own", "derived", "missing"}
    legend = "   ".join(f"{MARKS[status]} {text}" for status, text in STATUSES.items() if status in statuses)
    print_table(columns, cells, [legend, _summary(rows), *replaced])


def _summary(rows: Sequence[Row]) -> str:
    count: Counter[Status] = Counter(rule.status for row in rows for rule in row.rules.values())
    ways = Counter(rule.derivation for row in rows for rule in row.rules.values() if rule.derivation)
    by = f" ({', '.join(f'{n} by {way}' for way, n in ways.most_common())})" if ways else ""
    owners = len({row.plugin for row in rows if row.plugin})
    lacking = [f"{kind} of {row.name}" for row in rows for kind, r in row.rules.items() if r.status == "missing"]
    which = f" ({', '.join(lacking)})" if 0 < len(lacking) <= _FEW else ""
    rules = f"{count['own'] + count['platform']} own, {count['derived']} derived{by}, {len(lacking)} missing{which}"
    sources = f"{owners or 'no'} plugin{'s' * (owners > 1)}"
    return f"{len(rows)} primitive{'s' * (len(rows) != 1)} from {sources}; rules: {rules}"
