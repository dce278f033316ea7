"""What plugins register late: primitives, registries of rule kinds and rules, each when it is first missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from corejax.plugins._loading import Loader, fail_rules
from corejax.plugins._records import PluginRecord
from corejax.plugins._rule_kinds import import_registry


def register_primitives(loader: Loader, records: Iterable[PluginRecord]) -> bool:
    """Have every plugin register its primitives; True when one was asked for the first time."""
    done = False
    with loader.lock:
        for record in _loaded(records):
            done |= loader.run_once(record, "primitives", record.hook.corejax_register_primitives)
    return done


def import_registries(loader: Loader) -> bool:
    """Import the registries of the rule kinds that plugins declared; True when one was imported.

    A plugin whose registry cannot be imported keeps what it contributed before.
    """
    done = False
    with loader.lock:
        for kind, (target, record) in list(loader.exports.rule_kinds.items()):
            take = partial(import_registry, kind, target)
            done |= loader.run_once(record, ("registry", kind), take, fail_rules(kind))
    return done


def register_rules(loader: Loader, records: Iterable[PluginRecord], kind: str) -> bool:
    """Have every plugin register its rules of a kind; True when one was asked for the first time.

    A plugin whose rules of the kind cannot be loaded keeps what it contributed before.
    """
    done = False
    with loader.lock:
        for record in _loaded(records):
            register = partial(record.hook.corejax_register_rules, kind=kind)
            done |= loader.run_once(record, ("rules", kind), register, fail_rules(kind))
    return done


def _loaded(records: Iterable[PluginRecord]) -> Iterator[PluginRecord]:
    """Those that are loaded when their turn comes: one may fail while another one's code runs."""
    return (record for record in list(records) if record.status == "loaded")
