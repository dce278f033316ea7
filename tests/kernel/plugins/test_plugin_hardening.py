"""Plugins that do anything at all: each is recorded as failed, and everything else works."""

from __future__ import annotations

import json
import threading

import pytest

import corejax
from corejax import plugins
from corejax.base import tables
from corejax.core.primitive import primitives
from corejax.errors import PluginError
from corejax.extend import hookimpl
from corejax.extend.plugins import isolated_plugins
from corejax.plugins import manifest
from corejax.plugins._load_lock import LoadLock
from corejax.plugins._plugin_manager import PluginManager
from corejax.plugins._records import causes
from corejax.rules import impl_rules
from corejax.settings.config import config
from tests.kernel.interrupting import At
from tests.kernel.plugin_sites import Site, contents


def assert_only_this_one_failed(manager: PluginManager, name: str = "a_broken") -> str:
    manager.load_primitives()
    assert manager.records[name].status == "failed"
    assert manager.records["toy_ops"].status == "loaded" and "toy" in manager.namespaces
    [problem] = manager.problems()
    assert problem.startswith(f"plugin {name!r} (")
    return problem


# -- what they raise -----------------------------------------------------------------------------------------------

UNPRINTABLE = """
class Sly(Exception):
    def __str__(self): raise SystemExit("no")
    __repr__ = __str__
    def add_note(self, note): raise ZeroDivisionError
raise Sly("told to nobody")
"""


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio; raise asyncio.CancelledError",
        "raise GeneratorExit('over')",
        "class Own(BaseException): pass\nraise Own('mine')",
        "raise SystemExit(0)",
        "raise BaseExceptionGroup('several', [GeneratorExit()])",
        "raise RecursionError",
        UNPRINTABLE,
        "def f(): f()\nf()",
        "x = (",
        "import nowhere.to_be_found",
        "\x00",
    ],
)
def test_whatever_is_raised_on_import_is_recorded(source: str, site: Site, fresh: PluginManager) -> None:
    site.add("a_broken", source)
    site.install("toy_ops")
    before = contents()
    assert_only_this_one_failed(fresh)
    fresh.unregister("toy_ops")
    assert contents() == before


def test_whatever_is_raised_by_rules_checks_and_examples(site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        """
        @hookimpl
        def corejax_register_rules(kind): raise GeneratorExit
        @hookimpl
        def corejax_provide_examples(primitive): raise GeneratorExit("late")
        @hookimpl
        def corejax_provide_checks(): raise GeneratorExit("late")
        @hookimpl
        def corejax_export_names(): return {"acme_late": "acme_late:x"}
        """,
    )
    (site.path / "acme_late.py").write_text("raise GeneratorExit('late')")
    site.install("toy_ops")
    plugins.load_everything()
    assert fresh.records["toy_ops"].status == "loaded" and fresh.records["acme"].status == "loaded"
    assert "failed to load its jvp rules: GeneratorExit" in fresh.problems("jvp")[0]
    kit = pytest.importorskip("corejax_testing.contributions")
    for ask in (lambda: kit.examples_of("p"), kit.provided_checks, lambda: corejax.acme_late):
        with pytest.raises(PluginError, match="GeneratorExit: late"):
            ask()


