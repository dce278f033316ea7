"""The distributions under examples/plugins as if they were installed, without building or installing anything.

An installed distribution is a directory on the path and a `.dist-info` beside it, which names the entry points.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUICK = "COREJAX_DISABLE_MOST_OPTIMIZATIONS"  # as tests/conftest.py says
EXAMPLES = sorted(file.parent for file in (ROOT / "examples" / "plugins").glob("*/pyproject.toml"))


def write_metadata(project: Path, site: Path) -> None:
    """Write what an installer would into `site`: METADATA and entry points of a project."""
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    name, version = declared["name"], declared["version"]
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    needed = [f"Requires-Dist: {requirement}" for requirement in declared.get("dependencies", ())]
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *needed]
    (info / "METADATA").write_text("\n".join([*lines, ""]))
    groups = declared.get("entry-points", {})
    text = [line for group, entries in groups.items() for line in [f"[{group}]", *_entries(entries), ""]]
    (info / "entry_points.txt").write_text("\n".join(text))


def _entries(entries: Mapping[str, str]) -> list[str]:
    return [f"{name} = {target}" for name, target in entries.items()]


def environment(projects: Iterable[Path], site: Path) -> dict[str, str]:
    """Environment variables for a process that is to see the projects as installed."""
    projects = list(projects)
    for project in projects:
        write_metadata(project, site)
    path = [str(site), *(str(project / "src") for project in projects)]
    inherited = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COREJAX_") or name == QUICK}
    return {**kept, "PYTHONPATH": os.pathsep.join([*path, *inherited]), "PYTHONDONTWRITEBYTECODE": "1"}


if __name__ == "__main__":  # python tests/examples/from_source.py DIRECTORY: what to export in a shell
    print(f"export PYTHONPATH={environment(EXAMPLES, Path(sys.argv[1]))['PYTHONPATH']}")
