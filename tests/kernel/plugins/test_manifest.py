"""Manifests: found and read without importing the plugin, used only where they are of its code, as good as loading."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import corejax
from corejax import plugins
from corejax.cli import main
from corejax.cli.primitive_table import primitive_table
from corejax.core.primitive import primitives
from corejax.errors import PluginMissingError
from corejax.plugins import manifest
from corejax.plugins._plugin_manager import PluginManager
from corejax.plugins.manifest import FILE
from corejax.rules import registries
from corejax.settings.config import config
from tests.kernel.cli.test_cli import TABLE
from tests.kernel.plugin_sites import DISTRIBUTIONS, Site

pytest.importorskip("corejax_testing")  # it writes them

Run = Callable[..., Result]

# A program that writes a manifest, with the arguments that it was given; `corejax` itself sees the site's plugins only.
WRITE = "from corejax_testing.manifests.command import write_manifest; write_manifest()"


@pytest.fixture
def run(fresh: PluginManager) -> Run:
    primitives.clear()  # `fresh` puts them back

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(main, arguments, prog_name="corejax")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


_written: list[str] = []


def install(site: Site, *, editable: bool = False) -> Path:
    """A copy of toy_ops on the site, with its manifest; gives the manifest's file."""
    shutil.copytree(DISTRIBUTIONS / "toy_ops" / "src" / "corejax_toy", site.path / "corejax_toy")
    site.packages.add("corejax_toy")
    site._describe("corejax-toy-ops", "1.2.3", {"toy_ops": "corejax_toy.plugin"})
    if editable:
        info = site.path / "corejax_toy_ops-1.2.3.dist-info"
        (info / "direct_url.json").write_text('{"url": "file:///somewhere", "dir_info": {"editable": true}}')
    path = site.path / "corejax_toy" / FILE
    if not _written:  # by a process of its own, once
        done = site.run(WRITE, "toy_ops", "--output", str(path))
        assert (done.stderr, done.returncode) == ("", 0)
        _written.append(path.read_text())
    path.write_text(_written[0])
    return path


def edit(path: Path, **changes: Any) -> None:
    data = json.loads(path.read_text())
    data["plugins"]["toy_ops"].update(changes)
    path.write_text(json.dumps(data))


def manifest_word(run: Run) -> tuple[str, str]:
    """Status and manifest of toy_ops, as `corejax plugins` says."""
    [entry] = [e for e in json.loads(run("plugins", "--json").stdout)["plugins"] if e["name"] == "toy_ops"]
    return entry["status"], entry["manifest"]


# -- what is listed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("editable", [False, True])
def test_the_table_is_the_same_and_nothing_is_imported(editable: bool, site: Site, run: Run) -> None:
    install(site, editable=editable)
    assert run("list-primitives").stdout == TABLE
    assert not any(name.startswith("corejax_toy") for name in sys.modules) and not primitives
    with config.override(strict_rules=True):
        strict = run("list-primitives").stdout
    assert not primitives and strict != TABLE
    assert run("list-primitives", "--rule", "toy_cost").stdout.splitlines()[1].startswith("toy_ops.scale")
    assert run("list-primitives", "--plugin", "toy_ops").exit_code == 0 and not primitives
    assert run("list-primitives", "--missing", "jvp").exit_code == 1
    assert "toy_ops.scale" in primitives, "--missing looks at the code"
    assert run("list-primitives").stdout == TABLE
    with config.override(strict_rules=True):
        assert run("list-primitives").stdout == strict


def test_rows_from_the_manifest_are_those_of_the_code(site: Site, run: Run) -> None:
    install(site)
    promised, found = primitive_table(), primitive_table(load=True)
    assert (promised.loaded, found.loaded) == (False, True)
    assert (promised.kinds, promised.overrides) == (found.kinds, found.overrides)
    for one, other in zip(promised.rows, found.rows, strict=True):
        assert (one.name, one.plugin, one.version, one.module) == (
            other.name,
            other.plugin,
            other.version,
            other.module,
        )
        assert {k: (c.status, c.derivation) for k, c in one.rules.items()} == {
            k: (c.status, c.derivation) for k, c in other.rules.items()
        }


