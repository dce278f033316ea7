"""What plugins have put into the kernel's tables, kept so that it can be taken out again.

A plugin that fails contributes nothing: neither what it had registered before it raised, nor what it had
registered earlier. Other plugins' entries, made meanwhile, stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from corejax import array_methods
from corejax.config import config
from corejax.ir.dce import dce_rules
from corejax.ir.values import param_types
from corejax.primitive import primitives
from corejax.rules import RuleRegistry, registries
from corejax.structural import structural


@dataclass(frozen=True)
class Store:
    """A table that plugins contribute to.

    Attributes:
        name: unique among stores.
        read: gives the entries.
        put: sets one entry, or removes it where the entry is None.
    """

    name: str
    read: Callable[[], Mapping[Any, Any]]
    put: Callable[[Any, Any], None]


@dataclass(frozen=True)
class Change:
    """One entry of a store, before and after; None where there was none."""

    store: Store
    key: Any
    old: Any
    new: Any


def table_store(name: str, table: dict[Any, Any]) -> Store:
    """A plain dict as a store."""

    def put(key: Any, entry: Any) -> None:
        if entry is None:
            table.pop(key, None)
        else:
            table[key] = entry

    return Store(name, lambda: table, put)


def _read_methods() -> dict[str, Any]:
    given = vars(array_methods.ArrayMethods)
    return {name: (owner, given.get(name)) for name, owner in array_methods.provenance.items()}


def _put_method(name: str, entry: Any) -> None:
    if entry is None:
        array_methods.withdraw(name)
    else:
        array_methods.provenance[name] = entry[0]
        setattr(array_methods.ArrayMethods, name, entry[1])


def _read_operations() -> dict[str, Any]:
    return {name: (fn, structural._owners[name]) for name, fn in structural._operations.items()}


def _put_operation(name: str, entry: Any) -> None:
    for table in (structural._operations, structural._owners, vars(structural)):
        table.pop(name, None)
    if entry is not None:
        structural._operations[name], structural._owners[name] = entry
        setattr(structural, name, entry[0])


def _read_settings() -> dict[str, Any]:
    values = vars(config)
    return {name: (parser, values[name]) for name, parser in values["_parsers"].items()}


def _put_setting(name: str, entry: Any) -> None:
    values = vars(config)
    if entry is None:
        values["_parsers"].pop(name, None)
        values.pop(name, None)
    else:
        values["_parsers"][name], values[name] = entry


def _rules(registry: RuleRegistry) -> Store:
    def put(key: Any, entry: Any) -> None:
        primitive, platform = key
        registry.reinstate(primitive, platform, entry)

    return Store(f"rules:{registry.kind}", lambda: registry._rules, put)


def _derivations(registry: RuleRegistry) -> Store:
    def put(key: int, entry: Any) -> None:
        registry.derivations[:] = [d for d in registry.derivations if id(d) != key]
        if entry is not None:
            registry.derivations.append(entry)

    return Store(f"derivations:{registry.kind}", lambda: {id(d): d for d in registry.derivations}, put)


def _kernel_stores() -> list[Store]:
    stores = [
        table_store("primitives", primitives),
        table_store("registries", registries),
        table_store("dce", dce_rules),
        table_store("parameter types", param_types),
        Store("array methods", _read_methods, _put_method),
        Store("operations", _read_operations, _put_operation),
        Store("settings", _read_settings, _put_setting),
    ]
    for registry in list(registries.values()):
        stores += [_rules(registry), _derivations(registry)]
    return stores


def _same(a: Any, b: Any) -> bool:
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
    return a is b


@dataclass
class Snapshot:
    """The entries of every store at one moment.

    Args:
        extra: stores besides the kernel's own.
    """

    extra: tuple[Store, ...] = ()
    entries: dict[str, dict[Any, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.entries = {store.name: dict(store.read()) for store in self._stores()}

    def _stores(self) -> list[Store]:
        return [*_kernel_stores(), *self.extra]

    def changes(self) -> list[Change]:
        """What differs now."""
        found = []
        for store in self._stores():
            before, now = self.entries.get(store.name, {}), dict(store.read())
            for key in {**before, **now}:
                old, new = before.get(key), now.get(key)
                if not _same(old, new):
                    found.append(Change(store, key, old, new))
        return found

    def absorb(self, changes: Iterable[Change]) -> None:
        """Take entries as they are now for part of this snapshot: they are somebody else's."""
        for change in changes:
            entries = self.entries.setdefault(change.store.name, {})
            now = change.store.read().get(change.key)
            if now is None:
                entries.pop(change.key, None)
            else:
                entries[change.key] = now


def undo(changes: list[Change]) -> None:
    """Take changes back, the last one first; entries that somebody replaced since then stay."""
    for change in reversed(changes):
        if _same(change.store.read().get(change.key), change.new):
            change.store.put(change.key, change.old)
