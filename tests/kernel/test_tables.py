"""The one class of table: refusals, overrides in any order, dropping what an owner wrote, a dict's ways of writing."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import corejax
from corejax import plugins
from corejax.arrays.structural import structural
from corejax.base import tables
from corejax.base.provenance import Provenance
from corejax.base.tables import Entries, Owner, Table, drop
from corejax.errors import DuplicateRegistrationError
from corejax.extend import JaxprEqn, Primitive, primitives
from corejax.plugins._plugin_manager import PluginManager
from corejax.rules import impl_rules, optional_rules, vmap_rules
from corejax.settings.config import config
from tests.kernel.plugin_sites import Site, contents

BEFORE = {"a": 1, "b": 2, "c": 3}


@pytest.fixture(autouse=True)
def nobodys_code_runs_afterwards() -> Iterator[None]:
    yield
    assert tables._thread.owner is None


def at(line: int, module: str = "acme") -> Provenance:
    return Provenance(module, "acme.py", line)


# -- a dict's ways of writing ------------------------------------------------------------------------------------------


def assign(table: Any) -> None:
    table["d"] = 4


def delete(table: Any) -> None:
    del table["b"]


def merge(table: Any) -> None:
    table |= {"e": 5, "f": 6}


def defaults(table: Any) -> None:
    assert table.setdefault("a", 7) == 1 and table.setdefault("f", 7) == 7


WRITES: list[Callable[[Any], Any]] = [
    assign,
    delete,
    merge,
    defaults,
    lambda table: table.update(g=7),
    lambda table: table.update([("h", 20)]),
    lambda table: table.pop("a"),
    lambda table: table.pop("nothing", None),
    lambda table: table.popitem(),
    lambda table: table.clear(),
]


@pytest.mark.parametrize("write", WRITES)
def test_every_way_of_writing_is_taken_back(write: Callable[[Any], Any]) -> None:
    table, plain = Table("number", BEFORE), dict(BEFORE)
    before = contents()["number"]
    with Owner("acme") as owner:
        assert write(table) == write(plain)
    assert table == plain, "it writes what a dict would"
    drop(owner)
    assert table == BEFORE and contents()["number"] == before


def test_missing_keys_raise_as_in_a_dict() -> None:
    table: Table[str, int] = Table("number")
    for use in (
        lambda: table.pop("a"),
        lambda: table.popitem(),
        lambda: table.__delitem__("a"),
        lambda: table.remove("a"),
    ):
        with pytest.raises(KeyError):
            use()


def test_a_second_entry_is_refused_and_names_both() -> None:
    table = Table("number", BEFORE)
    table.register("d", 4, provenance=at(1))
    with pytest.raises(DuplicateRegistrationError) as caught:
        table.register("d", 5, provenance=at(2, "other"))
    assert str(caught.value) == (
        "number 'd' is provided by module acme (acme.py:1); module other (acme.py:2) provides a second one"
    )
    with pytest.raises(DuplicateRegistrationError):
        table["a"] = 10
    assert table["d"] == 4 and table["a"] == 1


def test_what_follows_a_table_may_refuse_an_entry() -> None:
    def changed(key: str, value: int | None) -> None:
        if value == 5:
            raise ValueError("not five")

    table: Table[str, int] = Table("number", changed=changed)
    with pytest.raises(ValueError, match="not five"):
        table["a"] = 5
    assert "a" not in table and table.entries("a") == ()
    table["a"] = 6


def test_owners_nest_and_threads_have_their_own() -> None:
    table: Table[str, int] = Table("number")
    with Owner("outer") as outer:
        table["a"] = 1
        with Owner("inner") as inner:
            table["b"] = 2
            thread = threading.Thread(target=lambda: table.update(t=3))
            thread.start()
            thread.join()
        table["c"] = 4
    assert {key: table.entries(key)[0].owner for key in table} == {"a": outer, "b": inner, "t": None, "c": outer}
    drop(outer)
    assert table == {"b": 2, "t": 3}


def test_entries_that_are_kept_stay() -> None:
    table: Table[str, int] = Table("number")
    with Owner("acme") as owner:
        table.update(a=1, b=2)
    drop(owner, keep=lambda where, entry: where is table and entry.value == 2)
    assert table == {"b": 2}


# -- any order of everything -------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Given:
    """What a model knows of one entry that was accepted."""

    key: str
    value: int
    line: int
    override: bool
    owner: int | None
    serial: int
    there: bool = True

    def in_place_of(self, other: Given) -> bool:
        """Whether only one of them can be there."""
        same = (self.key, self.override) == (other.key, other.override)
        return same and (not self.override or self.line == other.line)


class TableMachine(RuleBasedStateMachine):
    """What is there was given by nobody who was dropped, and is missing for nobody who was dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.followed: dict[str, int] = {}
        self.table: Table[str, int] = Table("number", changed=self._changed)
        self.owners = [Owner(str(i)) for i in range(3)]
        self.gone: set[int] = set()
        self.given: list[Given] = []
        self.waiting: list[list[Given]] = [[], [], []]
        self.count = 0

    def _changed(self, key: str, value: int | None) -> None:
        self.followed.pop(key, None)
        if value is not None:
            self.followed[key] = value

    def _there(self, key: str) -> list[Given]:
        found = [each for each in self.given if each.key == key and each.there]
        return sorted(found, key=lambda each: (not each.override, -each.serial))

    def _take(self, each: Given, who: int | None) -> None:
        """Somebody takes an entry away; it comes back if they are dropped."""
        each.there = False
        if who is not None:
            self.waiting[who].append(each)

    def _run(self, who: int | None, thread: bool, action: Callable[[], Any]) -> Any:
        """Run as an owner, while another one's block is open around it; or in a thread, which has none."""
        result: list[Any] = []

        def work() -> None:
            try:
                result.append(action())
            except DuplicateRegistrationError:
                result.append(DuplicateRegistrationError)

        if thread:
            with self.owners[0]:
                other = threading.Thread(target=work)
                other.start()
                other.join()
        elif who is None:
            work()
        else:
            with self.owners[(who + 1) % 3], self.owners[who]:
                work()
        return result[0]

    keys = st.sampled_from("ab")
    who = st.sampled_from([None, 0, 1, 2])

    @rule(key=keys, line=st.integers(1, 3), override=st.booleans(), who=who, thread=st.booleans())
    def register(self, key: str, line: int, override: bool, who: int | None, thread: bool) -> None:
        who = None if thread or who in self.gone else who
        self.count += 1
        new = Given(key, self.count, line, override, who, self.count)
        earlier = next((each for each in self._there(key) if new.in_place_of(each)), None)
        refused = earlier is not None and earlier.line != line
        done = self._run(
            who, thread, lambda: self.table.register(key, new.value, override=override, provenance=at(line))
        )
        assert (done is DuplicateRegistrationError) is refused
        if not refused:
            if earlier is not None:
                new.serial = earlier.serial
                self._take(earlier, who)
            self.given.append(new)

    @rule(key=keys, who=who, whole=st.booleans())
    def remove(self, key: str, who: int | None, whole: bool) -> None:
        there = self._there(key)
        if there:
            who = None if who in self.gone else who
            self._run(who, False, lambda: self.table.__delitem__(key) if whole else self.table.remove(key))
            for each in there if whole else there[:1]:
                self._take(each, who)

    @rule(who=st.integers(0, 2))
    def drop_owner(self, who: int) -> None:
        drop(self.owners[who])
        self.gone.add(who)
        for each in self.given:
            each.there = each.there and each.owner != who
        while self.waiting[who]:
            each = self.waiting[who].pop()
            taken = next((other for other in self._there(each.key) if each.in_place_of(other)), None)
            if each.owner in self.gone:
                continue
            if taken is None:
                each.there = True
            else:
                self._take(each, taken.owner)

    @invariant()
    def is_what_is_left(self) -> None:
        for key in "ab":
            assert [e.value for e in self.table.entries(key)] == [f.value for f in self._there(key)]
        wanted = {key: there[0].value for key in "ab" if (there := self._there(key))}
        assert dict(self.table) == self.followed == wanted


