"""Slots and signals, by which a plugin or a higher floor provides behaviour to a lower floor.

A `tables.Table` has an entry for each key. A `Slot` holds one value with one provider. A `Signal` calls the functions
that follow a change. All of them undo the contributions of a plugin that fails to load.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from corejax.base.provenance import Provenance
from corejax.base.tables import when_dropped
from corejax.errors import DuplicateRegistrationError

__corejax_registers_for_caller__ = True

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


class Slot(Generic[T]):
    """A place for one value.

    Attributes:
        name: noun for the value, for messages.
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
            DuplicateRegistrationError: another definition has filled the slot; the message names both.
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
            LookupError: the slot is empty.
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
        """Call a function at each change from now on."""
        self._followers += (follower,)
        when_dropped(partial(self.disconnect, follower))
        return follower

    def disconnect(self, follower: Callable[..., object]) -> None:
        """Stop calling a function."""
        self._followers = tuple(f for f in self._followers if f != follower)

    def send(self, *args: object) -> None:
        """Call the followers."""
        for follower in self._followers:
            follower(*args)
