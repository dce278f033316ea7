"""Whose a name is that is not here, and who is first where two offer the same."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import importlib_metadata
import pytest
from click.testing import CliRunner

from corejax.cli import main
from corejax.homes import homes
from corejax.plugins._discovery import installed_entry_points
from corejax.plugins._plugin_manager import PluginManager
from corejax.plugins._records import PluginRecord
from tests.kernel.plugin_sites import Site
from tools import write_homes


def test_the_table_is_up_to_date() -> None:
    assert write_homes.FILE.read_text() == write_homes.text(), "run: make manifests"


def entry(name: str, distribution: str) -> SimpleNamespace:
    dist = SimpleNamespace(read_text={"METADATA": f"Name: {distribution}\nVersion: 1.0\n\nName: text\n"}.get)
    return SimpleNamespace(name=name, value=f"{name}_plugin", group="corejax.plugins", dist=dist)


def test_the_order_of_discovery_is_not_that_of_the_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        entry("zebra", "corejax-zebra"),
        entry("acme", "acme"),
        entry("xla_backend", "corejax_xla_backend"),
        entry("lax_basic", "Corejax-Lax.Basic"),
    ]
    for found in (entries, entries[::-1]):
        monkeypatch.setattr(importlib_metadata, "entry_points", lambda group, found=found: found)
        assert [r.name for r in installed_entry_points()] == ["lax_basic", "xla_backend", "acme", "zebra"]


@pytest.mark.parametrize(
    ("metadata", "known"),
    [
        ("Name: acme\nVersion: 1.0\n\nVersion: 7 of the text\n", ("acme", "1.0")),
        ("Metadata-Version: 2.1\r\nName:acme\r\nVersion:  1.0\r\n\r\n", ("acme", "1.0")),
        (None, ("egg", "2.0")),  # an egg-info directory, say
    ],
)
def test_name_and_version_of_a_distribution(metadata: str | None, known: tuple[str, str]) -> None:
    dist = SimpleNamespace(read_text={"METADATA": metadata}.get, name="egg", version="2.0")
    record = PluginRecord.of_entry_point(SimpleNamespace(name="acme", value="acme_plugin", dist=dist))
    assert (record.distribution, record.version) == known


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
        for name in ("sum", "nonsense"):
            try:
                getattr(x, name)
            except AttributeError as error:
                print(error)
        print(hasattr(x, "sum"))
    """
    said = site.run(program).stdout.splitlines()
    assert "pip install corejax-lax-basic" in said[0] and "'sum'" in said[0]
    assert said[1:] == ["'Array' object has no attribute 'nonsense'", "False"]


@pytest.mark.parametrize("name", ["experimental.io_callback", "pmap", "jit"])
def test_a_function_is_no_module(name: str) -> None:
    namespace, _, last = f"corejax.{name}".rpartition(".")
    with pytest.raises(ImportError, match=rf"^'corejax.{name}' is no module: from {namespace} import {last}$"):
        importlib.import_module(f"corejax.{name}")
