"""What lower rooms ask of plugins; the plugin manager of `corejax.plugins`, which lies above them, answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from corejax.base.seams import Slot


class PluginAccess(Protocol):
    """Loads plugins when something is missing, and says what is known of plugins that lack or failed."""

    def load(self) -> None:
        """Load all plugins."""

    def load_primitives(self) -> bool:
        """Import the primitives that plugins have not registered yet; return True if something was loaded."""

    def load_rules(self, kind: str, primitive: Any = None) -> bool:
        """Import the missing rules of a kind, or no more than that of a primitive; return True if any was loaded."""

    def import_backend(self, name: str) -> Any:
        """Import the backend that a plugin provides under a name."""

    def problems(self, kind: str) -> Sequence[str]:
        """Say which plugins failed or are off, so that rules of a kind (or "primitives") may be missing."""

    def exported_to_kernel(self, name: str) -> Any:
        """Return what plugins export under a name of the facade, None if no plugin does."""

    def whose_primitive(self, name: str, distribution: str | None = None) -> str:
        """Say where a missing primitive is, or what to install, in half a sentence."""

    def whose_method(self, name: str) -> str:
        """Say which plugin has a missing array method, as the end of a sentence; "" if that is not known."""

    def names_inside(self, namespace: str) -> Sequence[str]:
        """Return the names that plugins export inside a namespace; nothing is imported."""


find_manager: Slot[Callable[[], PluginAccess]] = Slot("the plugin manager")


def plugin_access() -> PluginAccess:
    """Return the plugin manager of the process."""
    return find_manager.get()()


missing_name: Slot[Callable[[str], Exception]] = Slot("the error of a missing name")


def required(name: str) -> Any:
    """Return what plugins export under a name of the facade.

    Raises:
        PluginMissingError: no plugin does; names the distribution to install.
    """
    found = plugin_access().exported_to_kernel(name)
    if found is None:
        raise missing_name.get()(name)
    return found
