"""The command lists, shows help and reads the cache without NumPy, however large the plugins are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corejax.messages.homes import homes
from corejax.plugins import plugin_records

HEAVY = {"jaxlib", "ml_dtypes", "numpy", "optree", "rich", "scipy"}
PROBE = f"""
import sys
from corejax.cli import main
try:
    main(sys.argv[1:], prog_name="corejax")
finally:
    if unwanted := {HEAVY} & sys.modules.keys():
        sys.exit(str(unwanted))
"""


def run(plugins: str, *arguments: str, **environment: str) -> str:
    """Run the command with some plugins, whose manifests may be good or not; it fails if it imports too much."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COREJAX_")}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        env={**clean, **environment, "COREJAX_PLUGINS": plugins},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("arguments", ["--version", "--help", "list-primitives --help", "plugins --help"])
def test_built_in_commands(arguments: str) -> None:
    assert "corejax" in run("", *arguments.split())


@pytest.mark.parametrize("command", homes("commands"))
def test_help_of_a_plugins_command(command: str) -> None:
    owners = [r.name for r in plugin_records(load=False) if r.comes_from(homes("commands")[command])]
    if not owners:
        pytest.skip("the plugin is not installed")
    assert f"corejax {command}" in run(owners[0], command, "--help")


def test_the_cache(tmp_path: Path) -> None:
    pytest.importorskip("corejax_xla_backend")
    on = {"COREJAX_COMPILATION_CACHE": "on", "COREJAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    assert f"{tmp_path}: 0 programs" in run("xla_backend", "cache", **on)
