"""Plugins: discovery, selection, lazy loading, namespaces, plugin objects, threads."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
import types
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import plugins
from corejax.arrays.structural import structural
from corejax.core import array_methods
from corejax.core.primitive import primitives
from corejax.errors import (
    PluginError,
    PluginMissingError,
)
from corejax.extend import hookimpl, vmap_rules
from corejax.extend.plugins import isolated_plugins
from corejax.plugins._plugin_manager import PluginManager
from corejax.rules import registries
from corejax.settings.config import config
from corejax.settings.selection import Selection
from tests.kernel.plugin_sites import Site, contents


def fault_of(manager: PluginManager, name: str) -> BaseException:
    manager.load()
    record = manager.records[name]
    assert record.status == "failed" and record in plugins.errors()
    assert record.fault is not None
    return record.fault


def tables() -> list[Any]:
    """Everything a plugin can contribute to, to compare."""
    return [contents()]


# -- isolation -----------------------------------------------------------------------------------------------------


def test_names_of_plugins_that_an_isolated_manager_has_not() -> None:
    before = corejax.jit
    wanted = "the plugin that has it is not in this block of isolated_plugins: import the name before the block"
    with isolated_plugins():
        with pytest.raises(PluginMissingError, match=f"module 'corejax' has no attribute 'jit'; {wanted}"):
            corejax.jit  # noqa: B018
        with pytest.raises(ImportError, match=wanted):
            from corejax import jit  # noqa: F401
        with pytest.raises(AttributeError, match=r"no attribute 'jitt'$"):
            corejax.jitt  # noqa: B018
        assert before(lambda x: x + 1)(1) == 2
    assert corejax.jit is before


# -- discovery and laziness ----------------------------------------------------------------------------------------


def test_import_of_corejax_loads_no_plugin_and_no_pluggy(site: Site) -> None:
    site.add("acme", "raise RuntimeError('imported')")
    done = site.run(
        """
        import sys
        import corejax
        corejax.grad, corejax.ShapedArray
        assert "pluggy" not in sys.modules and "acme_plugin" not in sys.modules
        assert corejax.plugins._manager is None
        [record] = corejax.plugins.errors()
        print(record.name, record.version, record.fault)
        """
    )
    assert (done.stdout, done.stderr) == ("acme 1.0 imported\n", "")


def test_discovery_imports_nothing(site: Site, fresh: PluginManager) -> None:
    site.add("acme", "", version="2.5")
    [record] = fresh.discover().values()
    assert (record.name, record.distribution, record.version, record.status) == ("acme", "corejax-acme", "2.5", "found")
    assert record.title == "'acme' (corejax-acme 2.5)"
    assert not site.is_imported("acme")


def test_toy_distribution_contributes_one_of_everything(site: Site, fresh: PluginManager) -> None:
    site.install("toy_ops")
    assert "corejax_toy.ops" not in sys.modules
    x = corejax.Array(np.ones(2, np.float32))
    assert np.asarray(x.toy_twice()).tolist() == [2, 2], "the method loads its plugin"
    assert config.toy_level == 1
    assert corejax.toy_twice is sys.modules["corejax_toy.ops"].twice
    assert "corejax_toy.translations" not in sys.modules
    plugins.load_everything()
    assert "corejax_toy.translations" in sys.modules
    assert primitives["toy_ops.scale"].provenance.owner == "plugin toy_ops 1.2.3"
    assert registries["toy_cost"].provenance.plugin == "toy_ops"
    assert "toy_twice" in dir(corejax) and "toy" in dir(corejax)


def test_same_distribution_seen_twice_counts_once(site: Site) -> None:
    site.add("acme", "")
    manager = PluginManager(lambda: itertools.chain(site.find(), site.find()))
    assert list(manager.discover()) == ["acme"]


def test_two_distributions_of_one_plugin_name(site: Site) -> None:
    site.add("acme", "@hookimpl\ndef corejax_register_primitives(): pass\n")
    site._describe("other-acme", "3", {"acme": "other_acme_plugin"})
    manager = PluginManager(site.find)
    manager.load()
    assert manager.records["acme"].status == "loaded"
    [failed] = [record for record in manager.records.values() if record.status == "failed"]
    assert "'acme' (corejax-acme 1.0) and 'acme' (other-acme 3)" in str(failed.fault)


# -- selection -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "on"),
    [
        (None, "abc"),
        ("", ""),
        (" , ", ""),
        ("a,b", "ab"),
        (" a , b ", "ab"),
        ("-c", "ab"),
        ("-a,-c", "b"),
        ("a,b,-b", "a"),
    ],
)
def test_selection(text: str | None, on: str) -> None:
    assert [name for name in "abc" if name in Selection(text)] == list(on)


@pytest.mark.parametrize(("text", "on"), [("a,b", {"a", "b"}), ("-c", {"a", "b"}), ("", set()), ("c", {"c"})])
def test_plugins_switched_off_are_not_imported(
    text: str, on: set[str], site: Site, fresh: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        site.add(name, "@hookimpl\ndef corejax_register_primitives(): pass\n")
    monkeypatch.setenv("COREJAX_PLUGINS", text)
    fresh.load()
    assert {name for name in "abc" if site.is_imported(name)} == on
    assert {record.name for record in fresh.records.values() if record.status == "loaded"} == on
    assert {record.name for record in fresh.records.values() if record.status == "off"} == set("abc") - on


def test_unknown_name_in_the_selection_is_a_problem() -> None:
    [problem] = Selection("lax_bsic").problems(["lax_basic", "numpy"])
    assert problem == (
        "COREJAX_PLUGINS=lax_bsic names 'lax_bsic', which is not an installed plugin; did you mean 'lax_basic'?"
    )


def test_unknown_name_in_the_selection_warns_at_first_use(
    site: Site, fresh: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme", "")
    monkeypatch.setenv("COREJAX_PLUGINS", "-acmee")
    with pytest.warns(UserWarning, match="names 'acmee', which is .*; did you mean 'acme'") as found:
        fresh.discover()
        fresh.load()
    assert len(found) == 1 and found[0].filename == __file__


def test_name_of_a_plugin_that_is_switched_off(
    site: Site, fresh: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("xla", "", distribution="Corejax_XLA.backend")
    monkeypatch.setenv("COREJAX_PLUGINS", "-xla")
    with pytest.raises(PluginMissingError, match="switched off by COREJAX_PLUGINS=-xla") as caught:
        corejax.jit  # noqa: B018
    assert "pip install" not in str(caught.value)


# -- namespaces ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("fresh")
def test_namespace_is_the_plugins_own_module(site: Site) -> None:
    site.install("toy_ops")
    import corejax.toy as toy
    import corejax_toy.toy

    assert toy is corejax_toy.toy is corejax.toy is sys.modules["corejax.toy"]
    assert toy.__name__ == toy.__spec__.name == "corejax_toy.toy"
    assert toy.times_imported == 1
    from corejax.toy import extra, twice

    assert importlib.import_module("corejax.toy.extra") is extra is sys.modules["corejax_toy.toy.extra"]
    from corejax.toy.extra import Thing
    from corejax_toy.toy.extra import Thing as SameThing

    assert Thing is SameThing and twice is corejax.toy_twice
    assert importlib.reload(toy) is toy
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'corejax.toy.absent'"):
        importlib.import_module("corejax.toy.absent")
    with pytest.raises(ImportError, match=r"module 'corejax\.toy' has no attribute 'absent'"):
        exec("from corejax.toy import absent")


@pytest.mark.usefixtures("fresh")
def test_attribute_access_imports_the_namespace(site: Site) -> None:
    site.install("toy_ops")
    assert "corejax_toy.toy" not in sys.modules
    assert corejax.toy.twice is sys.modules["corejax_toy.toy"].twice


def test_namespace_inside_another_plugins_namespace(site: Site, fresh: PluginManager) -> None:
    site.install("toy_ops")
    site.add("acme", "@hookimpl\ndef corejax_export_namespaces(): return {'toy.inner': 'acme_plugin'}")
    fresh.load()
    assert importlib.import_module("corejax.toy.inner") is sys.modules["acme_plugin"]
    assert corejax.toy.inner is sys.modules["acme_plugin"]


def test_namespaces_inside_a_name_that_nobody_has(site: Site, fresh: PluginManager) -> None:
    hook = "@hookimpl\ndef corejax_export_namespaces(): return {'shared.%s': '%s_plugin'}"
    for name in ("acme", "zebra"):
        site.add(name, hook % (name, name))
    outer = importlib.import_module("corejax.shared")
    assert importlib.import_module("corejax.shared.acme") is sys.modules["acme_plugin"]
    assert corejax.shared is outer and outer.zebra is sys.modules["zebra_plugin"]
    assert dir(outer) == ["acme", "zebra"]
    with pytest.raises(AttributeError, match=r"module 'corejax.shared' has no attribute 'absent'"):
        outer.absent  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'corejax.shared.absent'"):
        importlib.import_module("corejax.shared.absent")


def test_a_namespace_inside_one_that_is_missing_does_not_stand_for_it(site: Site, fresh: PluginManager) -> None:
    site.add("acme", "@hookimpl\ndef corejax_export_namespaces(): return {'numpy.acme': 'acme_plugin'}")
    with pytest.raises(PluginMissingError, match="pip install corejax-numpy"):
        corejax.numpy  # noqa: B018


def test_plugin_may_import_another_ones_namespace_while_loading(site: Site, fresh: PluginManager) -> None:
    site.add("acme", "import corejax.toy\n@hookimpl\ndef corejax_register_primitives(): corejax.toy.twice\n")
    site.install("toy_ops")
    assert [record.name for record in fresh.discover().values()] == ["acme", "toy_ops"]
    fresh.load_primitives()
    assert [record.status for record in fresh.records.values()] == ["loaded", "loaded"]


def test_what_a_plugin_loaded_on_the_way_survives_its_failure(site: Site, fresh: PluginManager) -> None:
    site.add("acme", "import corejax.toy\nextend.Primitive('acme.p')\nraise ZeroDivisionError")
    site.install("toy_ops")
    fault_of(fresh, "acme")
    assert "acme.p" not in primitives
    assert fresh.records["toy_ops"].status == "loaded"
    assert "toy" in fresh.namespaces and "toy_twice" in array_methods.methods


# -- plugin objects ------------------------------------------------------------------------------------------------


class Acme:
    """A plugin as an object, with hooks that take fewer arguments than there are."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @hookimpl
    def corejax_register_rules(self) -> None:
        self.calls.append("rules")

    @hookimpl
    def corejax_provide_array_methods(self) -> dict[str, Any]:
        return {"acme_size": property(lambda x: x.size * 100)}


