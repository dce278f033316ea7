"""`corejax plugins`: what is installed, whether it works, and if not, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from corejax.cli.faults import report_selection
from corejax.cli.output import Column, print_json, print_table
from corejax.plugins import load_everything, manager
from corejax.plugins.records import PluginRecord, causes
from corejax.primitive import primitives


@click.command("plugins")
@click.option("--no-load", is_flag=True, help="Only find plugins; import none of them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plugins(no_load: bool, as_json: bool) -> None:
    """List plugins: distribution, version, status, number of primitives.

    Status: loaded; off (not selected by COREJAX_PLUGINS); failed, with what raised and what that came from;
    found (--no-load).

    Exit codes: 0; 1 if a plugin failed.
    """
    if no_load:
        manager().discover()
    else:
        load_everything()
    counts = Counter(primitive.provenance.plugin for primitive in list(primitives.values()))
    entries = [_entry(record, counts) for record in manager().records.values()]
    entries.sort(key=lambda entry: entry["name"])
    if as_json:
        print_json({"plugins": entries})
    else:
        _print_text(entries)
    report_selection()
    if any(entry["causes"] for entry in entries):
        click.get_current_context().exit(1)


def _entry(record: PluginRecord, counts: Counter[str | None]) -> dict[str, Any]:
    failed = [] if record.fault is None else causes(record.fault)
    for kind, fault in record.rule_faults.items():
        failed += [f"{kind} rules: {cause}" for cause in causes(fault)]
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "status": record.status,
        "primitives": counts[record.name] if record.status == "loaded" else None,
        "entry_point": record.value,
        "causes": failed,
    }


def _print_text(entries: Sequence[dict[str, Any]]) -> None:
    names = ("name", "distribution", "version", "status", "primitives")
    columns = [*(Column(name) for name in names[:-1]), Column("primitives", "right")]
    rows = [["–" if entry[name] is None else str(entry[name]) for name in names] for entry in entries]
    notes = [f"{entry['name']}: {' <- '.join(entry['causes'])}" for entry in entries if entry["causes"]]
    if not entries:
        notes.append("no plugin is installed; try: pip install corejax-lax-basic corejax-numpy corejax-xla-backend")
    print_table(columns, rows, notes)
