"""The marker `own_process`: a file's tests run in a process of their own.

For tests that need another environment than the rest, or a small process. The first test that is asked for starts it,
for all of the file's that were chosen, and each reports what happened to it there. In the test files nothing else is to
be seen of that, but that modules are imported in both processes. Fixtures and all else work as usual. With several
workers one of them starts a file's process, and the others wait for it. `OWN_PROCESS=1 pytest FILE` runs a file in one
process, for a debugger.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHILD = os.environ.get("OWN_PROCESS") == "1"
TIMEOUT = 600.0  # seconds for a file

_reports: dict[Path, dict[str, list[Any]]] = {}  # in the parent: file -> test -> its reports
_written: Any = None  # in the child: where reports go


def open_reports() -> None:
    """In the child, open the file for reports."""
    global _written
    if CHILD and (path := os.environ.get("OWN_PROCESS_REPORTS")):
        _written = Path(path).open("a", encoding="utf-8")  # noqa: SIM115


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the child, write it for the parent."""
    if _written is not None:
        _written.write(json.dumps(report._to_json()) + "\n")
        _written.flush()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In the parent, report what the child said."""
    if CHILD or item.get_closest_marker("own_process") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports_of(item):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _reports_of(item: pytest.Item) -> list[pytest.TestReport]:
    if item.path not in _reports:
        chosen = [other.nodeid for other in item.session.items if other.path == item.path]
        _reports[item.path] = _run(item.config, item.path, chosen)
    found = _reports[item.path].get(item.nodeid)
    if found is None:
        said = _reports[item.path][""][0]
        return [pytest.TestReport(item.nodeid, item.location, {}, "failed", f"it did not run:\n{said}", "call")]
    return [_report(each) for each in found]


def _report(written: dict[str, Any]) -> pytest.TestReport:
    report = pytest.TestReport._from_json(written)
    if isinstance(report.longrepr, list):  # of a skipped test: where and why, a tuple before it was JSON
        report.longrepr = tuple(report.longrepr)
    return report


def _run(config: pytest.Config, path: Path, chosen: list[str]) -> dict[str, list[Any]]:
    """Reports of a file's tests by test, and under an empty name what the process said."""
    shared = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    place = (
        shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    ) / f"own-process-{path.parent.name}-{path.stem}"
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        output = place.with_suffix(".out")
        if not output.exists():
            output.write_text(_run_child(config, place.with_suffix(".json"), chosen), encoding="utf-8")
    found: dict[str, list[Any]] = {"": [output.read_text(encoding="utf-8")]}
    if place.with_suffix(".json").exists():
        for line in place.with_suffix(".json").read_text(encoding="utf-8").splitlines():
            report = json.loads(line)
            found.setdefault(report["nodeid"], []).append(report)
    return found


def _run_child(config: pytest.Config, reports: Path, chosen: list[str]) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", config.option.markexpr, *chosen]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"OWN_PROCESS": "1", "OWN_PROCESS_REPORTS": str(reports)}
    try:
        done = subprocess.run(
            command,
            cwd=config.rootpath,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return f"after {TIMEOUT} s it had not ended:\n{error.stdout}"
    return f"{' '.join(command[:3])} ended with {done.returncode}:\n{done.stdout[-8000:]}"
