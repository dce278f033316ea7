"""What plugins give when they are loaded, checked and put into tables; what it names is imported when needed."""

from __future__ import annotations

import importlib
import keyword
import re
from collections.abc import Collection, Mapping
from typing import Any

from corejax.base.provenance import Provenance
from corejax.base.tables import Table
from corejax.core import array_methods
from corejax.core.backends import Backend, backends, problem_of
from corejax.core.structural import structural
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.plugins._records import PluginRecord
from corejax.rules import RuleRegistry, registries
from corejax.settings.config import config

# Hooks that give mappings, with an example for messages.
_EXAMPLES = {
    "corejax_export_names": '{"jit": "acme_corejax.api:jit"}',
    "corejax_export_namespaces": '{"lax": "acme_corejax.lax"}',
    "corejax_declare_rule_kinds": '{"interval": "acme_corejax.interpreter:interval_rules"}',
    "corejax_declare_settings": '{"acme_level": (3, int)}',
    "corejax_provide_operations": '{"stack": stack}',
    "corejax_provide_array_methods": '{"cubed": cube}',
    "corejax_provide_backends": '{"acme": "acme_corejax.backend:BACKEND"}',
}
_COMPLETED = {"dtypes"}  # the kernel's module in which plugins export names, too
_WORD = "a word, or several with dots between them, none of Python's own and none that begins with an underscore"


class Exports:
    """What loaded plugins export and declare; `reserved` are the facade's own names, which no plugin may export.

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
        """Call a plugin's hooks and register what they give.

        Raises:
            PluginError: it is not of the form that the hook wants.
            DuplicateRegistrationError: a name is taken.
        """
        by = Provenance(record.module)
        self._take_names(record, "corejax_export_names", self.names, colons=1)
        self._take_names(record, "corejax_export_namespaces", self.namespaces, colons=0)
        for kind, target in _targets(record, "corejax_declare_rule_kinds").items():
            self._check_rule_kind(record, kind)
            self.rule_kinds.register(kind, (target, record), provenance=by)
        for name, declared in _mapping(record, hook := "corejax_declare_settings").items():
            if not isinstance(declared, tuple | list) or not 1 <= len(declared) <= 3:
                wanted = f"{_EXAMPLES[hook]}: (default, parser), or with True as third where traces depend on it"
                raise PluginError(f"{hook} gives entries such as {wanted}; got {name!r}: {declared!r}")
            config.add_setting(name, *declared, by=by)
        for name, operation in _mapping(record, hook := "corejax_provide_operations").items():
            if not callable(operation):
                raise PluginError(f"{hook} gives functions, such as {_EXAMPLES[hook]}; got {name!r}: {operation!r}")
            structural.provide(name, operation, by=by)
        for name, method in _mapping(record, "corejax_provide_array_methods").items():
            array_methods.provide(name, method, by=by)
        for name, target in _targets(record, "corejax_provide_backends").items():
            _check_plain_name("a backend's name", "acme", name)
            backends.provide(name, target, record, by=by)

    def _take_names(self, record: PluginRecord, hook: str, table: Table[str, Any], colons: int) -> None:
        exports = _targets(record, hook, colons)
        for name, target in exports.items():
            if not all(_is_word(word) and not word.startswith("_") for word in name.split(".")):
                raise PluginError(f"{hook}: nobody could write a name such as {name!r}; it is {_WORD}")
            if not all(map(_is_word, re.split("[.:]", target))):
                raise PluginError(f"{hook}: {name!r} is to be found at {target!r}, which is no place for an object")
        record.offers |= exports
        for name, target in exports.items():
            found = self.target(name)
            own = name in self.reserved or name.partition(".")[0] in self.reserved - _COMPLETED
            if found is not None or own:
                owner = f"plugin {found[1].title}" if found else "the kernel"
                raise DuplicateRegistrationError(
                    f"corejax.{name} is exported by {owner}; plugin {record.title} exports a second one"
                )
            table.register(name, (target, record), provenance=Provenance(record.module))

    def _check_rule_kind(self, record: PluginRecord, kind: str) -> None:
        _check_plain_name("a rule kind", "interval", kind)
        own = kind in registries and registries[kind].provenance.package == "corejax"
        if own or kind == "primitives":  # which `PluginAccess.load_rules` takes for all primitives
            raise DuplicateRegistrationError(f"rule kind {kind!r} is the kernel's own; choose another name for yours")
        if kind in self.rule_kinds:
            owner = self.rule_kinds[kind][1].title
            raise DuplicateRegistrationError(
                f"rule kind {kind!r} is declared by plugin {owner}; plugin {record.title} declares a second one"
            )

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


def _mapping(record: PluginRecord, hook: str) -> Mapping[Any, Any]:
    """Call a hook that gives a mapping; None counts as an empty one."""
    given = getattr(record.hook, hook)()
    if given is None:
        return {}
    if not hasattr(given, "items"):
        raise PluginError(f"{hook} gives a mapping such as {_EXAMPLES[hook]}, this one gave {given!r}")
    return given  # type: ignore[no-any-return]


def _targets(record: PluginRecord, hook: str, colons: int = 1) -> dict[str, str]:
    """Call a hook that gives a mapping from names to places, `module:object`, or `module` without a colon."""
    given = _mapping(record, hook)
    for name, target in given.items():
        if not (isinstance(name, str) and isinstance(target, str) and target.count(":") == colons):
            raise PluginError(f"{hook} gives entries such as {_EXAMPLES[hook]}, got {name!r}: {target!r}")
    return dict(given.items())


def _check_plain_name(what: str, example: str, name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise PluginError(f"{what} is lower-case letters, digits and underscores, such as {example!r}; got {name!r}")


def _is_word(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


# -- what plugins declare by its place, `module:object` ----------------------------------------------------------------


def import_registry(kind: str, target: str) -> None:
    """Import the registry of a rule kind that a plugin declared, and see that it is in the table.

    Raises:
        PluginError: the target is no registry of that kind.
        DuplicateRegistrationError: there is another registry of that kind.
    """
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


def import_backend(name: str, target: str) -> Backend:
    """Import the object that a plugin provides as a backend.

    Raises:
        PluginError: the target is no complete backend.
    """
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
