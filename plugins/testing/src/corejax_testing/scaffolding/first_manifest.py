"""Write the manifest of a new distribution, which is not installed yet."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from corejax.extend.plugins import manifest
from corejax_testing.scaffolding.names import Plan

VERSION = "0.1.0"  # as in the template of pyproject.toml
_SECONDS = 120


def write_manifest(plan: Plan, target: Path) -> Path:
    """Write the plugin's manifest to its package.

    Another Python process imports the plugin from its sources, with temporary metadata as an installation has it.

    Args:
        plan: the names of the distribution.
        target: the distribution's directory.

    Returns:
        The path of the manifest.

    Raises:
        ValueError: the plugin cannot be loaded; the message is the last line of the other process's errors.
    """
    source = target.resolve() / "src"
    path = source / plan.package / manifest.FILE
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COREJAX")}
    clean["PYTHONDONTWRITEBYTECODE"] = "1"
    with tempfile.TemporaryDirectory() as directory:
        metadata = Path(directory) / f"{plan.package}-{VERSION}.dist-info"
        metadata.mkdir()
        entry = f"[corejax.plugins]\n{plan.plugin} = {plan.package}.plugin\n"
        (metadata / "entry_points.txt").write_text(entry, encoding="utf-8")
        described = f"Metadata-Version: 2.1\nName: {plan.distribution}\nVersion: {VERSION}\n"
        (metadata / "METADATA").write_text(described, encoding="utf-8")
        search = [directory, os.fspath(source), *(entry for entry in sys.path if entry)]
        command = [sys.executable, "-m", "corejax", "write-manifest", plan.plugin, "--output", os.fspath(path)]
        done = subprocess.run(
            command, cwd=directory, env={**clean, "PYTHONPATH": os.pathsep.join(search)},
            capture_output=True, encoding="utf-8", errors="replace", timeout=_SECONDS, check=False,
        )  # fmt: skip
    if done.returncode or not path.exists():
        errors = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit status {done.returncode}"]
        raise ValueError(errors[-1].removeprefix("Error: "))
    return target / "src" / plan.package / manifest.FILE