def test_the_other_commands_import_nothing_either(site: Site, run: Run) -> None:
    install(site)
    text = run("plugins").stdout
    assert "toy_ops  corejax-toy-ops  1.2.3    found   good      3\n" in text and "corejax plugins --load" in text
    assert "toy-hello" in run("--help").stdout and "Greet." in run("--help").stdout
    assert run("no-such").exit_code == 2
    assert not any(name.startswith("corejax_toy") for name in sys.modules)
    assert run("toy-hello").stdout == "hello from toy_ops\n"
    assert "loaded  good" in run("plugins").stdout and "toy-hello" in run("--help").stdout
    assert run("plugins", "--load", "--no-load").exit_code == 2


def test_missing_names_import_nothing(site: Site, fresh: PluginManager) -> None:
    install(site)
    with pytest.raises(AttributeError, match=r"'toy_twise'; did you mean 'toy_twice'\?"):
        corejax.toy_twise  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'corejax.nothing'"):
        __import__("corejax.nothing")
    assert not hasattr(corejax, "jit") and {"toy", "toy_twice"} <= set(dir(corejax))
    assert not any(name.startswith("corejax_toy") for name in sys.modules)
    assert fresh.records["toy_ops"].status == "found"
    assert corejax.toy.twice is corejax.toy_twice
    assert fresh.records["toy_ops"].status == "loaded"


def test_name_of_a_plugin_that_is_off_is_known(
    site: Site, fresh: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site)
    monkeypatch.setenv("COREJAX_PLUGINS", "-toy_ops")
    with pytest.raises(PluginMissingError, match=r"plugin 'toy_ops' .* switched off by COREJAX_PLUGINS=-toy_ops"):
        corejax.toy_twice  # noqa: B018
    assert fresh.records["toy_ops"].status == "off"


# -- manifests that are not used -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda path: path.unlink(), "none"),
        (lambda path: path.write_text('{"manifest_version": 1, "plugins": {}}'), "none"),
        (lambda path: path.write_text('{"manifest_version": 2, "plugins": {}}'), "unknown"),
        (lambda path: path.write_text("{"), "malformed"),
        (lambda path: path.write_text("[]"), "malformed"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "malformed"),
        (lambda path: edit(path, version="1.2.2"), "stale"),
        (lambda path: edit(path, distribution="other"), "stale"),
        (lambda path: edit(path, api_version=2), "stale"),
        (lambda path: edit(path, names=["toy_twice"]), "malformed"),
        (lambda path: edit(path, surprise=1), "malformed"),
        (lambda path: edit(path, primitives={"p": {"rule": []}}), "malformed"),
    ],
)
def test_a_manifest_that_is_not_good_is_not_used(
    spoil: Callable[[Path], None], word: str, site: Site, run: Run
) -> None:
    spoil(install(site))
    assert run("list-primitives").stdout == TABLE
    assert manifest_word(run) == ("loaded", word)
    if word != "none":
        assert f"# toy_ops: manifest {word}: " in run("plugins").stdout


@pytest.mark.parametrize(("editable", "word"), [(True, "stale"), (False, "good")])
def test_edited_sources_make_the_manifest_of_an_editable_install_stale(
    editable: bool, word: str, site: Site, run: Run
) -> None:
    path = install(site, editable=editable)
    ops = path.parent / "ops.py"
    ops.write_text(ops.read_text().replace("\n", "\r\n"))
    assert plugins.manager().manifest(plugins.manager().discover()["toy_ops"]).word == "good", "line ends are no edit"
    ops.write_text(ops.read_text() + "\nnew_p = Primitive('toy_ops.new', impl=np.sin)\n")
    plugins.manager()._manifests.clear()
    found = plugins.manager().manifest(plugins.manager().discover()["toy_ops"])
    assert found.word == word
    if editable:
        assert "toy_ops.new" in run("list-primitives").stdout