def test_object_with_hooks_that_take_fewer_arguments(fresh: PluginManager) -> None:
    plugin = Acme()
    record = fresh.register(plugin, "acme", "3.1")
    assert record.status == "loaded"
    assert corejax.Array(np.zeros(2)).acme_size == 200
    assert fresh.load_rules("vmap") and not fresh.load_rules("vmap")
    assert fresh.load_rules("jvp")
    assert plugin.calls == ["rules", "rules"]
    assert array_methods.methods.provenance("acme_size").owner == "plugin acme 3.1"
    with pytest.raises(PluginError, match=r"a plugin named 'acme' exists: 'acme' \(acme 3.1\)"):
        fresh.register(Acme(), "acme")
    fresh.unregister("acme")
    assert not hasattr(corejax.Array, "acme_size")
    fresh.register(plugin, "acme")
    assert fresh.load_rules("vmap"), "a plugin that came later is asked too"


APART = """
asked = []
one, two, bad = (extend.Primitive(f"acme.{name}", impl=lambda x: x) for name in ("one", "two", "bad"))

@hookimpl
def corejax_register_rules(kind, primitive):
    asked.append((kind, primitive and primitive.name))
    if primitive is bad:
        raise ValueError("no rule for it")
    for each in (one, two) if primitive is None else (primitive,):
        if extend.vmap_rules.rule_of(each) is None:
            extend.vmap_rules.register(each, lambda n, vals, dims: (vals[0], dims[0]))
"""
TOGETHER = """
asked = []
other = extend.Primitive("other.p", impl=lambda x: x)

@hookimpl
def corejax_register_rules(kind):
    asked.append(kind)
"""


