"""A broken plugin is isolated, recorded, and named where something of it is missed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import plugins
from corejax.core.primitive import Primitive, primitives
from corejax.errors import (
    DuplicateRegistrationError,
    MissingRuleError,
    PluginError,
    PluginMissingError,
    PluginMissingImportError,
)
from corejax.plugins._plugin_manager import PluginManager
from corejax.plugins._records import causes
from corejax.rules import impl_rules, jvp_rules, registries
from corejax.settings.config import config
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


# -- faults --------------------------------------------------------------------------------------------------------

HALF_WAY = """
from corejax.core.primitive import Primitive
from corejax.rules import RuleRegistry

@hookimpl
def corejax_export_names():
    return {"acme_name": "acme_plugin:helper"}

@hookimpl
def corejax_export_namespaces():
    return {"acme": "acme_plugin"}

@hookimpl
def corejax_declare_settings():
    return {"acme_level": (3, int)}

@hookimpl
def corejax_provide_operations():
    p = Primitive("acme.p", impl=lambda x: x)
    extend.vmap_rules.register(p, lambda *a: None)
    extend.vmap_rules.derivations.append(extend.Derivation("acme", lambda p: None))
    extend.programs.dce_rules[p] = lambda used, eqn: None
    RuleRegistry("acme_kind", "acme rule", "...").register(p, lambda: None)
    return {"add": lambda x, y: "acme"} if PROVIDE_ADD else {}

PROVIDE_ADD = False

@hookimpl
def corejax_provide_array_methods():
    def methods():
        yield "acme_method", lambda self: 1
        raise ZeroDivisionError("half-way")
    class Methods:
        items = staticmethod(methods)
    return Methods()
