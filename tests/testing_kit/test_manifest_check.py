"""The check of manifests, on its own and in `corejax verify`; and the first-party plugins' manifests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import corejax
from corejax.cli import main
from corejax_testing.manifests import check as manifests
from corejax_testing.manifests.files import manifest_differences

ROOT = Path(__file__).parents[2]
FIRST_PARTY = sorted(
    name
    for path in (ROOT / "plugins").glob("*/pyproject.toml")
    for name in tomllib.loads(path.read_text())["project"].get("entry-points", {}).get("corejax.plugins", {})
)
INSTALLED = {record.name for record in corejax.plugins.plugins() if record.status == "loaded"}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


@pytest.mark.parametrize("plugin", FIRST_PARTY)
def test_first_party_manifests_say_what_the_code_does(plugin: str) -> None:
    if plugin not in INSTALLED:
        pytest.skip(f"{plugin} is not installed")
    assert manifest_differences(plugin) == [], "run: make manifests"


def test_first_party_manifests_ship() -> None:
    """Manifests are not in git: `make .venv/.stamp-test` and `make manifests` write them."""
    for path in (ROOT / "plugins").glob("*/pyproject.toml"):
        project = tomllib.loads(path.read_text())
        [(package, files)] = project["tool"]["setuptools"]["package-data"].items()
        assert "corejax_manifest.json" in files, path
        assert (path.parent / "src" / package / "corejax_manifest.json").exists(), "run: make manifests"


def test_listing_is_the_same_with_manifests_and_without() -> None:
    """In processes of their own: this one has loaded the plugins."""
    program = (
        "import sys\nfrom corejax.cli import main\nfrom corejax.cli.primitive_table import primitive_table\n"
        "found = primitive_table(load={})\n"
        "print(found.kinds, *([r.name, r.owner, r.version, r.module, "
        "[(k, c.status, c.derivation) for k, c in r.rules.items()]] for r in found.rows), *found.overrides, sep='\\n')"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", program.format(load)], capture_output=True, text=True, check=True).stdout
        for load in (False, True)
    }
    assert len(outputs) == 1 and "lax_basic" in outputs.pop()


def test_verify_checks_the_manifest_of_a_plugin() -> None:
    done = run("lax_basic", "--check", "manifest")
    assert (done.exit_code, done.output) == (0, "✓ lax_basic: manifest\n")
    described = json.loads(run("lax_basic", "--check", "manifest", "--json").output)
    assert described["totals"] == {"passed": 1} and described["results"][0]["check"] == "manifest"
    assert run("sin", "--check", "manifest").output == "", "a primitive has none"
    assert re.search(r"manifest +Check that the plugin's manifest agrees", run("--list-checks").output)


def test_difference_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        manifests, "manifest_differences", lambda plugin: ["settings a: in the manifest, not in the code"]
    )
    done = run("lax_basic", "--check", "manifest")
    assert done.exit_code == 1
    assert "✗ lax_basic: manifest: the manifest and the code differ; to update the manifest: corejax" in done.output
    assert "  settings a: in the manifest, not in the code" in done.output


def test_no_manifest_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "manifest_differences", lambda plugin: None)
    done = run("lax_basic", "--check", "manifest")
    assert done.exit_code == 0 and "corejax write-manifest lax_basic" in done.output


def test_plugin_that_cannot_be_described(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(plugin: str) -> None:
        raise ValueError("the plugin is failed; no libacme")

    monkeypatch.setattr(manifests, "manifest_differences", refuse)
    assert manifests.verify_manifest("lax_basic").message == "the plugin is failed; no libacme"
    assert run("lax_basic", "--check", "manifest").exit_code == 1
