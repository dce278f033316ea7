"""Tables that remember what was written: rollback of every way of writing, threads, nesting, cost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from corejax import journal
from corejax.journal import Journal, Table
from corejax.plugins.contributions import Snapshot, entries, undo
from corejax.primitive import Primitive, primitives
from corejax.rules import impl_rules

BEFORE = {"a": 1, "b": 2, "c": 3}


@pytest.fixture(autouse=True)
def nobody_listens_afterwards() -> Iterator[None]:
    yield
    assert journal._open == []


def assign(table: Table) -> None:
    table["a"] = 10
    table["d"] = 4


def delete(table: Table) -> None:
    del table["b"]


def merge(table: Table) -> None:
    table |= {"a": 10, "e": 5}


def defaults(table: Table) -> None:
    assert table.setdefault("a", 7) == 1 and table.setdefault("f", 7) == 7


WRITES: list[Callable[[Table], Any]] = [
    assign,
    delete,
    merge,
    defaults,
    lambda table: table.update(a=10, g=7),
    lambda table: table.update([("b", 20)]),
    lambda table: table.pop("a"),
    lambda table: table.pop("nothing", None),
    lambda table: table.popitem(),
    lambda table: table.clear(),
]


@pytest.mark.parametrize("write", WRITES)
def test_every_way_of_writing_is_taken_back(write: Callable[[Table], Any]) -> None:
    table, plain = Table("numbers", BEFORE), dict(BEFORE)
    journal = Journal()
    write(table)
    write(plain)  # type: ignore[arg-type]
    assert table == plain, "it writes what a dict would"
    changes = journal.changes()
    assert {change.key for change in changes} == {k for k in {**BEFORE, **plain} if BEFORE.get(k) != plain.get(k)}
    undo(changes)
    journal.close()
    assert table == BEFORE


def test_missing_keys_raise_as_in_a_dict() -> None:
    table = Table("numbers")
    journal = Journal()
    for use in (lambda: table.pop("a"), lambda: table.popitem(), lambda: table.__delitem__("a")):
        with pytest.raises(KeyError):
            use()
    assert journal.changes() == []
    journal.close()


def test_what_was_written_and_taken_back_is_no_change() -> None:
    table = Table("numbers", BEFORE)
    journal = Journal()
    table["a"], table["z"] = 5, 26
    table["a"] = 1
    del table["z"]
    assert journal.changes() == []
    journal.close()


def test_entries_that_somebody_replaced_since_then_stay() -> None:
    table = Table("numbers", BEFORE)
    journal = Journal()
    table["a"], table["b"] = 10, 20
    changes = journal.changes()
    journal.close()
    table["a"] = 100
    undo(changes)
    assert table == {**BEFORE, "a": 100}


def test_journals_nest_and_absorb_what_is_somebody_elses() -> None:
    table = Table("numbers", BEFORE)
    outer = Journal()
    table["a"] = 10
    inner = Journal()
    table["b"] = 20
    changes = inner.changes()
    inner.close()
    assert [change.key for change in changes] == ["b"]
    outer.absorb(changes)
    table["c"] = 30
    assert [change.key for change in outer.changes()] == ["a", "c"]
    outer.close()


def test_a_journal_of_one_thread_does_not_see_the_others() -> None:
    table = Table("numbers", BEFORE)
    mine, everybodys = Journal(threading.get_ident()), Journal()
    thread = threading.Thread(target=lambda: table.update(a=10))
    thread.start()
    thread.join()
    table["b"] = 20
    assert [change.key for change in mine.changes()] == ["b"]
    assert [change.key for change in everybodys.changes()] == ["a", "b"]
    mine.close()
    everybodys.close()


def test_a_snapshot_costs_what_is_written_and_not_what_is_there() -> None:
    """Counted, not timed: the entries that a snapshot reads do not grow with the tables."""
    before, everything = Snapshot(), entries()
    read = []
    table = Table("counted", {i: i for i in range(10_000)}, read=lambda key: read.append(key) or dict.get(table, key))
    snapshot = Snapshot()
    table[3] = 30
    assert [change.key for change in snapshot.changes()] == [3]
    assert set(read) == {3} and len(read) <= 4
    snapshot.close()
    p = Primitive("journal_test.p", impl=lambda x: x)
    impl_rules.register(p, lambda x: -x, override=True)
    assert primitives["journal_test.p"] is p
    undo(before.changes())
    before.close()
    assert entries() == everything