def test_rules_of_one_primitive_where_a_plugin_tells_its_primitives_apart(site: Site, fresh: PluginManager) -> None:
    site.add("acme", APART)
    site.add("other", TOGETHER)
    fresh.load()
    acme, other = (importlib.import_module(f"{name}_plugin") for name in ("acme", "other"))
    for _ in range(2):
        fresh.load_rules("vmap", acme.one)
    assert acme.asked == [("vmap", "acme.one")] and other.asked == ["vmap"]
    assert vmap_rules.rule_of(acme.one) is not None and vmap_rules.rule_of(acme.two) is None
    assert not fresh.load_rules("vmap", other.other), "another's primitive is none of its business"
    fresh.load_rules("vmap", acme.bad)
    assert "no rule for it" in str(fresh.records["acme"].late_faults["vmap rules"])
    assert vmap_rules.rule_of(acme.one) is not None, "what it contributed before stays"
    assert fresh.load_rules("vmap") and not fresh.load_rules("vmap") and not fresh.load_rules("vmap", acme.two)
    assert acme.asked == [("vmap", "acme.one"), ("vmap", "acme.bad"), ("vmap", None)] and other.asked == ["vmap"]
    assert vmap_rules.rule_of(acme.two) is not None
    fresh.load_rules("jvp", acme.two)
    assert acme.asked[3:] == [("jvp", "acme.two")]