TestAnyOrder = TableMachine.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


# -- what plugins are refused ------------------------------------------------------------------------------------------

OWNER = """
import corejax

class Marked: pass
class Mode: pass
kind = extend.RuleRegistry("acme_kind", "acme rule", "...")
corejax.tree_util.register_pytree_node(Marked, lambda m: ((), None), lambda meta, children: Marked())
extend.programs.register_param_type(Mode)

@hookimpl
def corejax_provide_array_methods(): return {"acme_method": lambda self: 1}
@hookimpl
def corejax_provide_operations(): return {"index_axis": lambda x, i, axis: x}
@hookimpl
def corejax_declare_settings(): return {"acme_level": (3, int)}
@hookimpl
def corejax_declare_rule_kinds(): return {"acme_kind": "acme_plugin:kind"}
@hookimpl
def corejax_register_primitives():
    p = extend.Primitive("acme.p", impl=lambda x, jaxpr: [x], multiple_results=True, tags=("higher_order",))
    extend.programs.dce_rules[p] = lambda used, eqn: (used, eqn)
    extend.defcall(p, "jaxpr", rules=["recompute"])
    extend.vmap_rules.derivations.append(extend.Derivation("acme", lambda p: None))
"""
SECOND = {
    "dce rule": "extend.programs.dce_rules[extend.primitives['acme.p']] = lambda used, eqn: (used, eqn)",
    "dce rule by another": "extend.programs.dce_rules.update({extend.primitives['acme.p']: lambda used, eqn: None})",
    "recompute rule": "extend.programs.recompute_rules[extend.primitives['acme.p']] = lambda policy, eqn: None",
    "recompute rule by the helper": "extend.defcall(extend.primitives['acme.p'], 'call_jaxpr', rules=['recompute'])",
    "param type": "extend.programs.register_param_type(type('Mode', (), {}))",
    "pytree node": "corejax.tree_util.register_pytree_node(acme_plugin.Marked, lambda m: ((), None), lambda *_: None)",
    "derivation": "extend.vmap_rules.derivations.append(extend.Derivation('acme', lambda p: p))",
    "impl rule": "extend.impl_rules.register(extend.primitives['acme.p'], lambda x: -x)",
}
HOOKS = {
    "operation": "provide_operations(): return {'index_axis': numpy.take}",
    "array method": "provide_array_methods(): return {'acme_method': len}",
    "setting": "declare_settings(): return {'acme_level': (4, int)}",
    "rule kind": "declare_rule_kinds(): return {'acme_kind': 'zother_plugin:kind'}",
}


