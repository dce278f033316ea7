"""What plugins give when they are loaded: names of the facade, rule kinds, settings, operations, array methods."""

from __future__ import annotations

import importlib
import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from corejax import array_methods
from corejax.backends import backends
from corejax.config import config
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.plugins._records import PluginRecord
from corejax.plugins._rule_kinds import check_rule_kinds
from corejax.plugins._targets import check_plain_name, check_targets, entries
from corejax.provenance import Provenance
from corejax.structural import structural
from corejax.tables import Table


class Exports:
    """What loaded plugins export and declare.

    Args:
        reserved: the facade's own names, which no plugin may export.

    Attributes:
        names: facade name -> (target, record).
        namespaces: facade namespace -> (module, record).
        rule_kinds: rule kind that a plugin adds -> (`module:registry`, record).
    """

    def __init__(self, reserved: Collection[str]) -> None:
        self.names: Table[str, tuple[str, PluginRecord]] = Table("name", of_hooks=True)
        self.namespaces: Table[str, tuple[str, PluginRecord]] = Table("namespace", of_hooks=True)
        self.rule_kinds: Table[str, tuple[str, PluginRecord]] = Table("declared rule kind", of_hooks=True)
        self.reserved = frozenset(reserved)

    def take(self, record: PluginRecord) -> None:
        """Take what a plugin's hooks give.

        Raises:
            PluginError: it is not of the form that the hook wants.
            DuplicateRegistrationError: a name is taken.
        """
        hook, by = record.hook, Provenance(record.module)
        self._take_names(record, self.names, check_names(hook.corejax_export_names()))
        self._take_names(record, self.namespaces, check_namespaces(hook.corejax_export_namespaces()))
        for kind, target in check_rule_kinds(hook.corejax_declare_rule_kinds()).items():
            if kind in self.rule_kinds:
                owner = self.rule_kinds[kind][1].title
                raise DuplicateRegistrationError(
                    f"rule kind {kind!r} is declared by plugin {owner}; plugin {record.title} declares a second one"
                )
            self.rule_kinds.register(kind, (target, record), provenance=by)
        for name, declared in check_settings(hook.corejax_declare_settings()):
            config.add_setting(name, *declared, by=by)
        for name, operation in check_operations(hook.corejax_provide_operations()):
            structural.provide(name, operation, by=by)
        for name, method in check_methods(hook.corejax_provide_array_methods()):
            array_methods.provide(name, method, by=by)
        for name, target in check_backends(hook.corejax_provide_backends()).items():
            backends.provide(name, target, record, by=by)

    def _take_names(self, record: PluginRecord, table: Table[str, Any], exports: Mapping[str, str]) -> None:
        record.offers |= exports
        for name, target in exports.items():
            found = self.target(name)
            if found is not None or name.partition(".")[0] in self.reserved:
                owner = f"plugin {found[1].title}" if found else "the kernel"
                raise DuplicateRegistrationError(
                    f"corejax.{name} is exported by {owner}; plugin {record.title} exports a second one"
                )
            table.register(name, (target, record), provenance=Provenance(record.module))

    def refuse_hidden(self, record: PluginRecord) -> None:
        """Refuse names of a plugin that nothing can reach; the modules around them are imported.

        Raises:
            DuplicateRegistrationError: a namespace of another plugin has the name itself.
            PluginError: what is around a name is no module.
        """
        for name in [name for name, (_, owner) in self.names.items() if owner is record and "." in name]:
            parent, _, last = name.rpartition(".")
            outer = [parent[:i] for i, c in enumerate(f"{parent}.") if c == "."]
            around = [self.namespaces[n][1] for n in outer if n in self.namespaces]
            if around and around[-1] is record:
                continue
            try:
                module = importlib.import_module(f"corejax.{parent}") if around else None
            except Exception as error:
                if parent in self.namespaces:
                    continue  # the fault of the namespace's plugin
                raise PluginError(f"corejax.{name} cannot be reached: corejax.{parent} is no module") from error
            if any(n in self.names for n in outer):
                raise PluginError(f"corejax.{name} cannot be reached: corejax.{parent} is no module")
            if last in getattr(module, "__all__", vars(module) if module else ()):
                raise DuplicateRegistrationError(
                    f"corejax.{name} is in the namespace of plugin {around[-1].title}; plugin {record.title} exports "
                    "a second one: export it under another name"
                )

    def target(self, name: str) -> tuple[str, PluginRecord] | None:
        """Where the object of a facade name or the module of a namespace is, and whose it is."""
        return self.names.get(name) or self.namespaces.get(name)


def check_names(exports: Any) -> dict[str, str]:
    """What `corejax_export_names` returned, validated."""
    return _check("corejax_export_names", '{"jit": "acme_corejax.api:jit"}', exports, colons=1)


def check_namespaces(exports: Any) -> dict[str, str]:
    """What `corejax_export_namespaces` returned, validated."""
    return _check("corejax_export_namespaces", '{"lax": "acme_corejax.lax"}', exports, colons=0)


def check_settings(declared: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What `corejax_declare_settings` returned, one by one.

    Raises:
        PluginError: an entry is no tuple of default and parser.
    """
    hook, example = "corejax_declare_settings", '{"acme_level": (3, int)}'
    for name, setting in entries(hook, example, declared):
        if not isinstance(setting, tuple | list) or not 1 <= len(setting) <= 3:
            wanted = "(default, parser), or with True as third where traces depend on it"
            raise PluginError(f"{hook} gives entries such as {example}: {wanted}; got {name!r}: {setting!r}")
        yield name, tuple(setting)


def check_operations(provided: Any) -> Iterator[tuple[str, Any]]:
    """What `corejax_provide_operations` returned, one by one.

    Raises:
        PluginError: an operation is no function.
    """
    hook, example = "corejax_provide_operations", '{"stack": stack}'
    for name, operation in entries(hook, example, provided):
        if not callable(operation):
            raise PluginError(f"{hook} gives functions, such as {example}; got {name!r}: {operation!r}")
        yield name, operation


def check_methods(provided: Any) -> Iterable[tuple[str, Any]]:
    """What `corejax_provide_array_methods` returned, one by one.

    Raises:
        PluginError: it is no mapping.
    """
    return entries("corejax_provide_array_methods", '{"cubed": cube}', provided)


def check_backends(provided: Any) -> dict[str, str]:
    """What `corejax_provide_backends` returned, validated; nothing is imported.

    Raises:
        PluginError: naming the entry and the form that is wanted.
    """
    found = check_targets("corejax_provide_backends", '{"acme": "acme_corejax.backend:BACKEND"}', provided)
    for name in found:
        check_plain_name("a backend's name", "acme", name)
    return found


_WORD = "a word, or several with dots between them, none of Python's own and none that begins with an underscore"


def _check(hook: str, example: str, exports: Any, *, colons: int) -> dict[str, str]:
    found = check_targets(hook, example, exports, colons=colons)
    for name, target in found.items():
        if not all(_is_word(word) and not word.startswith("_") for word in name.split(".")):
            raise PluginError(f"{hook}: nobody could write a name such as {name!r}; it is {_WORD}")
        if not all(map(_is_word, re.split("[.:]", target))):
            raise PluginError(f"{hook}: {name!r} is to be found at {target!r}, which is no place for an object")
    return found


def _is_word(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)