def test_each_plugin_answers_for_itself(fresh: PluginManager) -> None:
    """pluggy's order and its first result concern the hooks of one plugin only; None is no answer."""

    class Answers:
        def __init__(self, names: dict[str, str] | None) -> None:
            self.names = names

        @hookimpl(tryfirst=True)
        def corejax_export_names(self) -> dict[str, str] | None:
            return self.names

    one = Answers({"acme_one": "m:x"})
    for name, plugin in (("one", one), ("none", Answers(None)), ("two", Answers({"acme_two": "m:x"}))):
        assert fresh.register(plugin, name).status == "loaded"
    assert {name: record.name for name, (_, record) in fresh.names.items()} == {"acme_one": "one", "acme_two": "two"}
    again = fresh.register(one, "again").fault
    assert str(again) == (
        "corejax.acme_one is exported by plugin 'one' (one of unknown version); "
        "plugin 'again' (again of unknown version) exports a second one"
    )


def test_failed_object_may_be_registered_again(fresh: PluginManager) -> None:
    module = types.ModuleType("toy_module")
    assert fresh.register(module, "acme").status == "failed"
    assert fresh.register(Acme(), "acme").status == "loaded"


def test_operator_of_a_failed_plugin_is_a_stub_again(site: Site, fresh: PluginManager) -> None:
    array_methods.methods.pop("__xor__", None)
    structural_before = dict(structural.table)
    site.add(
        "acme",
        """
        @hookimpl
        def corejax_provide_array_methods():
            return {"__xor__": lambda x, y: "acme"}

        @hookimpl
        def corejax_register_primitives():
            raise ZeroDivisionError
        """,
    )
    x = corejax.Array(np.zeros(2))
    assert x ^ x == "acme"
    fresh.load_primitives()
    with pytest.raises(PluginMissingError, match="no plugin provides the operator __xor__"):
        x ^ x
    assert structural.table == structural_before


# -- threads -------------------------------------------------------------------------------------------------------


def test_first_load_from_many_threads(site: Site) -> None:
    site.add(
        "slow",
        """
        import time
        time.sleep(0.2)

        @hookimpl
        def corejax_export_names():
            time.sleep(0.1)
            return {"slow": "slow_plugin:answer"}

        answer = []

        @hookimpl
        def corejax_declare_api_version():
            answer.append("loaded")
            return 1
        """,
    )
    done = site.run(
        """
        import threading
        import corejax
        found, start = [], threading.Barrier(8)
        def ask():
            start.wait()
            found.append(corejax.slow)
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), found[0], len({id(x) for x in found}))
        """
    )
    assert (done.stdout, done.stderr) == ("8 ['loaded'] 1\n", "")


@pytest.mark.parametrize("name", ["numpy.linalg", "lax.linalg", "experimental.ode", "checkify"])
def test_dir_of_a_namespace_lists_what_it_exports(name: str) -> None:
    module = importlib.import_module(f"corejax.{name}")
    assert [n for n in dir(module) if not n.startswith("_")] == sorted(module.__all__)


def test_an_installed_plugin_that_is_switched_off_is_not_unknown_in_isolation(monkeypatch):
    monkeypatch.setenv("COREJAX_PLUGINS", "-lax_basic")
    with isolated_plugins() as manager:
        manager.discover()  # a warning is an error here
