"""What plugins give late: primitives, registries of rule kinds, rules and backends, each when it is first missing."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from corejax.base.texts import error_text
from corejax.core.backends import Backend, backends, problem_of
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.plugins._loading import Loader
from corejax.plugins._records import PluginRecord
from corejax.rules import RuleRegistry, registries

if TYPE_CHECKING:
    from corejax.core.primitive import Primitive


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
            take = partial(_import_registry, kind, target)
            done |= loader.run_once(record, ("registry", kind), take, f"{kind} rules")
    return done


def _import_registry(kind: str, target: str) -> None:
    found: RuleRegistry = _import_instance(f"rule kind {kind!r} is declared", target, RuleRegistry, "a RuleRegistry")
    if found.kind != kind:
        raise PluginError(f"rule kind {kind!r} is declared as {target}, which is the registry of kind {found.kind!r}")
    # Not always there: a plugin that is registered again finds its modules imported and its registry taken out.
    if kind not in registries:
        registries.register(kind, found, provenance=found.provenance)
    if registries[kind] is not found:
        raise DuplicateRegistrationError(
            f"rule kind {kind!r} exists, from {registries[kind].provenance}; {target} is a second one"
        )


def register_rules(loader: Loader, records: Iterable[PluginRecord], kind: str, primitive: Primitive | None) -> bool:
    """Have every plugin register its rules of a kind; True when one was asked for the first time.

    For the rule of a primitive, those that tell their own primitives apart register no more than they want to for it. A
    plugin whose rules of the kind cannot be loaded keeps what it contributed before.
    """
    done = False
    with loader.lock:
        for record in _loaded(records):
            what: tuple[str, ...] = ("rules", kind)
            asked = None
            if primitive is not None and what not in record.done and _tells_apart(record):
                if primitive.provenance.plugin != record.name:
                    continue
                what, asked = (*what, primitive.name), primitive
            register = partial(record.hook.corejax_register_rules, kind=kind, primitive=asked)
            done |= loader.run_once(record, what, register, f"{kind} rules")
    return done


def _tells_apart(record: PluginRecord) -> bool:
    return any("primitive" in impl.argnames for impl in record.hook.corejax_register_rules.get_hookimpls())


def import_backend(loader: Loader, name: str) -> Backend:
    """The object that a plugin provides as a backend; a plugin that fails keeps what it contributed before.

    Raises:
        PluginError: it cannot be imported, now or at the first time.
    """
    target, record = backends.provided[name]
    found: list[Backend] = []
    what = f"backend {name!r}"
    with loader.lock:
        if what not in record.late_faults:
            loader.run(record, lambda: found.append(_backend_at(name, target)), what)
    if not found:
        fault = record.late_faults[what]
        raise PluginError(
            f"backend {name!r} comes from plugin {record.title}, which failed to load it: {error_text(fault)}"
        ) from fault
    return found[0]


def _backend_at(name: str, target: str) -> Backend:
    found: Backend = _import_instance(f"backend {name!r} is provided", target, Backend, "a corejax.extend.Backend")
    if problem := problem_of(found):
        what = f"backend {name!r}, {target}{problem}"
        raise PluginError(f"{what}; corejax.extend.Backend says what each has to be")
    return found


def _import_instance(said: str, target: str, wanted: type, title: str) -> Any:
    """Import the object at a place and check its class; `said` and `title` begin and end the message."""
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(found, wanted):
        given = "there is nothing of that name" if found is None else f"it is {found!r}"
        raise PluginError(f"{said} as {target}, which has to be {title}; {given}")
    return found


def _loaded(records: Iterable[PluginRecord]) -> Iterator[PluginRecord]:
    """Those that are loaded when their turn comes: one may fail while another one's code runs."""
    return (record for record in list(records) if record.status == "loaded")