def test_an_error_that_cannot_be_shown_is_a_cause() -> None:
    class Sly(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    assert causes(Sly()) == ["Sly: (its message cannot be shown: ZeroDivisionError)"]


# -- what they give ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hook", "given", "told"),
    [
        ("corejax_export_names", "{'': 'm:x'}", "cannot be written in code"),
        ("corejax_export_names", "{'two words': 'm:x'}", "cannot be written in code"),
        ("corejax_export_names", "{'class': 'm:x'}", "cannot be written in code"),
        ("corejax_export_names", "{'_private': 'm:x'}", "cannot be written in code"),
        ("corejax_export_names", "{'__version__': 'm:x'}", "cannot be written in code"),
        ("corejax_export_names", "{'a..b': 'm:x'}", "cannot be written in code"),
        ("corejax_export_names", "{'x\\x1b[2J': 'm:x'}", r"x\x1b"),
        ("corejax_export_names", "{'acme_x': ':x'}", "is not the name of a module or object"),
        ("corejax_export_names", "{'acme_x': 'm:'}", "is not the name of a module or object"),
        ("corejax_export_names", "{'grad': 'm:x'}", "corejax.grad is exported by the kernel"),
        ("corejax_export_names", "{'errors.grad': 'm:x'}", "corejax.errors.grad is exported by the kernel"),
        ("corejax_export_namespaces", "{'errors.acme': 'm'}", "exported by the kernel"),
        ("corejax_export_namespaces", "{'dtypes': 'm'}", "corejax.dtypes is exported by the kernel"),
        ("corejax_export_names", "{'dtypes.finfo': 'm:x'}", "corejax.dtypes.finfo is exported by the kernel"),
        ("corejax_export_namespaces", "{'.acme': 'm'}", "cannot be written in code"),
        ("corejax_export_namespaces", "{'acme': ''}", "is not the name of a module or object"),
        ("corejax_declare_settings", "{'': (1, int)}", "a setting's name must be an identifier"),
        ("corejax_declare_settings", "{'update': (1, int)}", "'update' exists"),
        ("corejax_declare_settings", "{'check_jaxprs': (1, int)}", "'check_jaxprs' exists"),
        ("corejax_declare_settings", "{3: (1, int)}", "a setting's name must be an identifier"),
        ("corejax_declare_settings", "{'acme_x': (1, 'int')}", "its parser must be a function"),
        ("corejax_declare_settings", "{'acme_x': 1}", "got 'acme_x': 1"),
        ("corejax_declare_settings", "{'acme_x': 'abc'}", "(default, parser), with"),
        ("corejax_declare_settings", "{'acme_x': (1, int, True, 2)}", "(default, parser), with"),
        ("corejax_declare_settings", "3", "corejax_declare_settings must return a mapping such as"),
        ("corejax_provide_operations", "[1]", "corejax_provide_operations must return a mapping such as"),
        ("corejax_provide_operations", "{'add': 'm:x'}", "must return functions, as"),
        ("corejax_provide_array_methods", "[1]", "corejax_provide_array_methods must return a mapping such as"),
        ("corejax_provide_array_methods", "{'__class__': int}", "an array method's name is"),
        ("corejax_provide_array_methods", "{'two words': len}", "an array method's name is"),
        ("corejax_provide_array_methods", "{'shape': len}", "the kernel's own"),
        ("corejax_provide_operations", "{'no_such': len}", "no structural operation"),
        ("corejax_declare_rule_kinds", "{'': 'm:x'}", "a rule kind must be"),
        ("corejax_register_primitives", "extend.Primitive('')", "non-empty string"),
        ("corejax_declare_api_version", "float('nan')", "must return an int"),
    ],
)
def test_what_cannot_be_is_refused_and_told(hook: str, given: str, told: str, site: Site, fresh: PluginManager) -> None:
    site.add("a_broken", f"@hookimpl\ndef {hook}(): return {given}")
    site.install("toy_ops")
    assert told in assert_only_this_one_failed(fresh)


