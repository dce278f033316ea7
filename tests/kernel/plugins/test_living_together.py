"""Plugins that get in each other's way, or are gone: each case works as far as it can, and says what to do."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import corejax
from corejax import plugins
from corejax.cli import main
from corejax.core.primitive import Primitive, primitives
from corejax.errors import DuplicateRegistrationError, JaxprSyntaxError, PluginError, PluginMissingError
from corejax.plugins._plugin_manager import PluginManager
from corejax.plugins._requirements import unmet_requirements
from corejax.rules import impl_rules, registries, vmap_rules, xla_translations
from corejax.settings.config import Config, config
from tests.kernel.plugin_sites import Site

X = np.array([1.0, 2.0], np.float32)

CUBE = """
@hookimpl
def corejax_register_primitives():
    extend.Primitive("acme.cube", impl=lambda x: x**3, abstract_eval=lambda x: x, tags=("elementwise",))
"""


def command(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments, prog_name="corejax")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output


# -- two plugins with one primitive name -----------------------------------------------------------------------------


def test_the_second_of_two_equal_names_is_refused_and_either_can_be_had(
    site: Site, fresh: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme", CUBE)
    site.add("other", CUBE.replace("x**3", "x * x * x"), version="2.0")
    plugins.load_everything()
    fault = fresh.records["other"].fault
    assert isinstance(fault, DuplicateRegistrationError)
    assert "primitive 'acme.cube' exists: it is defined by plugin acme 1.0 (acme_plugin.py:" in str(fault)
    assert "plugin other 2.0 (other_plugin.py:" in str(fault) and "Choose another name" in str(fault)
    assert "switch it off (COREJAX_PLUGINS=-other)" in command("list-primitives")
    assert float(primitives["acme.cube"].bind(np.float32(2))) == 8
    assert primitives["acme.cube"].provenance.plugin == "acme"


def test_with_one_of_them_off_the_other_works(site: Site) -> None:
    site.add("acme", CUBE)
    site.add("other", CUBE, version="2.0")
    program = "import corejax\nfrom corejax import extend\ncorejax.plugins.load_everything()\n"
    program += "print(extend.primitives['acme.cube'].provenance.owner)"
    for off, owner in (("-acme", "plugin other 2.0"), ("-other", "plugin acme 1.0")):
        done = site.run(program, COREJAX_PLUGINS=off)
        assert (done.stdout, done.stderr) == (f"{owner}\n", "")


# -- overrides -------------------------------------------------------------------------------------------------------

FAST = """
def on_cuda(ctx, in_avals, in_vals): return "acme's"
@hookimpl
def corejax_register_rules(kind):
    p = extend.primitives["other.p"]
    if kind == "xla_translation":
        extend.xla_translations.register(p, on_cuda, platform="cuda", override=True)
@hookimpl
def corejax_register_primitives():
    import other_plugin
    other_plugin.corejax_register_primitives()
    extend.impl_rules.register(extend.primitives["other.p"], lambda x: x + 10, override=True)
"""
OTHER = """
@hookimpl
def corejax_register_primitives():
    if "other.p" not in extend.primitives:
        p = extend.Primitive("other.p", impl=lambda x: x + 1, abstract_eval=lambda x: x)
        extend.xla_translations.register(p, lambda *a: "other's", platform="cuda")
        extend.xla_translations.register(p, lambda *a: "everybody's")
