"""Check the results of a loaded plugin's hooks and register them; import objects that they name when needed."""

from __future__ import annotations

import importlib
import keyword
import re
from collections.abc import Collection, Mapping
from typing import Any

from corejax.arrays.backends import Backend, backends, problem_of
from corejax.base.provenance import Provenance
from corejax.base.stubs import import_name, import_with_slots
from corejax.base.tables import Table
from corejax.core import array_methods
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.plugins._records import PluginRecord
from corejax.rules import RuleRegistry, registries
from corejax.settings.config import config

# Hooks that return mappings, with an example for messages.
_EXAMPLES = {
    "corejax_export_names": '{"jit": "acme_corejax.api:jit"}',
    "corejax_export_namespaces": '{"lax": "acme_corejax.lax"}',
    "corejax_declare_rule_kinds": '{"interval": "acme_corejax.interpreter:interval_rules"}',
    "corejax_declare_settings": '{"acme_level": (3, int)}',
    "corejax_provide_operations": '{"stack": stack}',
    "corejax_provide_array_methods": '{"cubed": cube}',
    "corejax_provide_backends": '{"acme": "acme_corejax.backend:BACKEND"}',
}
# Modules of the kernel to which plugins add names, with the module that has the kernel's own names.
_COMPLETED = {"dtypes": "dtypes", "tree": "tree", "tree_util": "tree"}
_WORD = "a name, or several with dots between them, without Python's keywords and without leading underscores"


class Exports:
    """The exports and declarations of loaded plugins; `reserved` are the facade's own names, closed to plugins.

    Attributes:
        names: facade name -> (target, record).
        namespaces: facade namespace -> (module, record).
        rule_kinds: rule kind of a plugin -> (`module:registry`, record).
    """

    def __init__(self, reserved: Collection[str]) -> None:
        self.names: Table[str, tuple[str, PluginRecord]] = Table("name", of_hooks=True)
        self.namespaces: Table[str, tuple[str, PluginRecord]] = Table("namespace", of_hooks=True)
        self.rule_kinds: Table[str, tuple[str, PluginRecord]] = Table("declared rule kind", of_hooks=True)
        self.reserved = frozenset(reserved)

    def take(self, record: PluginRecord) -> None:
        """Call a plugin's hooks and register the results.

        Raises:
            PluginError: a result does not have the form that the hook requires.
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
                form = f"{_EXAMPLES[hook]}: (default, parser), with True as third element if traces depend on it"
                raise PluginError(f"{hook} must return entries such as {form}; got {name!r}: {declared!r}")
            config.add_setting(name, *declared, by=by)
        for name, operation in _mapping(record, hook := "corejax_provide_operations").items():
            if not callable(operation):
                raise PluginError(f"{hook} must return functions, as {_EXAMPLES[hook]}; got {name!r}: {operation!r}")
            import_with_slots("corejax.arrays.structural", "structural").provide(name, operation, by=by)
        for name, method in _mapping(record, "corejax_provide_array_methods").items():
            array_methods.provide(name, method, by=by)
        for name, target in _targets(record, "corejax_provide_backends").items():
            _check_plain_name("a backend's name", "acme", name)
            backends.provide(name, target, record, by=by)

    def _take_names(self, record: PluginRecord, hook: str, table: Table[str, Any], colons: int) -> None:
        exports, by = _targets(record, hook, colons), Provenance(record.module)
        for name, target in exports.items():
            if not all(_is_word(word) and not word.startswith("_") for word in name.split(".")):
                raise PluginError(f"{hook}: {name!r} cannot be written in code; an exported name must be {_WORD}")
            if not all(map(_is_word, re.split("[.:]", target))):
                raise PluginError(f"{hook}: the target {target!r} of {name!r} is not the name of a module or object")
        record.offers |= exports
        for name, target in exports.items():
            first, _, inner = name.partition(".")
            taken = first in self.reserved
            if inner and first in _COMPLETED:
                taken = inner in import_name(f"corejax.{_COMPLETED[first]}", "")._own_names
            if (earlier := self.target(name)) or taken:
                owner = f"plugin {earlier[1].title}" if earlier else "the kernel"
                message = f"corejax.{name} is exported by {owner}; plugin {record.title} exports a second one"
                raise DuplicateRegistrationError(message)
            table.register(name, (target, record), provenance=by)

    def _check_rule_kind(self, record: PluginRecord, kind: str) -> None:
        _check_plain_name("a rule kind", "interval", kind)
        is_kernel_kind = kind in registries and registries[kind].provenance.package == "corejax"
        if is_kernel_kind or kind == "primitives":  # `PluginAccess.load_rules` uses "primitives" for all primitives
            raise DuplicateRegistrationError(f"rule kind {kind!r} is the kernel's own; choose another name for yours")
        if kind in self.rule_kinds:
            owner = self.rule_kinds[kind][1].title
            message = f"rule kind {kind!r} is declared by plugin {owner}; plugin {record.title} declares a second one"
            raise DuplicateRegistrationError(message)

    def refuse_hidden(self, record: PluginRecord) -> None:
        """Raise if a name that a plugin exports inside a namespace cannot be reached; import the namespaces.

        Raises:
            DuplicateRegistrationError: the namespace belongs to another plugin and defines the name itself.
            PluginError: the namespace is not a module.
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
                    continue  # the plugin with the namespace is at fault
                raise PluginError(f"corejax.{name} cannot be reached: corejax.{parent} is not a module") from error
            if any(n in self.names for n in outer):
                raise PluginError(f"corejax.{name} cannot be reached: corejax.{parent} is not a module")
            if last in getattr(module, "__all__", vars(module) if module else ()):
                both = f"corejax.{name} is in the namespace of plugin {around[-1].title}; plugin {record.title} exports"
                raise DuplicateRegistrationError(f"{both} a second one: export it under another name")

    def target(self, name: str) -> tuple[str, PluginRecord] | None:
        """Return the place of a facade name's object or a namespace's module, and the plugin that exports it."""
        return self.names.get(name) or self.namespaces.get(name)