@pytest.mark.parametrize("parser", ["int", "lambda text: [][0]", "lambda text: exec('raise GeneratorExit')"])
def test_a_wrong_value_of_a_plugins_setting_in_the_environment(
    parser: str, site: Site, fresh: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COREJAX_ACME_LEVEL", "banana")
    site.add("a_broken", f"@hookimpl\ndef corejax_declare_settings(): return {{'acme_level': (3, {parser})}}")
    site.install("toy_ops")
    problem = assert_only_this_one_failed(fresh)
    assert "GeneratorExit" in parser or "COREJAX_ACME_LEVEL='banana'" in problem
    assert "acme_level" not in config._settings and not hasattr(config, "acme_level")
    assert "acme_level" not in repr(config)


# -- what is written about them ------------------------------------------------------------------------------------

GOOD = {"plugin": "acme", "distribution": "corejax-acme", "version": "1.0", "api_version": 1, "sources": ""}
ENTRY = {"module": "acme_plugin.plugin"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": {"x": 3}},
        {"names": ["x"]},
        {"array_methods": [3]},
        {"settings": {"x": None}},
        {"commands": {"x": ["help"]}},
        {"rule_kinds": {"x": 3}},
        {"derivations": [["jvp"]]},
        {"derivations": [3]},
        {"derivations_known": [["jvp", "x"]]},
        {"primitives": {"p": {**ENTRY, "rules": 5}}},
        {"primitives": {"p": {**ENTRY, "rules": {"jvp": "cpu"}}}},
        {"primitives": {"p": {**ENTRY, "derivable": {"jvp": [["x"]]}}}},
        {"primitives": {"p": {**ENTRY, "linear_in": ["0"]}}},
        {"primitives": {"p": {"module": None}}},
        {"primitives": {"p": 3}},
        {"primitives": [1]},
        {"rules": {"p": {"jvp": [3]}}},
        {"overrides": {"p": ["jvp"]}},
        {"nothing_of_the_sort": 1},
        {"sources": 3},
    ],
)
def test_a_malformed_manifest_is_not_used(wrong: dict[str, object], site: Site, fresh: PluginManager) -> None:
    site.add_package("acme", plugin="@hookimpl\ndef corejax_export_names(): return {}")
    data = {"manifest_version": 1, "plugins": {"acme": {"primitives": {}, **GOOD, **wrong}}}
    (site.path / "acme_plugin" / manifest.FILE).write_text(json.dumps(data))
    found = fresh.manifest(fresh.discover()["acme"])
    assert found.manifest is None and found.word == "malformed"
    fresh.load()
    assert fresh.records["acme"].status == "loaded"


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"", b"3", b"null", b"\x00"])
def test_a_manifest_that_is_none(text: bytes, site: Site, fresh: PluginManager) -> None:
    site.add_package("acme", plugin="@hookimpl\ndef corejax_export_names(): return {}")
    (site.path / "acme_plugin" / manifest.FILE).write_bytes(text)
    assert fresh.manifest(fresh.discover()["acme"]).word == "malformed"


@pytest.mark.parametrize("file", ["entry_points.txt", "METADATA"])
def test_metadata_that_is_not_utf8(file: str, site: Site) -> None:
    site.install("toy_ops")
    site.add("acme", "@hookimpl\ndef corejax_export_names(): return {}")
    with open(site.path / "corejax_acme-1.0.dist-info" / file, "ab") as metadata:
        metadata.write(b"# \xff\xfe\n")
    program = """
        import importlib_metadata
        importlib_metadata.distributions = _distributions
        import corejax
        from corejax import plugins
        from corejax.base import tables
        for record in plugins.plugins():
            print(record.name, record.status, *record.problems())
    """
    found = "corejax-acme" if file == "entry_points.txt" else "acme"  # the name is unknown if the file is not read
    done = site.run(program, COREJAX_PLUGINS=f"toy_ops,{found}")
    assert "toy_ops loaded\n" in done.stdout, done.stderr
    if file == "entry_points.txt":
        assert (
            "corejax-acme failed plugin 'corejax-acme' (corejax-acme of unknown version) failed: Unicode" in done.stdout
        )
    else:
        assert "acme loaded\n" in done.stdout


# -- interrupts ----------------------------------------------------------------------------------------------------

PLUGIN = """
@hookimpl
def corejax_export_names(): return {"acme_twice": "acme_plugin.ops:twice"}
@hookimpl
def corejax_declare_settings(): return {"acme_level": (3, int)}
@hookimpl
def corejax_provide_array_methods():
    from acme_plugin import ops
    return {"acme_size": ops.size}
@hookimpl
def corejax_register_primitives():
    from acme_plugin import more, ops
@hookimpl
def corejax_register_rules(kind):
    if kind == "jvp":
        from acme_plugin import rules
"""
OPS = """
from corejax import extend
a_p = extend.Primitive("acme.a", impl=lambda x: x, abstract_eval=lambda a: a)
b_p = extend.Primitive("acme.b", impl=lambda x: x)
extend.abstract_eval_rules.register(b_p, lambda a: a)
size = property(lambda x: x.size)
def twice(x): return x
"""
MORE = """
from corejax import extend
from acme_plugin.ops import a_p
extend.vmap_rules.register(a_p, lambda n, vals, dims: (a_p.bind(*vals), dims[0]))
c_p = extend.Primitive("acme.c", decomposition=lambda x: x)
extend.programs.dce_rules[c_p] = lambda used, eqn: (used, eqn)
"""
RULES = """
from corejax import extend
from acme_plugin.ops import a_p, b_p
extend.defjvp(a_p, lambda t, x: t)
extend.defjvp(b_p, lambda t, x: t)
"""