"""


def test_raising_half_way_contributes_nothing(site: Site, fresh: PluginManager) -> None:
    site.add("acme", HALF_WAY)
    before = tables()
    assert isinstance(fault_of(fresh, "acme"), ZeroDivisionError)
    assert tables() == before
    assert "acme.p" not in primitives and "acme_kind" not in registries
    assert not hasattr(config, "acme_level")
    assert fresh.names == {} and fresh.namespaces == {}
    with pytest.raises(AttributeError):
        corejax.Array(np.zeros(2)).acme_method()


@pytest.mark.parametrize("error", ["ImportError('no libacme')", "SystemExit(3)", "KeyError()"])
def test_raising_on_import_is_recorded_and_others_work(error: str, site: Site, fresh: PluginManager) -> None:
    site.add("a_broken", f"raise {error}")
    site.install("toy_ops")
    assert type(fault_of(fresh, "a_broken")).__name__ in error
    assert fresh.records["toy_ops"].status == "loaded"
    assert corejax.toy_twice is not None
    [problem] = fresh.problems()
    assert problem.startswith("plugin 'a_broken' (corejax-a_broken 1.0) failed: ")


def test_raising_in_register_primitives_takes_back_earlier_contributions(site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        """
        @hookimpl
        def corejax_export_names():
            return {"acme_name": "acme_plugin:extend"}

        @hookimpl
        def corejax_provide_array_methods():
            return {"acme_method": lambda self: 1}

        @hookimpl
        def corejax_register_primitives():
            extend.Primitive("acme.p", impl=lambda x: x)
            raise ZeroDivisionError("half-way")
        """,
    )
    before = tables()
    assert corejax.Array(np.zeros(2)).acme_method() == 1
    fresh.load_primitives()
    assert fresh.records["acme"].status == "failed"
    assert tables() == before and not fresh.names
    assert not hasattr(corejax.Array, "acme_method")


def test_raising_for_one_rule_kind_loses_that_kind_only(site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        """
        @hookimpl
        def corejax_register_primitives():
            extend.Primitive("acme.p", impl=lambda x: x, abstract_eval=lambda x: x)

        @hookimpl
        def corejax_register_rules(kind):
            if kind == "xla_translation":
                extend.xla_translations.register(extend.primitives["acme.p"], lambda *a: None)
                raise ImportError("no libacme")
        """,
    )
    plugins.load_everything()
    record = fresh.records["acme"]
    assert record.status == "loaded" and record.fault is None
    assert isinstance(record.late_faults["xla_translation rules"], ImportError)
    p = primitives["acme.p"]
    assert float(p.bind(np.float32(3))) == 3
    with pytest.raises(MissingRuleError) as caught:
        registries["xla_translation"].lookup(p)
    assert "plugin 'acme' (corejax-acme 1.0) failed to load its xla_translation rules: ImportError: no libacme" in str(
        caught.value
    )
    with pytest.raises(MissingRuleError) as caught:
        jvp_rules.lookup(p)
    assert "libacme" not in str(caught.value)


@pytest.mark.parametrize(("version", "advice"), [(99, "upgrade corejax"), (0, "upgrade the plugin")])
def test_wrong_api_version(version: int, advice: str, site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        f"""
        @hookimpl
        def corejax_declare_api_version():
            return {version}

        @hookimpl
        def corejax_new_in_version_99(much, more):
            pass
        """,
    )
    message = str(fault_of(fresh, "acme"))
    assert message == f"it was made for plugin API version {version}, this corejax has version 1; {advice}"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "@hookimpl\ndef corejax_export_namespace(): pass",
            "there is no hook named corejax_export_namespace; did you mean corejax_export_namespaces?",
        ),
        (
            "@hookimpl(specname='corejax_export_nmaes')\ndef names(): pass",
            "there is no hook named corejax_export_nmaes; did you mean corejax_export_names?",
        ),
        (
            "def corejax_export_names(): pass",
            "corejax_export_names is not marked as a hook: put @corejax.extend.hookimpl",
        ),
        ("x = 1", "has no hooks"),
        (
            "@hookimpl\ndef corejax_export_names(): return {}\n"
            "@hookimpl(specname='corejax_export_names')\ndef more(): return {'f': 'acme:f'}",
            "corejax_export_names is implemented by corejax_export_names and more; a plugin may implement a hook only",
        ),
        ("@hookimpl(wrapper=True)\ndef corejax_export_names(): yield", "declared as a wrapper"),
        ("@hookimpl(wrapper=True)\ndef corejax_declare_api_version(): yield", "declared as a wrapper"),
        ("@hookimpl(wrapper=True)\ndef corejax_declare_api_version(): pass", "declared as a wrapper"),
        ("@hookimpl\ndef corejax_declare_api_version(kernel): return 1", "'kernel'"),
        ("@hookimpl\ndef corejax_register_rules(kind, sort): pass", "{'sort'} are declared in the hookimpl"),
        ("@hookimpl\ndef corejax_declare_api_version(): return '1'", "must return an int, this one returned '1'"),
        ("@hookimpl\ndef corejax_export_names(): return {'f': 'acme'}", "got 'f': 'acme'"),
        ("@hookimpl\ndef corejax_export_namespaces(): return {'f': 'acme:f'}", "got 'f': 'acme:f'"),
        ("@hookimpl\ndef corejax_export_names(): return ['f']", "this one returned ['f']"),
    ],
)
def test_malformed_hooks(source: str, message: str, site: Site, fresh: PluginManager) -> None:
    site.add("acme", source)
    assert message in str(fault_of(fresh, "acme"))


def test_modules_and_helpers_whose_names_look_like_hooks_are_fine(site: Site, fresh: PluginManager) -> None:
    site.install("toy_ops")
    site.add(
        "acme",
        """
        import corejax_toy

        def corejax_helper():
            pass

        @hookimpl
        def corejax_register_primitives():
            pass
        """,
    )
    fresh.load()
    assert plugins.errors() == []


DUPLICATES = {
    "primitive": "corejax_register_primitives(): extend.Primitive('toy_ops.scale')",
    "rule": "corejax_register_primitives(): extend.jvp_rules.register(extend.primitives['toy_ops.scale'], id)",
    "name": "corejax_export_names(): return {'toy_twice': 'zacme_plugin:extend'}",
    "namespace": "corejax_export_namespaces(): return {'toy': 'zacme_plugin'}",
    "name as namespace": "corejax_export_namespaces(): return {'toy_twice': 'zacme_plugin'}",
    "method": "corejax_provide_array_methods(): return {'toy_twice': lambda self: 1}",
    "rule kind": "corejax_register_primitives(): extend.RuleRegistry('toy_cost', 'mine', '')",
}


@pytest.mark.parametrize("source", DUPLICATES.values(), ids=DUPLICATES.keys())
def test_duplicates_name_both_owners(source: str, site: Site, fresh: PluginManager) -> None:
    site.install("toy_ops")
    site.add("zacme", f"@hookimpl\ndef {source}", version="7.7")
    plugins.load_everything()
    fault = fault_of(fresh, "zacme")
    assert isinstance(fault, DuplicateRegistrationError)
    message = str(fault)
    assert "toy_ops" in message and "1.2.3" in message, message
    assert "zacme" in message and "7.7" in message, message
    assert fresh.records["toy_ops"].status == "loaded"


@pytest.mark.parametrize("name", ["grad", "extend", "cli", "tree_util"])
def test_names_of_the_kernel_are_taken(name: str, site: Site, fresh: PluginManager) -> None:
    site.add("acme", f"@hookimpl\ndef corejax_export_names(): return {{{name!r}: 'acme_plugin:extend'}}")
    message = str(fault_of(fresh, "acme"))
    assert message == f"corejax.{name} is exported by the kernel; plugin 'acme' (corejax-acme 1.0) exports a second one"


def test_failed_override_leaves_the_rule_that_it_replaced(site: Site, fresh: PluginManager) -> None:
    p = Primitive("plugins_test.mine", impl=lambda x: x + 1, abstract_eval=lambda x: x)
    site.add(
        "acme",
        """
        @hookimpl
        def corejax_register_primitives():
            extend.impl_rules.register(extend.primitives["plugins_test.mine"], lambda x: x + 10, override=True)
            raise ZeroDivisionError
        """,
    )
    fresh.load_primitives()
    assert float(p.bind(np.float32(0))) == 1
    assert impl_rules.rule_of(p).overridden is None


def test_strict_plugins_raise(site: Site, fresh: PluginManager) -> None:
    site.add("acme", "raise ImportError('no libacme')")
    with config.override(strict_plugins=True):
        with pytest.raises(
            PluginError, match=r"plugin 'acme' \(corejax-acme 1.0\) failed to load: ImportError"
        ) as caught:
            fresh.load()
    assert isinstance(caught.value.__cause__, ImportError)


def test_strict_plugins_from_the_environment(site: Site) -> None:
    site.add("acme", "raise ImportError('no libacme')")
    done = site.run("import corejax\ncorejax.toy", COREJAX_STRICT_PLUGINS="1")
    assert "PluginError: plugin 'acme' (corejax-acme 1.0) failed to load: ImportError: no libacme" in done.stderr


def test_interrupt_while_loading_is_no_fault(site: Site, fresh: PluginManager) -> None:
    site.add("acme", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        fresh.load()
    assert fresh.records["acme"].status == "found" and fresh.records["acme"].fault is None


def test_causes_follow_the_chain_once() -> None:
    try:
        try:
            raise ImportError("no libacme\nsecond line")
        except ImportError as error:
            raise RuntimeError("acme needs libacme") from error
    except RuntimeError as error:
        assert causes(error) == ["RuntimeError: acme needs libacme", "ImportError: no libacme"]
    assert causes(KeyError()) == ["KeyError"]


# -- names that are missing or broken ------------------------------------------------------------------------------


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("program", "error", "distribution"),
    [
        ("corejax.jit", PluginMissingError, "corejax-xla-backend"),
        ("from corejax import jit", PluginMissingImportError, "corejax-xla-backend"),
        ("from corejax import lax", PluginMissingImportError, "corejax-lax-basic"),
        ("import corejax.numpy", PluginMissingImportError, "corejax-numpy"),
    ],
)
def test_missing_plugin_names_its_distribution(program: str, error: type[Exception], distribution: str) -> None:
    with pytest.raises(error, match=rf"no attribute '\w+'; .* \(pip install {distribution}\)"):
        exec(program, {"corejax": corejax})


@pytest.mark.usefixtures("fresh")
def test_missing_name_is_absent_for_hasattr() -> None:
    assert not hasattr(corejax, "jit") and not hasattr(corejax, "lax")


def test_missing_names_as_users_meet_them(site: Site) -> None:
    done = site.run(
        """
        import corejax
        for program in ("corejax.jit", "from corejax import jit", "import corejax.lax", "from corejax import lax"):
            try:
                exec(program)
            except Exception as error:
                print(type(error).__name__, str(error).split("(")[1])
        """
    )
    assert done.stdout.splitlines() == [
        "PluginMissingError pip install corejax-xla-backend)",
        "PluginMissingImportError pip install corejax-xla-backend)",
        "PluginMissingImportError pip install corejax-lax-basic)",
        "PluginMissingImportError pip install corejax-lax-basic)",
    ]


def test_unknown_name_gets_a_suggestion(site: Site, fresh: PluginManager) -> None:
    site.install("toy_ops")
    with pytest.raises(AttributeError, match=r"'toy_twise'; did you mean 'toy_twice'\?"):
        corejax.toy_twise  # noqa: B018
    with pytest.raises(AttributeError, match=r"'gard'; did you mean 'grad'\?"):
        corejax.gard  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'corejax.nothing'"):
        importlib.import_module("corejax.nothing")
    assert importlib.util.find_spec("corejax.nothing") is None


@pytest.mark.parametrize("program", ["corejax.broken_call", "from corejax import broken_call", "import corejax.broken"])
def test_name_of_a_broken_plugin_chains_the_cause(program: str, site: Site, fresh: PluginManager) -> None:
    site.install("broken_ops")
    with pytest.raises(PluginError) as caught:
        exec(program, {"corejax": corejax})
    assert "comes from plugin 'broken_ops' (corejax-broken-ops 0.9), which failed: RuntimeError" in str(caught.value)
    assert causes(caught.value)[1:] == [
        "RuntimeError: broken_ops needs its accelerator library",
        "ModuleNotFoundError: No module named 'a_module_that_nobody_has'",
    ]
    assert "broken.half" not in primitives


def test_name_of_a_first_party_plugin_that_fails_on_import(site: Site, fresh: PluginManager) -> None:
    site.add("xla_backend", "raise ImportError('no jaxlib')", distribution="corejax-xla-backend")
    with pytest.raises(PluginError, match=r"corejax\.jit comes from plugin 'xla_backend'") as caught:
        corejax.jit  # noqa: B018
    assert isinstance(caught.value.__cause__, ImportError)


@pytest.mark.parametrize(
    ("hook", "target"),
    [("names", "acme_plugin:absent"), ("names", "no_such_module:f"), ("namespaces", "no_such_module")],
)
def test_export_that_cannot_be_imported(hook: str, target: str, site: Site, fresh: PluginManager) -> None:
    site.add("acme", f"@hookimpl\ndef corejax_export_{hook}(): return {{'acme': {target!r}}}")
    with pytest.raises(PluginError, match=r"corejax.acme comes from plugin 'acme' \(corejax-acme 1.0\), which failed"):
        corejax.acme  # noqa: B018
    assert fresh.records["acme"].status == "loaded"


SET_NAME = """
class Field:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt

class Table:
    field = Field()
"""


def test_an_interrupt_in_the_making_of_a_class_is_an_interrupt(site: Site) -> None:
    """Python 3.11 makes it a RuntimeError; the plugin has not failed, and is loaded the next time."""
    text = 'def corejax_export_names(): return {"acme_name": "acme_late:thing"}'
    site.add("acme", "import os\nif not os.environ.get('ACME_READY'):\n    import acme_late\n@hookimpl\n" + text)
    late = site.path / "acme_late.py"
    late.write_text(SET_NAME)
    program = """
        import os
        import corejax
        from corejax import plugins
        for _ in range(2):
            try:
                corejax.acme_name
            except KeyboardInterrupt:
                print("interrupted", plugins.manager().records["acme"].status)
            os.environ["ACME_READY"] = "1"
        open(%r, "w").write("thing = 3")
        import importlib
        importlib.invalidate_caches()
        print(corejax.acme_name)
    """
    done = site.run(program % str(late))
    assert done.stdout.split("\n")[:3] == ["interrupted found", "interrupted loaded", "3"], done.stderr


def test_a_missing_setting_names_the_plugin_that_failed(site: Site):
    """Another plugin may read a setting of a plugin that failed: only the fault explains why it is missing."""
    site.add("acme", "@hookimpl\ndef corejax_declare_settings(): return {'acme_level': (3, int)}")
    done = site.run(
        "import corejax\ntry: corejax.config.acme_level\nexcept AttributeError as error: print(error)",
        COREJAX_ACME_LEVEL="high",
    )
    assert "no setting named 'acme_level'" in done.stdout, done.stderr
    assert "plugin 'acme' (corejax-acme 1.0) failed: ValueError: environment variable COREJAX_ACME_LEVEL" in done.stdout


def test_a_plugin_that_is_the_first_to_need_the_kernel_leaves_it_whole(site: Site) -> None:
    """What the kernel registers while a plugin imports it is not the plugin's."""
    site.add(
        "acme",
        """
        from corejax import tree_util
        from corejax.extend import Primitive

        @hookimpl
        def corejax_export_names(): raise ZeroDivisionError
        """,
    )
    done = site.run(
        """
        import corejax
        [record] = corejax.plugins.errors()
        assert type(record.fault) is ZeroDivisionError
        from corejax.extend import registries
        from corejax.rules import jvp_rules, transpose_rules
        assert "jvp" in registries and "loop" in [d.name for d in registries["vmap"].derivations]
        assert jvp_rules.adapt.value and transpose_rules.adapt.value
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
