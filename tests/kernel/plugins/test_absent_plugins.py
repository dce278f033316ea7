"""What is said of a plugin that failed, is off or is not there, wherever its name turns up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from corejax.cli import main
from corejax.plugins.manifest import FILE
from tests.kernel.plugin_sites import ONLY_THE_SITE, Site

FINE = """
    @hookimpl
    def corejax_register_primitives():
        import acme_plugin.rules

    @hookimpl
    def corejax_export_namespaces():
        return {"acme": "acme_plugin.rules"}
"""
RULES = """
    from corejax.extend import Primitive
    f_p = Primitive("acme.f", impl=lambda x: x, abstract_eval=lambda x: x)
    f = f_p.bind
"""
OLD = "\n@hookimpl\ndef corejax_declare_api_version():\n    return 0\n"
TEXT = "{ lambda ; a:f32[]. let b:f32[] = acme.f a in (b,) }"
ASKING = {
    "import from": "from corejax.acme import f",
    "import": "import corejax.acme",
    "from facade": "from corejax import acme",
    "attribute": "import corejax; corejax.acme.f",
    "program": f"from corejax_explain.program_text import parse_jaxpr; parse_jaxpr('{TEXT}')",
    "pickle": "from corejax.core.primitive import _by_name; _by_name('acme.f', 'corejax-acme', '1.0')",
}


def ask(site: Path, *statements: str, **environment: str) -> list[str]:
    """What each raises, in one process."""
    program = f"""{ONLY_THE_SITE.format(site=os.fspath(site))}
for statement in {statements!r}:
    try:
        exec(statement)
    except BaseException as error:
        print(type(error).__name__, error, end="\\0")
"""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COREJAX")}
    environment = {**clean, **environment, "PYTHONPATH": os.pathsep.join([os.fspath(site), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize("manifest", [True, False], ids=["with manifest", "without"])
@pytest.mark.parametrize("state", ["off", "failed", "old"])
def test_every_way_to_ask_for_it_says_what_became_of_it(state: str, manifest: bool, tmp_path: Path) -> None:
    pytest.importorskip("corejax_explain")
    Site(tmp_path).add_package("acme", plugin=FINE, rules=RULES)
    source = tmp_path / "acme_plugin" / "plugin.py"
    if manifest:
        pytest.importorskip("corejax_testing")
        to = os.fspath(tmp_path / "acme_plugin" / FILE)
        arguments = ["acme", "--output", to]
        (said,) = ask(
            tmp_path, f"from corejax_testing.manifests.command import write_manifest; write_manifest({arguments!r})"
        )
        assert "SystemExit 0" in said, said
    if state == "failed":
        source.write_text("raise ValueError('broken')")
    if state == "old":
        source.write_text(source.read_text() + OLD)
    words = {"off": "COREJAX_PLUGINS=-acme", "failed": "ValueError: broken", "old": "upgrade the plugin"}[state]
    answers = ask(tmp_path, *ASKING.values(), **({"COREJAX_PLUGINS": "-acme"} if state == "off" else {}))
    for name, said in zip(ASKING, answers, strict=True):
        assert "'acme' (corejax-acme 1.0)" in said and words in said, (name, said)
        assert "did you mean" not in said and "pip install" not in said, (name, said)


def test_programs_name_the_distribution_to_install(tmp_path: Path) -> None:
    pytest.importorskip("corejax_explain")
    homes = {"scan": "corejax-control-flow", "xla_call": "corejax-xla-backend", "sin": "corejax-lax-basic"}
    programs = [ASKING["program"].replace("acme.f", name) for name in homes]
    *known, unknown = ask(tmp_path, *programs, ASKING["program"])
    for said, home in zip(known, homes.values(), strict=True):
        assert said.startswith("JaxprSyntaxError line 1")
        assert f"it comes with the plugin distribution {home} (pip install {home})" in said
    assert "corejax-acme perhaps?" in unknown


def test_the_parser_and_the_command_show_are_a_plugins(tmp_path: Path) -> None:
    said, usage = ask(
        tmp_path,
        "from corejax.extend.programs import parse_jaxpr; parse_jaxpr('{ lambda ; . let in () }')",
        "from corejax.cli import main; main(['show', 'sin'], standalone_mode=False)",
    )
    assert said.startswith("PluginMissingError") and usage.startswith("UsageError")
    for text in (said, usage):
        assert "comes with the plugin distribution corejax-explain (pip install corejax-explain)" in text


def test_the_command_takes_distributions_names() -> None:
    pytest.importorskip("corejax_lax_basic")
    pytest.importorskip("corejax_explain")
    listing = ["list-primitives", "--plugin", "Corejax_Lax.Basic"]
    for arguments in (["plugins", "corejax-lax-basic"], listing, ["show", "corejax-lax-basic"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0 and "lax_basic" in result.output, result.output
    assert CliRunner().invoke(main, ["plugins", "corejax-acme"]).exit_code == 2
    pytest.importorskip("corejax_testing")
    result = CliRunner().invoke(main, ["write-manifest", "--check", "corejax-acme"])
    assert result.exit_code == 2 and "there is no plugin named 'corejax-acme'" in result.output
    result = CliRunner().invoke(main, ["verify", "corejax-lax-basic", "--check", "params", "--quick", "--json"])
    assert result.exit_code == 0 and '"neg"' in result.output