def refused(source: str, site: Site, manager: PluginManager) -> None:
    """A plugin that comes second fails, and leaves every table as it was."""
    structural.table.pop("index_axis", None)  # the process may have it from another plugin
    site.add("acme", OWNER)
    plugins.load_everything()
    assert manager.problems() == []
    before = contents()
    second = importlib.import_module(site.add("zother", source))
    record = manager.register(second, "zother", "2.0")
    manager.load_primitives()
    assert manager.records["acme"].status == "loaded" and record.status == "failed"
    assert isinstance(record.fault, DuplicateRegistrationError), record.fault
    for words in ("acme", "1.0", "zother", "2.0"):
        assert words in str(record.fault), record.fault
    assert contents() == before


@pytest.mark.parametrize("source", SECOND.values(), ids=SECOND.keys())
def test_a_second_entry_of_a_plugin_is_refused(source: str, site: Site, fresh: PluginManager) -> None:
    header = "import corejax, acme_plugin\n@hookimpl\ndef corejax_register_primitives():\n"
    refused(f"{header}    extend.Primitive('zother.p', impl=lambda x: x)\n    {source}", site, fresh)


@pytest.mark.parametrize("source", HOOKS.values(), ids=HOOKS.keys())
def test_a_second_entry_of_a_hook_is_refused(source: str, site: Site, fresh: PluginManager) -> None:
    refused(f"import numpy\n@hookimpl\ndef corejax_{source}", site, fresh)