def test_a_failing_plugin_with_a_good_manifest_fails_when_it_is_loaded(site: Site, run: Run) -> None:
    path = install(site)
    (path.parent / "plugin.py").write_text("raise ImportError('no libtoy')")
    assert run("list-primitives").stdout == TABLE
    result = run("plugins", "--load")
    assert result.exit_code == 1 and "# toy_ops: ImportError: no libtoy" in result.stdout


# -- several plugins -------------------------------------------------------------------------------------------------

ACME = """
from corejax import extend
from corejax.extend import hookimpl
@hookimpl
def corejax_register_primitives():
"""


def add_acme(site: Site, body: str) -> None:
    """A second plugin in a package, with its manifest written while toy_ops is there."""
    package = site.path / "corejax_acme"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "plugin.py").write_text(ACME + f"    {body}\n")
    site.packages.add("corejax_acme")
    site._describe("corejax-acme", "1.0", {"acme": "corejax_acme.plugin"})
    done = site.run(WRITE, "acme", "--output", str(package / FILE))
    assert done.returncode == 0, done.stderr


LATE = "import corejax_toy.ops; {}"


@pytest.mark.parametrize(
    ("body", "loads"),
    [
        ("extend.Primitive('acme.p', impl=abs)", False),
        (LATE.format("extend.registries['toy_cost'].register(extend.primitives['toy_ops.twice'], abs)"), False),
        (LATE.format("extend.xla_translations.register(extend.primitives['toy_ops.bare'], abs)"), True),
        (LATE.format("extend.jvp_rules.register(extend.primitives['toy_ops.scale'], abs, override=True)"), True),
        ("extend.vmap_rules.derivations.append(extend.Derivation('acme', lambda p: abs))", True),
        ("extend.RuleRegistry('acme_kind', 'acme rule', '')", False),
    ],
)
def test_what_a_second_plugin_does_to_the_first_ones_primitives(body: str, loads: bool, site: Site, run: Run) -> None:
    install(site)
    add_acme(site, body)
    promised = primitive_table()
    assert promised.loaded is loads, "loaded where toy_ops's manifest does not know what acme does"
    listed = run("list-primitives").stdout
    found = primitive_table(load=True)
    assert promised.kinds == found.kinds and [str(o) for o in promised.overrides] == [str(o) for o in found.overrides]
    assert run("list-primitives").stdout == listed


def test_manifests_that_know_of_each_other_are_used(site: Site, run: Run) -> None:
    """Written while both are installed, and read while one of them is off."""
    path = install(site)
    add_acme(site, LATE.format("extend.impl_rules.register(extend.primitives['toy_ops.scale'], abs, override=True)"))
    done = site.run(WRITE, "toy_ops", "--output", str(path))
    assert done.returncode == 0, done.stderr
    assert primitive_table().loaded is False
    listed = run("list-primitives").stdout
    assert "# replaced on purpose: toy_ops.scale impl by acme\n" in listed
    assert primitive_table(load=True).loaded and run("list-primitives").stdout == listed


def test_a_name_that_two_plugins_have_is_found_out_by_loading(site: Site, run: Run, fresh: PluginManager) -> None:
    install(site)
    add_acme(site, "extend.Primitive('acme.scale')")
    text = (site.path / "corejax_acme" / FILE).read_text()
    (site.path / "corejax_acme" / FILE).write_text(text.replace("acme.scale", "toy_ops.scale"))
    plugin = site.path / "corejax_acme" / "plugin.py"
    plugin.write_text(plugin.read_text().replace("acme.scale", "toy_ops.scale"))
    result = run("list-primitives")
    assert fresh.records["toy_ops"].status == "loaded"
    assert "plugin acme 1.0" in result.stderr or "plugin 'acme' (corejax-acme 1.0) failed" in result.stderr


