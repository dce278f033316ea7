"""Plugins: hook specs, discovery, lazy loading, faults, provenance.

This module wires the lower floors to the plugin manager: a missing rule, operator, structural operation or facade
name has the plugins loaded. Nothing is discovered or imported until then, and pluggy itself is imported only then.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

from corejax import array_methods, provenance, rules
from corejax.structural import structural

if TYPE_CHECKING:
    from corejax.plugins.examples import Example
    from corejax.plugins.plugin_manager import PluginManager
    from corejax.plugins.records import PluginRecord

_manager: PluginManager | None = None
_making = threading.Lock()
_reserved: set[str] = set()


def manager() -> PluginManager:
    """The process's plugin manager."""
    global _manager
    if _manager is None:
        from corejax.plugins.plugin_manager import PluginManager

        with _making:
            if _manager is None:
                _manager = PluginManager(reserved=_reserved)
    return _manager


def set_manager(new: PluginManager | None) -> PluginManager | None:
    """Install another manager (tests); gives the earlier one."""
    global _manager
    earlier, _manager = _manager, new
    return earlier


def plugins() -> list[PluginRecord]:
    """Records of all plugins found: name, distribution, version, status, fault."""
    manager().load()
    return list(manager().records.values())


def errors() -> list[PluginRecord]:
    """Records of the plugins that failed."""
    manager().load()
    return manager().faults()


def load_everything() -> None:
    """Have every plugin register its primitives, its rule kinds and its rules of every kind (`list-primitives`)."""
    manager().load_primitives()
    manager().load_rule_kinds()
    for kind in list(rules.registries):
        manager().load_rules(kind)


def examples_of(primitive: str) -> list[Example]:
    """Applications of a primitive that plugins give, for checks of its rules."""
    return manager().examples(primitive)


def provided_checks() -> dict[str, tuple[Any, str]]:
    """Checks of rules that plugins provide, by name: the object, and the name of the plugin."""
    return manager().checks()


def wire(kernel_directory: str) -> None:
    """Connect the lower floors; called once, by `corejax/__init__.py`, when its own names are there.

    Args:
        kernel_directory: the kernel's package.
    """
    from corejax.plugins import finder

    kernel_modules = {name.partition(".")[0] for name in os.listdir(os.path.abspath(kernel_directory))}
    facade = {name for name in vars(sys.modules["corejax"]) if not name.startswith("_")}
    _reserved.update(kernel_modules, facade)
    array_methods.set_loader(lambda: manager().load())
    structural.loader = lambda: manager().load()
    rules.set_rule_loader(_load_for, _problems, _whose)
    provenance.set_resolver(lambda module: manager().owner_of(module))
    finder.install(manager, kernel_modules)


def _load_for(kind: str) -> bool:
    if kind == "primitives":
        return manager().load_primitives()
    return manager().load_rule_kinds() if kind == "rule_kinds" else manager().load_rules(kind)


def _problems(kind: str) -> list[str]:
    found = manager().problems(kind)
    off = [record.title for record in manager().records.values() if record.status == "off"]
    if kind == "primitives" and off:
        found.append(f"COREJAX_PLUGINS={manager().selection.text} switches off {', '.join(off)}")
    return found


def _whose(primitive: str, distribution: str | None) -> str:
    from corejax.plugins import missing

    return missing.whose_primitive(manager(), primitive, distribution)


def is_import_from(frame: FrameType) -> bool:
    """Whether a frame is executing `from module import name`, which hides an AttributeError's message."""
    import dis

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def missing_name(name: str, *, importing: bool) -> Exception:
    """The error for a facade name that nobody exports: what failed, what to install, or what was meant."""
    from corejax.plugins import missing

    return missing.missing_name(manager(), name, importing=importing)


def exported(name: str) -> Any:
    """What plugins export under a facade name, dotted inside a namespace (`"lax.scan"`), or None."""
    return manager().exported(name)
