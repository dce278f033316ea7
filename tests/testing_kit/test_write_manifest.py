"""`corejax write-manifest`: what it writes, what it compares, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from corejax.cli import main
from corejax.core.primitive import primitives
from corejax.plugins._plugin_manager import PluginManager
from corejax_testing.manifests.command import write_manifest
from tests.kernel.cli.test_cli import TABLE
from tests.kernel.plugin_sites import Site
from tests.kernel.plugins.test_manifest import edit, install

Run = Callable[..., Result]


@pytest.fixture
def run(fresh: PluginManager) -> Run:
    """Runs the command itself: under `corejax` only the site's plugins are there."""
    primitives.clear()  # `fresh` puts them back

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(write_manifest, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.mark.parametrize("arguments", [["write-manifest", "a\x1b[2J"], ["new-plugin", "a\x1b[2J"]])
def test_escape_sequences_are_shown(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2 and "a\\x1b[2J" in result.output and "\x1b" not in result.output


def test_a_single_module_has_no_place_for_one(site: Site, run: Run) -> None:
    site.add("acme", "@hookimpl\ndef corejax_register_primitives(): extend.Primitive('acme.p')")
    result = run("acme")
    assert result.exit_code == 1 and "single module acme_plugin, but a manifest has to be in a package" in result.stderr


def test_check_prints_what_differs(site: Site, run: Run) -> None:
    path = install(site, editable=True)
    assert (run("--check", "toy_ops").exit_code, path.exists()) == (0, True)
    good = path.read_text()
    edit(path, settings={}, names={"toy_thrice": "corejax_toy.ops:twice"}, primitives={})
    result = run("--check", "toy_ops")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert 'toy_ops: settings toy_level: not in the manifest, the code has "1"' in lines
    assert "toy_ops: names toy_thrice: in the manifest, not in the code" in lines
    assert sum(line.startswith("toy_ops: primitives toy_ops.") for line in lines) == 3
    assert "corejax write-manifest toy_ops" in result.stderr
    assert run("toy_ops").exit_code == 0 and path.read_text() == good
    path.unlink()
    assert "there is no usable manifest" in run("--check", "toy_ops").stdout


def test_what_cannot_be_written(site: Site, run: Run) -> None:
    install(site)
    site.install("broken_ops")
    result = run("toy_ops")
    assert result.exit_code == 1 and "not installed editable" in result.stderr
    result = run("broken_ops")
    assert result.exit_code == 1 and "the plugin is failed; plugin 'broken_ops'" in result.stderr
    assert run("toy_opps").exit_code == 2
    assert run().exit_code == 2
    assert run("--check", "--output", "x", "toy_ops").exit_code == 2


def test_a_text_an_entry_to_a_line(site: Site) -> None:
    lines = install(site).read_text().splitlines()
    [scale] = [line for line in lines if '"toy_ops.scale": {' in line]
    assert json.loads("{" + scale.strip().rstrip(",") + "}")["toy_ops.scale"] == {
        "module": "corejax_toy.ops",
        "linear_in": [0],
        "tags": ["elementwise"],
        "rules": {kind: ["*"] for kind in [*TABLE.split()[2:7], "xla_translation", "toy_cost"]},
    }
    assert any('"toy_ops.bare"' in line and '"xla_translation": ["cuda"]' in line for line in lines)
    assert any('"toy-hello": "Greet."' in line for line in lines)
    assert any('"toy_cost": {"title": "cost rule", "required": false}' in line for line in lines)
