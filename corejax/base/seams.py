"""Slots and signals: how a plugin or an upper room hands behaviour to a lower room.

Beside `tables.Table`, which has an entry for each key, a `Slot` holds one value with one provider, and a `Signal` calls
whatever follows a change. Both take back what a plugin contributed if the plugin fails to load.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from corejax.base.provenance import Provenance
from corejax.base.tables import when_dropped
from corejax.errors import DuplicateRegistrationError

__corejax_registers_for_caller__ = True

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


class Slot(Generic[T]):
    """A place for one value.

    Attributes:
        name: what the value is, for messages.
        value: the value, or None until one is provided.
    """

    __slots__ = ("_provider", "name", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: T | None = None
        self._provider: Provenance | None = None

    def provide(self, value: T) -> T:
        """Fill the slot. The same definition run again (a reloaded module) replaces the earlier one.

        Raises:
            DuplicateRegistrationError: another definition has filled it; names both.
        """
        provider = Provenance.of(value)
        if self._provider is not None and not provider.redefines(self._provider):
            raise DuplicateRegistrationError(
                f"{self.name} is provided by {self._provider}; {provider} provides a second one"
            )
        when_dropped(partial(self._fill, self.value, self._provider))
        self._fill(value, provider)
        return value

    def get(self) -> T:
        """Return the value.

        Raises:
            LookupError: nothing has provided it.
        """
        if self.value is None:
            raise LookupError(f"nothing provides {self.name}")
        return self.value

    def _fill(self, value: T | None, provider: Provenance | None) -> None:
        self.value, self._provider = value, provider


class Signal:
    """Functions that follow a change, called in the order in which they were connected."""

    __slots__ = ("_followers", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._followers: tuple[Callable[..., object], ...] = ()

    def connect(self, follower: F) -> F:
        """Have a function called at each change."""
        self._followers += (follower,)
        when_dropped(partial(self.disconnect, follower))
        return follower

    def disconnect(self, follower: Callable[..., object]) -> None:
        """No longer have a function called."""
        self._followers = tuple(f for f in self._followers if f != follower)

    def send(self, *args: Any) -> None:
        """Call the followers."""
        for follower in self._followers:
            follower(*args)
