"""Write the manifests of the example plugins, from their sources, each beside the first-party plugins alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.examples.from_source import EXAMPLES, environment


def main() -> None:
    """Write `corejax_manifest.json` into each example's package."""
    for project in EXAMPLES:
        (package,) = (path.parent for path in (project / "src").glob("*/__init__.py"))
        command = [sys.executable, "-m", "corejax.cli", "write-manifest", project.name]
        with tempfile.TemporaryDirectory() as site:
            options = ["--output", str(package / "corejax_manifest.json")]
            subprocess.run([*command, *options], env=environment([project], Path(site) / "site"), check=True)


if __name__ == "__main__":
    main()