def _mapping(record: PluginRecord, hook: str) -> Mapping[Any, Any]:
    """Call a hook that returns a mapping; None counts as an empty one."""
    result = getattr(record.hook, hook)()
    if result is None:
        return {}
    if not hasattr(result, "items"):
        raise PluginError(f"{hook} must return a mapping such as {_EXAMPLES[hook]}, this one returned {result!r}")
    return result  # type: ignore[no-any-return]  # its items are checked by the callers


def _targets(record: PluginRecord, hook: str, colons: int = 1) -> dict[str, str]:
    """Call a hook that maps names to places: `module:object`, or `module` if `colons` is 0."""
    targets = _mapping(record, hook)
    for name, target in targets.items():
        if not (isinstance(name, str) and isinstance(target, str) and target.count(":") == colons):
            raise PluginError(f"{hook} must return entries such as {_EXAMPLES[hook]}, got {name!r}: {target!r}")
    return dict(targets.items())


def _check_plain_name(what: str, example: str, name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise PluginError(f"{what} must be lower-case letters, digits and underscores, as {example!r}; got {name!r}")


def _is_word(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


# -- objects that plugins name by place, `module:object` ---------------------------------------------------------------


def import_registry(kind: str, target: str) -> None:
    """Import the registry of a rule kind that a plugin declared, and register it if it is not registered.

    Raises:
        PluginError: the target is not a registry of that kind.
        DuplicateRegistrationError: there is another registry of that kind.
    """
    registry: RuleRegistry = _import_instance(f"rule kind {kind!r} is declared", target, RuleRegistry, "a RuleRegistry")
    if registry.kind != kind:
        raise PluginError(f"rule kind {kind!r} is declared as {target}, the registry of kind {registry.kind!r}")
    # The import registers it, unless the module was imported before: a plugin that is registered for a second time
    # does not import its modules again, and unregistering it removed the registry.
    if kind not in registries:
        registries.register(kind, registry, provenance=registry.provenance)
    if registries[kind] is not registry:
        message = f"rule kind {kind!r} exists, from {registries[kind].provenance}; {target} is a second one"
        raise DuplicateRegistrationError(message)


def import_backend(name: str, target: str) -> Backend:
    """Import the object that a plugin provides as a backend.

    Raises:
        PluginError: the target is not a complete backend.
    """
    backend: Backend = _import_instance(f"backend {name!r} is provided", target, Backend, "a corejax.extend.Backend")
    if problem := problem_of(backend):
        what = f"backend {name!r}, {target}{problem}"
        raise PluginError(f"{what}; see corejax.extend.Backend for the required types")
    return backend


def _import_instance(subject: str, target: str, expected_class: type, title: str) -> Any:
    """Import the object at a place and check its class; `subject` and `title` are the parts of a message."""
    module, _, attribute = target.partition(":")
    value = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(value, expected_class):
        reason = "there is nothing of that name" if value is None else f"it is {value!r}"
        raise PluginError(f"{subject} as {target}, which must be {title}; {reason}")
    return value