@pytest.mark.parametrize("step", [19, pytest.param(7, marks=pytest.mark.slow)])
def test_an_interrupt_anywhere_while_a_plugin_loads(step: int, site: Site, fresh: PluginManager) -> None:
    """Loaded again, it contributes what it would have contributed: all of it, and each thing once."""
    site.add_package("acme", plugin=PLUGIN, ops=OPS, more=MORE, rules=RULES)

    def load(manager: PluginManager) -> None:
        manager.load_primitives()
        manager.load_rules("jvp")
        manager.add_cli_commands(type("Group", (), {"commands": {}}))

    def contributed() -> dict[str, list[str]]:
        return {store: sorted(str(getattr(key, "name", key)) for key in found) for store, found in contents().items()}

    def start_over() -> PluginManager:
        fresh.unregister("acme")
        site.forget()
        again = PluginManager(site.find, plugins._reserved)
        vars(fresh).update(vars(again))
        return fresh

    load(fresh)
    wanted, names = contributed(), dict(fresh.names)
    n = interrupted = 0
    while True:
        n += step
        manager = start_over()
        at = At(n, "corejax/plugins/" if n % 2 else "acme_plugin" if n % 3 else "/corejax/")
        try:
            with at.armed():
                load(manager)
        except KeyboardInterrupt:
            interrupted += 1
        else:
            if n > 2000:
                break
        load(manager)
        assert manager.records["acme"].status == "loaded", (at.place, manager.problems())
        assert contributed() == wanted and manager.names.keys() == names.keys(), at.place
        assert impl_rules.lookup(primitives["acme.a"]) is not None
        assert manager._loader.lock._holders == [] and tables._thread.owner is None
    assert interrupted > 200 // step


# -- threads -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", ["thread.join()", "done.wait()"])
def test_a_thread_that_a_plugin_waits_for_may_use_other_plugins(wait: str, site: Site) -> None:
    site.add(
        "acme",
        f"""
        import threading
        import corejax
        done = threading.Event()
        def work():
            print(corejax.toy_twice.__name__)
            done.set()
        thread = threading.Thread(target=work)
        thread.start()
        {wait}
        @hookimpl
        def corejax_export_names(): return {{}}
        """,
    )
    site.install("toy_ops")
    done = site.run("from corejax import plugins\nprint(*(record.status for record in plugins.plugins()))")
    assert done.stdout == "twice\nloaded loaded\n", done.stderr


def test_a_lock_whose_owner_was_driven_out_is_free() -> None:
    lock, got = LoadLock(), threading.Event()

    def enter() -> None:
        lock.__enter__()  # and the interrupt comes before anything else

    enter()
    assert len(lock._holders) == 1

    def other() -> None:
        with lock:
            got.set()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    assert got.wait(30)
    thread.join(30)
    assert lock._holders == []


def test_a_class_is_no_plugin_where_its_hooks_are_methods() -> None:
    class Methods:
        @hookimpl
        def corejax_declare_api_version(self) -> int:
            return 1

    class Functions:
        @staticmethod
        @hookimpl
        def corejax_declare_api_version() -> int:
            return 1

    with isolated_plugins() as manager:
        fault = str(manager.register(Methods, "methods").fault)
        assert "Methods is a class, and corejax_declare_api_version needs an instance of it" in fault
        assert "(PLUGIN = Methods())" in fault
        assert manager.register(Methods(), "instance").status == "loaded"
        assert manager.register(Functions, "functions").status == "loaded"
        assert "a module, or an object with hooks, got None" in str(manager.register(None, "none").fault)
