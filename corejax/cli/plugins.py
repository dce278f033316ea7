"""`corejax plugins`: lists installed plugins, their status, and the causes of failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from corejax.arrays.backends import backends
from corejax.base.registered import primitives
from corejax.base.texts import how_to_install
from corejax.cli.list_primitives import plugins_named
from corejax.cli.output import JSON_VERSION, print_json, print_table, report_selection
from corejax.messages.homes import HOMES, install_advice
from corejax.plugins import load_everything, manager
from corejax.plugins._records import PluginRecord, causes


@click.command("plugins")
@click.argument("names", nargs=-1, metavar="[PLUGIN]...")
@click.option("--load", is_flag=True, help="Load all plugins, to see whether they work.")
@click.option("--no-load", is_flag=True, help="Import no plugin, even if its manifest is not good.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plugins(names: Sequence[str], load: bool, no_load: bool, as_json: bool) -> None:
    """List plugins: distribution, version, status, manifest, number of primitives.

    All plugins are listed, or only those with these names or distributions.

    A manifest is a file in the plugin's package that lists what the plugin contributes (`corejax write-manifest`). If
    all manifests are good, nothing is imported; otherwise plugins are loaded.

    \b
    Status
      found   installed, and not loaded
      loaded  ready for use
      off     not selected by COREJAX_PLUGINS
      failed  raised an error, which is shown with its causes
    Manifest
      good     belongs to this version of the plugin
      none     does not exist
      stale    belongs to another version, or to other sources
      unknown  has a manifest version that this corejax does not read

    Exit codes: 0; 1 if one of these plugins failed; 2 for an unknown name, and --load with --no-load.
    """
    if load and no_load:
        raise click.UsageError("--load and --no-load exclude each other")
    if load or (not no_load and manager().usable_manifests() is None):
        load_everything()
    counts = Counter(primitive.provenance.plugin for primitive in list(primitives.values()))
    records = list(manager().discover().values()) if not names else [r for name in names for r in plugins_named(name)]
    entries = [_entry(record, counts) for record in dict.fromkeys(records)]
    entries.sort(key=lambda entry: entry["name"])
    if as_json:
        print_json({"format": "corejax-plugins", "version": JSON_VERSION, "plugins": entries})
    else:
        _print_text(entries)
    report_selection()
    if any(entry["causes"] for entry in entries):
        click.get_current_context().exit(1)


def _entry(record: PluginRecord, counts: Counter[str | None]) -> dict[str, Any]:
    reasons = [] if record.fault is None else [*causes(record.fault), *record.unmet]
    for what, fault in record.late_faults.items():
        reasons += [f"{what}: {cause}" for cause in causes(fault)]
    manifest = manager().manifest(record)
    count = counts[record.name] if record.status == "loaded" else None
    provided = [name for name, (_, owner) in backends.provided.items() if owner is record]
    if record.status == "found" and manifest.manifest is not None:
        count, provided = len(manifest.manifest.primitives), list(manifest.manifest.backends)
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "status": record.status,
        "manifest": manifest.word,
        "manifest_problem": manifest.problem,
        "primitives": count,
        "backends": provided,
        "entry_point": record.value,
        "causes": reasons,
    }


def _print_text(entries: Sequence[dict[str, Any]]) -> None:
    columns = dict.fromkeys(("name", "distribution", "version", "status", "manifest"), "left") | {"primitives": "right"}
    rows = [["–" if entry[name] is None else str(entry[name]) for name in columns] for entry in entries]
    notes = [f"{entry['name']}: {' <- '.join(entry['causes'])}" for entry in entries if entry["causes"]]
    for entry in entries:
        if ":" in entry["manifest_problem"]:
            write = f"corejax write-manifest {entry['name']}"
            notes.append(f"{entry['name']}: manifest {entry['manifest_problem']} ({write})")
    notes += [f"{entry['name']}: backends {', '.join(entry['backends'])}" for entry in entries if entry["backends"]]
    if any(entry["status"] == "found" for entry in entries):
        notes.append("plugins that are found were not loaded; to see whether they load: corejax plugins --load")
    if entries and not any("eager_engine" in r.offers for r in manager().discover().values() if r.status != "off"):
        warning = "no plugin has an engine: eager calls take two to twenty times as long"
        notes.append(warning + install_advice("names", "eager_engine"))
    if not entries:
        notes.append("no plugin is installed; try: pip install 'corejax[all]'")
        notes += [advice for advice in map(how_to_install, sorted(HOMES)) if "metadata" in advice]
    print_table(columns, rows, notes)