def test_backends_are_listed_without_importing_anything(site: Site, run: Run) -> None:
    add_acme(
        site,
        """pass

@hookimpl
def corejax_provide_backends():
    return {"acme": "acme_no_such_module:BACKEND"}""",
    )
    (entry,) = json.loads(run("plugins", "--json").stdout)["plugins"]
    assert (entry["status"], entry["manifest"], entry["backends"]) == ("found", "good", ["acme"])
    assert "# acme: backends acme\n" in run("plugins").stdout
    (entry,) = json.loads(run("plugins", "--json", "--load").stdout)["plugins"]
    assert (entry["status"], entry["backends"], entry["causes"]) == ("loaded", ["acme"], [])


def test_two_plugins_in_one_package(site: Site, run: Run) -> None:
    package = site.path / "corejax_two"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name in ("one", "other"):
        (package / f"{name}.py").write_text(ACME + f"    extend.Primitive('{name}.p')\n")
    site.packages.add("corejax_two")
    site._describe("corejax-two", "1.0", {name: f"corejax_two.{name}" for name in ("one", "other")})
    for name in ("one", "other"):
        assert site.run(WRITE, name, "--output", str(package / FILE)).returncode == 0
    assert sorted(json.loads((package / FILE).read_text())["plugins"]) == ["one", "other"]
    assert primitive_table().loaded is False


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("list-primitives", "toy_ops.twice  toy_ops  d     d"),
        ("list-primitives --rule jvp --plugin corejax-toy-ops", "toy_ops.twice  toy_ops  d     d"),
        ("list-primitives --help", "Exit codes"),
        ("plugins", "corejax-toy-ops  1.2.3    found   good      3"),
        ("plugins --json", '"manifest": "good"'),
        ("--help", "list-primitives"),
        ("--version", "corejax"),
    ],
)
def test_the_command_reads_it_without_numpy(arguments: str, text: str, site: Site) -> None:
    install(site)
    done = site.run(
        """
        import sys
        from corejax.cli import main
        main(sys.argv[1:], standalone_mode=False)
        unwanted = {"corejax_toy", "jaxlib", "ml_dtypes", "numpy", "optree", "rich"} & sys.modules.keys()
        assert not unwanted, unwanted
        """,
        *arguments.split(),
    )
    assert text in done.stdout and done.stderr == ""


# -- where it is looked for ------------------------------------------------------------------------------------------


def test_inside_a_namespace_package_and_without_running_any_of_it(site: Site, run: Run) -> None:
    inner = site.path / "acme_space" / "corejax_thing"
    inner.mkdir(parents=True)
    (inner / "__init__.py").write_text("raise AssertionError('imported')")
    (inner / "plugin.py").write_text("")
    site._describe("acme-thing", "1.0", {"thing": "acme_space.corejax_thing.plugin"})
    record = plugins.manager().discover()["thing"]
    empty = {"plugin": "thing", "distribution": "acme-thing", "version": "1.0", "api_version": 1, "sources": ""}
    known = [[kind, name, None] for kind, registry in registries.items() for name in registry.derived_by]
    data = {**empty, "primitives": {"thing.p": {"module": "m"}}, "derivations_known": known}
    (inner / FILE).write_text(json.dumps({"manifest_version": 1, "plugins": {"thing": data}}))
    assert manifest.find(record, 1).word == "good"
    assert "thing.p    thing" in run("list-primitives").stdout
    assert not any(name.startswith("acme_space") for name in sys.modules)


def test_a_package_that_is_not_there(site: Site, run: Run) -> None:
    site._describe("corejax-gone", "1.0", {"gone": "corejax_gone.plugin"})
    assert manifest.find(plugins.manager().discover()["gone"], 1).problem == "none"
    assert run("plugins").exit_code == 1
