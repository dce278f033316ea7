"""The access of lower floors to plugins. The plugin manager of `corejax.plugins`, a higher floor, provides it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from corejax.base.seams import Slot
from corejax.base.stubs import import_name
from corejax.base.texts import no_such_name


class PluginAccess(Protocol):
    """Loads plugins when a rule or name is missing, and describes plugins that are not installed or failed."""

    @property
    def loaded(self) -> bool:
        """Whether every plugin that was found is loaded or has failed."""

    def load(self, only: Collection[str | None] | None = None) -> None:
        """Load all plugins, or those of the distributions that suffice, as `homes` lists them."""

    def load_primitives(self) -> bool:
        """Import the primitives that plugins have not registered yet; return True if something was loaded."""

    def load_rules(self, kind: str, primitive: Any = None) -> bool:
        """Import the missing rules of a kind, or only those of a primitive; return True if something was loaded."""

    def import_backend(self, name: str) -> Any:
        """Import the backend that a plugin provides under a name."""

    def problems(self, kind: str) -> Sequence[str]:
        """Describe the plugins that failed or are off, so that rules of a kind (or "primitives") may be missing."""

    def exported_to_kernel(self, name: str) -> Any:
        """Return the object that a plugin exports under a facade name, or None."""

    def whose_primitive(self, name: str, distribution: str | None = None) -> str:
        """Describe the plugin that has a missing primitive, or how to install it, in half a sentence."""

    def whose_method(self, name: str) -> str:
        """Describe the plugin that has a missing array method, as the end of a sentence; "" if it is not known."""

    def names_inside(self, namespace: str) -> Sequence[str]:
        """Return the names that plugins export inside a namespace; import nothing."""


find_manager: Slot[Callable[[], PluginAccess]] = Slot("the plugin manager")


def plugin_access() -> PluginAccess:
    """Return the plugin manager of the process."""
    return find_manager.get()()


missing_name: Slot[Callable[[str], Exception]] = Slot("the error of a missing name")


def required(name: str) -> Any:
    """Return the object that a plugin exports under a facade name.

    Raises:
        PluginMissingError: no plugin exports the name; the message names the distribution to install.
    """
    value = plugin_access().exported_to_kernel(name)
    if value is None:
        raise missing_name.get()(name)
    return value


def complete_from_plugins(module: dict[str, Any], own: Mapping[str, tuple[str, str]] = MappingProxyType({})) -> None:
    """Give a module of the kernel a `__getattr__` and a `__dir__`, which add the names that plugins export inside it.

    A type checker sees neither; it reads the stub that `corejax write-stubs` writes beside the module.

    Args:
        module: the module's globals.
        own: the names that the module imports at first use, as in `names_of_stub`.
    """
    namespace = module["__name__"].partition(".")[2]
    module["_own_names"] = frozenset({*module, *own})

    def find(name: str) -> Any:
        if name.startswith("_"):
            raise no_such_name(module["__name__"], name, ())
        value = module[name] = import_name(*own[name]) if name in own else required(f"{namespace}.{name}")
        return value

    module["__getattr__"] = find
    module["__dir__"] = lambda: sorted({*module, *own, *plugin_access().names_inside(namespace)})