def test_a_failed_plugin_leaves_no_node_and_no_setting_changed(site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        """
        import corejax
        class Marked: pass
        corejax.tree_util.register_pytree_node(Marked, lambda m: (("child",), None), lambda meta, children: Marked())
        extend.config.update("default_dtype_bits", 64)
        extend.marked = Marked()
        raise ImportError("no libacme")
        """,
    )
    bits = config.default_dtype_bits
    fresh.load()
    marked = vars(corejax.extend).pop("marked")
    assert fresh.records["acme"].status == "failed"
    assert corejax.tree.leaves(marked) == [marked] and config.default_dtype_bits == bits


def test_modules_of_other_plugins_that_a_failing_one_imports_keep_what_they_registered(
    site: Site, fresh: PluginManager
) -> None:
    """They are imported once: nobody would register it again."""
    site.add("acme", "import zother_plugin\nextend.Primitive('acme.p')\nraise ImportError('no libacme')")
    site.add("zother", "extend.Primitive('zother.p')\n@hookimpl\ndef corejax_export_names(): return {}")
    fresh.load_primitives()
    assert fresh.records["acme"].status == "failed" and fresh.records["zother"].status == "loaded"
    assert "zother.p" in primitives and "acme.p" not in primitives


def test_a_command_of_a_plugin_that_fails_later_is_gone(site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        """
        @hookimpl
        def corejax_add_cli_commands(group): group.commands["acme"] = print
        @hookimpl
        def corejax_register_primitives(): raise ImportError("no libacme")
        """,
    )
    group = type("Group", (), {"commands": {"own": print}})
    fresh.add_cli_commands(group)
    assert set(group.commands) == {"own", "acme"}
    fresh.load_primitives()
    assert set(group.commands) == {"own"}


@pytest.mark.parametrize("kind", optional_rules)
def test_an_optional_rule_can_be_overridden_and_is_shown(kind: str) -> None:
    p = Primitive(f"tables_test.{kind}", impl=lambda x: x)
    rules = optional_rules[kind]

    @rules.register(p)
    def first(used: list[bool], eqn: JaxprEqn) -> Any:
        return None

    second = lambda used, eqn: None
    try:
        with pytest.raises(DuplicateRegistrationError, match=rf"has a {kind} rule from module .*override=True"):
            rules[p] = second
        rules.register(p, second, override=True)
        assert rules[p] is second and rules.get(p) is second
        show = pytest.importorskip("corejax_explain.show")
        shown = show.describe(p)["optional_rules"][kind]
        assert shown["line"] == second.__code__.co_firstlineno
        assert shown["overrides"]["line"] == rules.entries(p)[1].provenance.line
        rules.remove(p)
        assert rules[p] is first
        with pytest.raises(TypeError, match=f"a {kind} rule is a function, got 3"):
            rules[p] = 3
    finally:
        del rules[p], impl_rules._written[p, None], primitives[p.name]


def test_a_rule_by_a_derivation_goes_with_it_and_comes_back() -> None:
    with Owner("acme") as owner:
        vmap_rules.derivations.append(corejax.extend.Derivation("tables_test", lambda p: lambda *_: p.name))
    p = Primitive("tables_test.derived")
    try:
        assert vmap_rules.lookup(p)() == p.name and vmap_rules.rule_of(p).derived == "tables_test"
        drop(owner)
        assert vmap_rules.find(p) is None and vmap_rules.rule_of(p) is None
    finally:
        del primitives[p.name]


def test_an_interrupted_registration_can_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that was written and is not in force yet would be taken for a registered one."""
    table: Table[str, int] = Table("interrupted entries")

    def interrupted(key: str, entries: Entries) -> None:
        monkeypatch.undo()
        table._put(key, entries)
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "_put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.register("a", 1)
    assert not table.entries("a")
    table.register("a", 1)
    assert table["a"] == 1
