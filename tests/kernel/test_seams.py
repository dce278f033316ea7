"""Slots and signals."""

from __future__ import annotations

import pytest

from corejax.base.seams import Signal, Slot
from corejax.base.tables import Owner, drop
from corejax.errors import DuplicateRegistrationError


def test_a_slot_refuses_a_second_provider() -> None:
    slot: Slot[object] = Slot("the answer")
    with pytest.raises(LookupError, match="nothing provides the answer"):
        slot.get()
    assert slot.value is None

    def first() -> None:
        pass

    def second() -> None:
        pass

    assert slot.provide(first) is first
    assert slot.provide(first) is first  # a reloaded module
    with pytest.raises(DuplicateRegistrationError, match=r"the answer is provided by .*; .* provides a second one"):
        slot.provide(second)
    assert slot.get() is first


def test_what_a_failed_plugin_provided_is_taken_back() -> None:
    slot: Slot[object] = Slot("the answer")
    signal = Signal("the question")
    calls: list[str] = []
    signal.connect(lambda: calls.append("kernel"))
    with Owner("failing") as owner:
        slot.provide(lambda: None)
        signal.connect(lambda: calls.append("plugin"))
    drop(owner)
    signal.send()
    assert slot.value is None and calls == ["kernel"]
    slot.provide(lambda: 1)


def test_followers_are_called_in_their_order() -> None:
    signal = Signal("settings")
    calls: list[object] = []
    for name in "ab":
        signal.connect(lambda *args, name=name: calls.append((name, *args)))
    signal.send(1)
    assert calls == [("a", 1), ("b", 1)]
