"""Run tests of JAX's libraries on corejax, and those that fail with JAX, too: `make test-library-suites`.

    python -m tools.library_suites SOURCES [LIBRARY...] [--jax PYTHON] [--write docs/how-to/use-jax-libraries.md]

SOURCES has a folder for each library with its sources, at the installed version. What is run is in
tests/as_jax/suites.toml. With `--jax`, the interpreter of an environment that has jax and the same libraries, the tests
that do not pass on corejax run there, too: those that fail with jax as well do not count. The output of pytest is
written beside the sources, `SOURCES/<library>.corejax.txt`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools.test_libraries import DISTRIBUTIONS, ROOT, write

SUITES = ROOT / "tests" / "as_jax" / "suites.toml"
OUTCOME = re.compile(r"^(\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
# Not `-v`, which the flags of absl, in distrax, take for their own and want a number after.
OPTIONS = ["--verbose", "--tb=short", "--color=no", "-W", "ignore", "-p", "no:cacheprovider", "-o", "addopts="]
GOAL = 0.993


def main() -> None:
    """Run the suites, print a line for each, and write the table if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=Path)
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--jax", help="the interpreter of an environment with jax")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--reuse", action="store_true", help="take the outputs that are there, and run the others")
    options = parser.parse_args()
    suites = tomllib.loads(SUITES.read_text())
    rows, passed, wanted = [], 0, 0
    for library in options.libraries or suites:
        pythons = [sys.executable, options.jax and os.path.abspath(options.jax)]
        good, bad = run(library, suites[library], options.sources, pythons, options.reuse)
        passed, wanted = passed + len(good), wanted + len(good) + len(bad)
        for test in bad:
            print(f"    fails: {test}")
        print(f"{library:12} {len(good)} of {len(good) + len(bad)}", flush=True)
        name = DISTRIBUTIONS.get(library, library)
        counts = f"{len(good) + len(bad)} | {len(good)}"
        rows.append(f"| {library} | {version(name)} | {counts} | {suites[library].get('known', '')} |")
    if options.write:
        write(options.write, "suites", [*rows, f"| all | | {wanted} | {passed} | {passed / max(wanted, 1):.1%} pass |"])
    print(f"{passed} of {wanted} tests that pass with jax pass: {passed / max(wanted, 1):.2%}")
    if passed < GOAL * wanted:
        sys.exit(f"fewer than {GOAL:.1%}")


def run(
    library: str, suite: dict[str, Any], sources: Path, pythons: Sequence[str | None], reuse: bool
) -> tuple[list[str], list[str]]:
    """Run a library's tests; return the names of those that pass, and of those that fail and pass with jax."""
    logs = [sources / f"{library}.{name}.txt" for name in ("corejax", "jax")]
    options = [f"--deselect={test}" for test in suite.get("without", ())] + suite["tests"]
    if not (reuse and logs[0].exists()):
        run_tests(pythons[0], suite, sources / library, ["-p", "corejax_as_jax.pytest_plugin", *options], logs[0])
    here = outcomes(logs[0].read_text())
    good = [test for test, outcome in here.items() if outcome == "PASSED"]
    bad = [test for test, outcome in here.items() if outcome in ("FAILED", "ERROR")]
    if pythons[1] and bad:
        if not (reuse and logs[1].exists()):
            run_tests(pythons[1], suite, sources / library, bad, logs[1])
        there = outcomes(logs[1].read_text())
        bad = [test for test in bad if there.get(test) == "PASSED"]
    return good, bad


def run_tests(python: str | None, suite: dict[str, Any], directory: Path, options: list[str], log: Path) -> None:
    """Run tests of a library by pytest, and write its output to a file."""
    command = [python or sys.executable, "-m", "pytest", *OPTIONS, *suite.get("options", ()), *options]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **suite.get("environment", {})}
    with log.open("w") as output:
        running = subprocess.Popen(command, cwd=directory, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            running.wait(suite.get("seconds", 600))
        except subprocess.TimeoutExpired:
            running.kill()


def outcomes(log: str) -> dict[str, str]:
    """Return the outcome of each test in the output of `pytest -v`."""
    found = (OUTCOME.match(line) for line in log.splitlines())
    return {match[1]: match[2] for match in found if match}


if __name__ == "__main__":
    main()
