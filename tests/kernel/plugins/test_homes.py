"""Whose a name is that is not here, and who is first where two offer the same."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from corejax.cli import main
from corejax.messages.homes import homes
from corejax.plugins import _discovery
from corejax.plugins._discovery import installed_entry_points
from corejax.plugins._plugin_manager import PluginManager
from corejax.plugins._records import name_and_version
from tests.kernel.plugin_sites import Site
from tools import write_homes


@pytest.mark.engine
def test_the_table_is_up_to_date() -> None:
    assert write_homes.FILE.read_text() == write_homes.text(), "run: make manifests"


def installed(name: str, distribution: str) -> SimpleNamespace:
    metadata = f"Name: {distribution}\nVersion: 1.0\n\nName: text\n"
    entry_points = f"[corejax.plugins]\n{name} = {name}_plugin\n"
    return SimpleNamespace(read_text={"METADATA": metadata, "entry_points.txt": entry_points}.get)


def test_the_order_of_discovery_is_not_that_of_the_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    dists = [
        installed("zebra", "corejax-zebra"),
        installed("acme", "acme"),
        installed("xla_backend", "corejax_xla_backend"),
        installed("lax_basic", "Corejax-Lax.Basic"),
    ]
    for found in (dists, dists[::-1]):
        monkeypatch.setattr(_discovery, "distributions", lambda found=found: found)
        assert [r.name for r in installed_entry_points()] == ["lax_basic", "xla_backend", "acme", "zebra"]


def test_discovery_finds_what_importlib_metadata_finds(tmp_path: Path) -> None:
    """Directories are read without importlib_metadata; it is needed as soon as a distribution is in an archive."""
    Site(tmp_path).add("acme", "")
    with zipfile.ZipFile(tmp_path / "acme.zip", "w") as archive:
        archive.writestr("zipped-2.0.dist-info/METADATA", "Name: zipped\nVersion: 2.0\n")
        archive.writestr("zipped-2.0.dist-info/entry_points.txt", "[corejax.plugins]\nzipped = zipped_plugin\n")
    program = """
        import json, sys
        from corejax.plugins._discovery import installed_entry_points
        def found():
            return [(r.name, r.value, r.distribution, r.version) for r in installed_entry_points()]
        sys.path.insert(0, sys.argv[1])
        directly, imported = found(), "importlib_metadata" in sys.modules
        sys.path.append(sys.argv[1] + "/acme.zip")
        print(json.dumps([directly, imported, found()]))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    directly, imported, through = json.loads(
        subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    )
    assert not imported and ["acme", "acme_plugin", "corejax-acme", "1.0"] in directly
    assert ["zipped", "zipped_plugin", "zipped", "2.0"] in through
    assert sorted(through) == sorted([*directly, ["zipped", "zipped_plugin", "zipped", "2.0"]])


@pytest.mark.parametrize(
    ("metadata", "known"),
    [
        ("Name: acme\nVersion: 1.0\n\nVersion: 7 of the text\n", ("acme", "1.0")),
        ("Metadata-Version: 2.1\r\nName:acme\r\nVersion:  1.0\r\n\r\n", ("acme", "1.0")),
        (None, (None, None)),
    ],
)
def test_name_and_version_of_a_distribution(metadata: str | None, known: tuple[str, str]) -> None:
    dist = SimpleNamespace(read_text={"METADATA": metadata}.get)
    assert name_and_version(dist) == known


@pytest.mark.parametrize("command", sorted(homes("commands")))
def test_commands_of_absent_plugins(command: str, site: Site, fresh: PluginManager) -> None:
    result = CliRunner().invoke(main, [command, "sin"])
    assert result.exit_code == 2
    assert f"{command!r} comes with the plugin distribution {homes('commands')[command]} (pip install" in result.output


def test_a_command_that_the_installed_version_does_not_have(site: Site, fresh: PluginManager) -> None:
    site.add("testing", "@hookimpl\ndef corejax_register_primitives(): pass", distribution="corejax-testing")
    result = CliRunner().invoke(main, ["new-plugin", "acme"])
    said = "'new-plugin' comes with corejax-testing, but the installed plugin 'testing' (corejax-testing 1.0) does not"
    assert result.exit_code == 2 and said in " ".join(result.output.split())


def test_methods_of_arrays_without_the_plugin_that_has_them(site: Site) -> None:
    program = """
        import numpy as np
        import corejax
        from corejax.extend import Array, as_array

        x = as_array(np.ones(3))
        for name in ("T", "sum", "nonsense"):
            try:
                getattr(x, name)
            except AttributeError as error:
                print(error)
        print(hasattr(x, "sum"))
    """
    said = site.run(program).stdout.splitlines()
    for line, name, home in zip(said, ("T", "sum"), ("corejax-lax-basic", "corejax-numpy"), strict=False):
        end = f"it comes with the plugin distribution {home} (pip install {home})"
        assert line == f"'Array' object has no attribute {name!r}; {end}"
    assert said[2:] == ["'Array' object has no attribute 'nonsense'", "False"]


def test_methods_of_arrays_of_a_plugin_that_is_switched_off() -> None:
    program = """
        from corejax.extend import as_array

        x = as_array(1.0) + 1
        for use in (lambda: x.sum(), lambda: round(x)):
            try:
                use()
            except Exception as error:
                print(error)
    """
    environment = {**os.environ, "COREJAX_PLUGINS": "-numpy_api"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, capture_output=True, text=True, check=True
    )
    said = done.stdout.splitlines()
    assert re.fullmatch(
        r"'Array' object has no attribute 'sum'; it is of plugin 'numpy_api' .*, which is switched off by .*", said[0]
    )
    assert re.fullmatch(
        r"no plugin provides the operator __round__ of arrays; it is of plugin 'numpy_api' .*, which is .* off by .*",
        said[1],
    )


@pytest.mark.parametrize("name", ["experimental.io_callback", "pmap", "jit"])
def test_a_function_is_no_module(name: str) -> None:
    namespace, _, last = f"corejax.{name}".rpartition(".")
    with pytest.raises(ImportError, match=rf"^'corejax.{name}' is not a module: from {namespace} import {last}$"):
        importlib.import_module(f"corejax.{name}")
