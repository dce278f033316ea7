"""Run a program for each of JAX's libraries on corejax: `make test-libraries`.

    python -m tools.test_libraries [LIBRARY...] [--write docs/how-to/use-jax-libraries.md]

The environment has the libraries of tests/as_jax/libraries.txt and no jax. With `--write`, the page's tables are
written again: which programs run, and which private names of jax the libraries use.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "as_jax" / "programs"
# Programs whose library is another distribution, or another package, than their name says.
DISTRIBUTIONS = {
    "flax_linen": "flax",
    "flax_nnx": "flax",
    "haiku": "dm-haiku",
    "mjx": "mujoco-mjx",
    "tfp": "tensorflow-probability",
}
PACKAGES = {
    "flax_linen": "flax.linen",
    "flax_nnx": "flax.nnx",
    "mjx": "mujoco.mjx",
    "tfp": "tensorflow_probability.substrates.jax",
}
SECONDS = 600


def main() -> None:
    """Run the programs, print a line for each, and write the tables if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    libraries = options.libraries or sorted(file.stem.removeprefix("use_") for file in PROGRAMS.glob("use_*.py"))
    rows = [run(library) for library in libraries]
    if options.write:
        write(options.write, "programs", [row for row, _ in rows])
        write(options.write, "private names", private_names(libraries))
    failed = [library for library, (_, works) in zip(libraries, rows, strict=True) if not works]
    if failed:
        sys.exit(f"{len(failed)} of {len(libraries)} programs failed: {', '.join(failed)}")
    print(f"{len(libraries)} programs run")


def run(library: str) -> tuple[str, bool]:
    """Run a library's program; return its row of the table, and whether it ran to its end."""
    file = PROGRAMS / f"use_{library}.py"
    begin = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-m", "corejax_as_jax", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    works = result.returncode == 0
    lines = result.stderr.strip().splitlines()
    print(f"{library:16} {time.perf_counter() - begin:5.0f} s  {'runs' if works else lines[-1] if lines else 'failed'}")
    what = file.read_text().splitlines()[0].strip('".')
    name = DISTRIBUTIONS.get(library, library.replace("_", "-"))
    return f"| {PACKAGES.get(library, library)} | {version(name)} | {what} | {'runs' if works else 'fails'} |", works


def private_names(libraries: list[str]) -> list[str]:
    """Return the rows of private names that libraries use and that are there, with the libraries."""
    from corejax_as_jax import install
    from corejax_as_jax.scanning import has_name, used_names

    install()
    users: dict[str, set[str]] = {}
    for library in libraries:
        package = PACKAGES.get(library, library).partition(".")[0]
        for name in used_names("tensorflow_probability.substrates.jax" if library == "tfp" else package):
            if name.startswith("jax._src.") and has_name(name):
                users.setdefault(name, set()).add(f"{package} {version(DISTRIBUTIONS.get(library, package))}")
    return [f"| `{name}` | {', '.join(sorted(found))} |" for name, found in sorted(users.items())]


def write(page: Path, table: str, rows: list[str]) -> None:
    """Replace the rows of a table, which stand between two comments in a page."""
    begin, end = f"<!-- {table} -->\n", f"<!-- end of {table} -->\n"
    text = page.read_text()
    found = re.search(re.escape(begin) + r"(\|.*\n\|.*\n)(?:.*\n)*?" + re.escape(end), text)
    assert found, f"{page} has no table of {table}"
    body = "".join(f"{row}\n" for row in rows)
    page.write_text(text[: found.start()] + begin + found[1] + body + end + text[found.end() :])


if __name__ == "__main__":
    main()
