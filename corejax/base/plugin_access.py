"""What lower rooms ask of plugins; `corejax.plugins`, which lies above them, answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from corejax.base.seams import Slot


class PluginAccess(Protocol):
    """Loads plugins when something is missing, and says what is known of plugins that lack or failed."""

    def load(self) -> None:
        """Load all plugins."""

    def load_rules(self, kind: str, primitive: Any = None) -> bool:
        """Import the rules of a kind that plugins have not registered yet; return True if something was loaded.

        Args:
            kind: the kind of a registry, or "primitives".
            primitive: the primitive whose rule is missing; a plugin may load no more than its rule.
        """

    def problems(self, kind: str) -> Sequence[str]:
        """Say which plugins failed or are off, so that rules of a kind (or "primitives") may be missing."""

    def exported(self, name: str) -> Any:
        """Return what a plugin exports under a name of the facade.

        Raises:
            PluginMissingError: no plugin does; names the distribution to install.
        """

    def whose_primitive(self, name: str, distribution: str | None = None) -> str:
        """Say where a missing primitive is, or what to install, in half a sentence."""

    def whose_method(self, name: str) -> str:
        """Say which plugin has a missing array method, as the end of a sentence; "" if that is not known."""

    def exported(self, name: str) -> Any:
        """Return what plugins export under a name of the facade; raise the error of a missing name otherwise."""

    def exported_names(self, namespace: str) -> Sequence[str]:
        """Return the names that plugins export inside a namespace; nothing is imported."""


plugin_access: Slot[PluginAccess] = Slot("access to plugins")