"""


@pytest.fixture
def overridden(site: Site, fresh: PluginManager) -> Primitive:
    """A primitive of plugin `other`, two of whose rules plugin `acme` replaces."""
    site.add("acme", FAST)
    site.add("other", OTHER, version="2.0")
    plugins.load_everything()
    assert fresh.problems() == []
    return primitives["other.p"]


def values(p: Primitive) -> tuple[float, Any, Any]:
    translations = (xla_translations.lookup(p, platform)(None, (), ()) for platform in ("cuda", "cpu"))
    return (float(p.bind(np.float32(0))), *translations)


@pytest.mark.parametrize("off", [False, "", "-acme", "other", "0"])
def test_overrides_can_be_switched_off_and_on_again(off: Any, overridden: Primitive) -> None:
    on = (10.0, "acme's", "everybody's")
    assert values(overridden) == on
    key = config.trace_key()
    with config.override(rule_overrides=off):
        assert values(overridden) == (1.0, "other's", "everybody's")
        assert config.trace_key() != key, "compiled programs depend on it"
        with config.override(rule_overrides="acme"):
            assert values(overridden) == on
    assert values(overridden) == on and config.trace_key() == key


def test_an_override_registered_while_they_are_off(site: Site, fresh: PluginManager) -> None:
    site.add("acme", FAST)
    site.add("other", OTHER)
    with config.override(rule_overrides=False):
        plugins.load_everything()
        assert values(primitives["other.p"]) == (1.0, "other's", "everybody's")
    assert values(primitives["other.p"]) == (10.0, "acme's", "everybody's")


def show(name: str) -> str:
    return str(CliRunner().invoke(pytest.importorskip("corejax_explain.show").show, [name]).output)


def test_overrides_are_shown(overridden: Primitive) -> None:
    listed = command("list-primitives")
    assert "# replaced on purpose: other.p impl by acme\n" in listed
    assert "# replaced on purpose: other.p xla_translation on cuda by acme\n" in listed
    shown = [line.split() for line in show("other.p").splitlines()]
    assert ["on", "cuda", "plugin", "acme", "1.0"] in [line[:5] for line in shown]
    assert ["overrides", "plugin", "other", "2.0"] in [line[:4] for line in shown]
    with config.override(rule_overrides="-acme"):
        assert "# replaced on purpose: other.p impl by acme (off)\n" in command("list-primitives")
        shown = [line.split() for line in show("other.p").splitlines()]
        assert ["impl", "own", "plugin", "other", "2.0"] in [line[:5] for line in shown]
        off = [line for line in shown if line[:5] == ["switched", "off", "plugin", "acme", "1.0"]]
        assert len(off) == 2 and all(line[-1] == "(rule_overrides=-acme)" for line in off)


def test_override_of_a_derived_rule_that_is_off_leaves_the_derived_one(site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        """
        @hookimpl
        def corejax_register_primitives():
            p = extend.primitives["mine.p"]
            extend.vmap_rules.register(p, lambda size, vals, dims: (vals[0] * 0, dims[0]), override=True)
        """,
    )
    p = Primitive("mine.p", decomposition=lambda x: x)
    plugins.load_everything()
    assert vmap_rules.rule_of(p).provenance.plugin == "acme"
    with config.override(rule_overrides=False):
        assert np.asarray(corejax.vmap(p.bind)(X)).tolist() == [1, 2]
        assert vmap_rules.rule_of(p).derived == "decomposition"
        with config.override(strict_rules=True):
            assert vmap_rules.rule_of(p) is None and vmap_rules.find(p) is None
        assert vmap_rules.find(p) is not None
    assert vmap_rules.rule_of(p).derived is None
    assert [rule.provenance.plugin for rule in vmap_rules.registered(p)] == ["acme"]


def test_an_override_of_ones_own_is_always_on() -> None:
    p = Primitive("living_together.mine", impl=lambda x: x + 1, abstract_eval=lambda x: x)
    impl_rules.register(p, lambda x: x + 10, override=True)
    try:
        with config.override(rule_overrides=False):
            assert float(p.bind(np.float32(0))) == 10 and config.overrides_are_on(None)
    finally:
        for registry in registries.values():
            while list(registry.registered(p)):
                registry.unregister(p)
        del primitives[p.name]


@pytest.mark.parametrize(
    ("text", "value", "acme"),
    [(None, True, True), ("1", True, True), ("", False, False), ("off", False, False), ("acme", "acme", True),
     (" b , acme", "acme,b", True), ("b", "b", False), ("-acme", "-acme", False), ("-b", "-b", True)],
)  # fmt: skip
def test_the_environment_variable(text: str | None, value: Any, acme: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if text is not None:
        monkeypatch.setenv("COREJAX_RULE_OVERRIDES", text)
    assert Config().rule_overrides == value
    with config.override(rule_overrides=value):
        assert config.overrides_are_on("acme") is acme


def test_a_misspelt_name_in_the_setting_is_reported(overridden: Primitive) -> None:
    with config.override(rule_overrides="-acmee"):
        listing = command("list-primitives")
    assert "RULE_OVERRIDES=-acmee names 'acmee', which is not an installed plugin; did you mean 'acme'?" in listing


# -- versions that do not fit ----------------------------------------------------------------------------------------


def require(site: Site, name: str, *requirements: str) -> None:
    path = site.path / f"corejax_{name}-1.0.dist-info" / "METADATA"
    path.write_text(path.read_text() + "".join(f"Requires-Dist: {text}\n" for text in requirements))


def test_a_plugin_that_fails_says_which_version_it_wants(site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        """
        @hookimpl
        def corejax_export_names(): return {"acme_f": "acme_plugin:f"}
        @hookimpl
        def corejax_register_primitives(): extend.something_of_version_99
        """,
    )
    require(site, "acme", "numpy>=1", "corejax>=99.0,<100", "corejax-gone", 'corejax-never>=1; extra == "test"')
    plugins.load_everything()
    [problem] = fresh.problems()
    assert problem.startswith("plugin 'acme' (corejax-acme 1.0) failed: AttributeError: ")
    assert "it requires corejax>=99.0,<100, and corejax " in problem
    assert "is installed (pip install 'corejax>=99.0,<100')" in problem
    assert "it requires corejax-gone, which is not installed (pip install 'corejax-gone')" in problem
    assert "never" not in problem and "numpy" not in problem
    with pytest.raises(PluginError, match="it requires corejax>=99"):
        corejax.acme_f  # noqa: B018
    assert "it requires corejax>=99.0" in command("plugins")


@pytest.mark.parametrize(
    ("specifier", "met"),
    [("", True), (">=0.0.1", True), ("~=999.0", False), ("==0.*", True), ("!=999", True), ("<0.0.1", False),
     (" (>=0.0.1)", True), ("[extra]>=999", False), (">=0.0.1, <999", True)],
)  # fmt: skip
def test_requirements(specifier: str, met: bool) -> None:
    dist = SimpleNamespace(read_text={"METADATA": f"Name: acme\nRequires-Dist: corejax{specifier}\n"}.get)
    assert (unmet_requirements(dist) == []) is met


# -- rules that fail -------------------------------------------------------------------------------------------------


@pytest.fixture
def failing(site: Site, fresh: PluginManager) -> Primitive:
    site.add(
        "acme",
        """
        def fails(*args, **params): raise ZeroDivisionError("acme's fault")
        def refuses(x):
            if x.ndim > 3: raise TypeError("too many dimensions")
            return x if x.ndim < 3 else fails()
        @hookimpl
        def corejax_register_primitives():
            p = extend.Primitive("acme.p", impl=lambda x: fails() if x.ndim == 2 else x, abstract_eval=refuses)
            extend.vmap_rules.register(p, fails)
            extend.jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), p.bind(*tangents)))
            extend.transpose_rules.register(p, fails)
        """,
    )
    plugins.load_everything()
    return primitives["acme.p"]


def line_of(call: Any) -> str:
    return f"{__file__}:{call.__code__.co_firstlineno}"


@pytest.mark.parametrize(
    ("call", "title"),
    [
        (lambda p: p.bind(np.ones((2, 2), np.float32)), "impl rule"),
        (lambda p: p.bind(np.ones((2, 2, 2), np.float32)), "abstract-eval rule"),
        (lambda p: corejax.vmap(p.bind)(X), "vmap rule"),
        (lambda p: corejax.grad(p.bind)(np.float32(1)), "transpose rule"),
        (lambda p: corejax.make_jaxpr(corejax.vmap(p.bind))(X), "vmap rule"),
        (lambda p: corejax.jvp(lambda x: corejax.vmap(p.bind)(x), (X,), (X,)), "vmap rule"),
    ],
)
def test_error_in_a_rule_names_plugin_rule_and_line(call: Any, title: str, failing: Primitive) -> None:
    with pytest.raises(ZeroDivisionError, match="acme's fault") as caught:
        call(failing)
    [note] = caught.value.__notes__
    assert note.startswith(f"This came out of the {title} of primitive 'acme.p', from plugin acme 1.0 (acme_plugin.py:")
    assert f"needed at {line_of(call)}" in note and note.endswith("To check the rule: corejax verify acme.p")


def test_what_rules_refuse_and_what_is_no_rules_fault_has_no_note(failing: Primitive) -> None:
    with pytest.raises(TypeError, match="too many") as caught:
        failing.bind(np.ones((1, 1, 1, 1), np.float32))
    assert not hasattr(caught.value, "__notes__")

    def users(x: Any) -> Any:
        failing.bind(x)
        raise KeyError("the user's own")

    with pytest.raises(KeyError) as caught2:
        corejax.jvp(users, (X,), (X,))
    assert not hasattr(caught2.value, "__notes__")


# -- programs that outlive a plugin ----------------------------------------------------------------------------------


def parse_jaxpr(text: str) -> Any:
    """Read a program with the parser of corejax-explain, whatever plugins the manager has."""
    return pytest.importorskip("corejax_explain.program_text").parse_jaxpr(text)


def saved(site: Site) -> tuple[str, bytes]:
    site.add("acme", CUBE)
    plugins.load_everything()
    p = primitives["acme.cube"]
    program = corejax.make_jaxpr(lambda x: p.bind(p.bind(x)))(X)
    text = program.pretty(requires=True, consts=True)
    assert text == f"# requires corejax-acme 1.0: acme.cube\n{program}"
    assert str(parse_jaxpr(text)) == str(program), "it parses as without"
    assert pickle.loads(pickle.dumps(p)) is p
    return text, pickle.dumps(p)


def test_a_saved_program_whose_plugin_is_gone(site: Site, fresh: PluginManager) -> None:
    text, pickled = saved(site)
    del primitives["acme.cube"]
    with pytest.raises(JaxprSyntaxError) as caught:
        parse_jaxpr(text)
    message = str(caught.value)
    assert message.startswith(
        "line 3, column 16: there is no primitive 'acme.cube'; the program was written with corejax-acme 1.0, "
        "which has it (pip install corejax-acme==1.0)\n"
    )
    with pytest.raises(PluginMissingError, match=r"'acme.cube': .* corejax-acme 1.0 \(pip install corejax-acme==1.0\)"):
        pickle.loads(pickled)


@pytest.mark.parametrize(
    ("selection", "plugin", "words"),
    [
        ("-acme", CUBE, "COREJAX_PLUGINS=-acme switches off 'acme' (corejax-acme 1.0)"),
        (None, "raise ImportError('no libacme')", "plugin 'acme' (corejax-acme 1.0) failed: ImportError: no libacme"),
    ],
)
def test_a_saved_program_whose_plugin_is_off_or_broken(
    selection: str | None, plugin: str, words: str, site: Site, fresh: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("acme", plugin)
    if selection:
        monkeypatch.setenv("COREJAX_PLUGINS", selection)
    text = "# requires corejax-acme 1.0: acme.cube\n{ lambda ; a:f32[]. let\n    b:f32[] = acme.cube a\n  in (b,) }"
    with pytest.raises(JaxprSyntaxError) as caught:
        parse_jaxpr(text)
    assert "pip install corejax-acme==1.0" in str(caught.value) and f"note: {words}" in str(caught.value)


def test_requirements_of_programs_in_programs_are_listed_once_each() -> None:
    lax = pytest.importorskip("corejax_lax_basic.lax")
    pytest.importorskip("corejax_control_flow")
    program = corejax.make_jaxpr(lambda x: corejax.lax.scan(lambda c, y: (lax.sin(lax.sin(c)), y), x, None, length=2))(
        np.float32(1)
    )
    lines = [line for line in program.pretty(requires=True).splitlines() if line.startswith("#")]
    versions = [corejax.extend.primitives[name].provenance.version for name in ("scan", "sin")]
    assert lines[0] == f"# requires corejax-control-flow {versions[0]}: scan"
    assert lines[1].startswith(f"# requires corejax-lax-basic {versions[1]}: ") and lines[1].split().count("sin") == 1
    assert str(parse_jaxpr(program.pretty(requires=True))) == str(program)


def test_names_that_are_no_words_are_quoted(site: Site, fresh: PluginManager) -> None:
    site.add("acme", CUBE.replace("acme.cube", "acme cube"))
    plugins.load_everything()
    text = corejax.make_jaxpr(primitives["acme cube"].bind)(X).pretty(requires=True)
    assert text.startswith("# requires corejax-acme 1.0: 'acme cube'\n")
    del primitives["acme cube"]
    with pytest.raises(JaxprSyntaxError, match=r"pip install corejax-acme==1\.0"):
        parse_jaxpr(text)
