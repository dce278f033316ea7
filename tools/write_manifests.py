"""Write the manifests and stubs of all plugins of this repository: `python -m tools.write_manifests`.

They are not in git, for the code says the same.
The plugins under plugins/ are described together, each example plugin beside these alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from importlib.util import find_spec
from pathlib import Path

from tests.examples.from_source import EXAMPLES, environment

ROOT = Path(__file__).resolve().parents[1]
CLI = [sys.executable, "-m", "corejax"]


def plugin_names() -> list[str]:
    """Return the entry points of the distributions under plugins/ that are installed."""
    projects = [tomllib.loads(file.read_text())["project"] for file in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
    points = [point for project in projects for point in project["entry-points"]["corejax.plugins"].items()]
    return [name for name, module in points if find_spec(module.partition(".")[0]) is not None]


def main() -> None:
    """Write `corejax_manifest.json` and `stubs/` into each package, the examples' manifests in parallel."""
    own = {name: value for name, value in os.environ.items() if name != "COREJAX_PLUGINS"}
    for command in ("write-manifest", "write-stubs"):
        subprocess.run([*CLI, command, *plugin_names()], stdout=subprocess.DEVNULL, env=own, check=True)
    with tempfile.TemporaryDirectory() as site:
        started = []
        for project in EXAMPLES:
            (package,) = (path.parent for path in (project / "src").glob("*/__init__.py"))
            command = [*CLI, "write-manifest", project.name, "--output", str(package / "corejax_manifest.json")]
            sees = environment([project], Path(site) / project.name)
            started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, env=sees))
        statuses = [process.wait() for process in started]
        if any(statuses):
            sys.exit("the manifest of an example could not be written")


if __name__ == "__main__":
    main()
