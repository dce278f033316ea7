"""`corejax show`: a primitive's doc, its signature, and where each of its rules is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from corejax import plugins
from corejax.cli import main
from corejax.cli.group import CommandLine
from corejax.core.primitive import Primitive, primitives
from corejax.plugins._plugin_manager import PluginManager
from corejax.rules import impl_rules, jvp_rules
from corejax_explain.show import clean_doc, show
from tests.kernel.cli.test_cli_streams import CONTROLS, SLY
from tests.kernel.plugin_sites import Site, fresh, site  # noqa: F401  # fixtures

Run = Callable[..., Result]


@pytest.fixture
def run(site: Site, fresh: PluginManager) -> Run:  # noqa: F811
    """Runs the command in this process, with the site's plugins only."""
    primitives.clear()  # `fresh` puts them back
    command = CommandLine("corejax", commands={"show": show})
    return lambda *arguments: CliRunner().invoke(command, ["show", *arguments])


@pytest.fixture
def toy(site: Site, run: Run) -> Run:  # noqa: F811
    """The command, with the plugin of tests/distributions/toy_ops."""
    site.install("toy_ops")
    return run


def test_it_is_a_command_of_corejax() -> None:
    assert "Show one primitive" in CliRunner().invoke(main, ["show", "--help"]).output


def test_show(site: Site, toy: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    plugins.load_everything()
    jvp_rules.register(primitives["toy_ops.scale"], lambda primals, tangents, *, factor: None, override=True)
    monkeypatch.chdir(site.path)
    lines = toy("toy_ops.scale").stdout.splitlines()
    assert lines[0] == "toy_ops.scale  (plugin toy_ops 1.2.3)"
    assert "  factor * x, elementwise, in the dtype of x." in lines
    assert "  signature    toy_ops.scale(x, *, factor)" in lines
    assert "  linear in    operand 0" in lines and "  tags         elementwise" in lines
    rows = {line.split()[0]: line.split() for line in lines[lines.index("  rules") + 1 :] if line}
    assert rows["vmap"][1:5] == ["own", "plugin", "toy_ops", "1.2.3"]
    assert rows["vmap"][5].startswith("corejax_toy/ops.py:")
    assert rows["jvp"][1:4] == ["own", "module", __name__]
    assert rows["overrides"][1:4] == ["plugin", "toy_ops", "1.2.3"]
    assert rows["partial_eval"][1:] == ["not", "required"]


def test_show_derived_missing_and_platform_rules(toy: Run) -> None:
    twice = toy("toy_ops.twice").stdout
    assert "\n  2 x.\n" in twice and "signature    toy_ops.twice(x)" in twice and "decomposed" in twice
    assert "derived       by decomposition" in " ".join(twice.split("  jvp")[1].split("\n")[0:1])
    assert "@xla_translations.register(toy_ops_twice_p)\n    def toy_ops_twice_translation(" in twice
    bare = toy("toy_ops.bare").stdout
    assert "on cuda" in bare and "results      a list" in bare and "effects      print" in bare
    assert "signature    toy_ops.bare(x)" in bare


def test_show_as_json(toy: Run) -> None:
    found = json.loads(toy("toy_ops.bare", "--json").stdout)
    assert (found["format"], found["version"]) == ("corejax-show", 1)
    assert found["rules"]["xla_translation"]["status"] == "platform"
    assert Path(found["rules"]["xla_translation"]["platforms"]["cuda"]["file"]).name == "translations.py"
    assert found["rules"]["impl"]["rule"]["plugin"] == "toy_ops", "np.negative is the plugin's rule"
    assert found["multiple_results"] and found["effects"] == ["print"]


def test_flags_that_are_functions_are_shown_by_name(toy: Run) -> None:
    p = Primitive("mine")
    impl_rules.register(p, np.negative, prepared=lambda avals: None)
    for arguments in (("mine",), ("mine", "--json")):
        shown = toy(*arguments).stdout
        assert f"{__name__}.test_flags_that_are_functions_are_shown_by_name" in "".join(shown.split())
        assert " at 0x" not in shown


def test_show_an_unknown_primitive(toy: Run) -> None:
    result = toy("toy_ops.twoce")
    assert result.exit_code == 2 and result.stdout == ""
    assert "there is no plugin and no primitive named 'toy_ops.twoce'; did you mean 'toy_ops.twice'?" in result.stderr
    assert "there is no plugin and no primitive named 'twice'; did you mean 'toy_ops.twice'?" in toy("twice").stderr


def test_numpy_docstrings_are_cut_to_their_summary() -> None:
    assert clean_doc(np.sin.__doc__ or "") == "Trigonometric sine, element-wise."
    assert clean_doc("  One.\n\n  Two.\n  ") == "One.\n\nTwo."


# -- what plugins call themselves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["acme.p", "acme.x\x1b[2J", "\x1b[2J"])
def test_escape_sequences_are_shown(name: str, site: Site, run: Run) -> None:  # noqa: F811
    site.add("acme", SLY)
    result = run(name)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.output and not any(c in result.output for c in CONTROLS), result.output


def test_json_is_json(site: Site, run: Run) -> None:  # noqa: F811
    site.add("acme", SLY)
    result = run("acme.p", "--json")
    assert not any(c in result.stdout for c in CONTROLS)
    assert "\x1b[2J" in json.loads(result.stdout)["doc"]
