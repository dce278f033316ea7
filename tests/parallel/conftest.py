"""Tests here have eight CPU devices, corejax's and jax's.

How many there are is fixed at their first use, so a file's tests run in a process of their own: the first one that is
asked for starts it, for all of the file's that were chosen, and each reports what happened to it there. In the test
files nothing is to be seen of that, but that modules are imported in both processes: devices are asked for inside of
tests and fixtures. Fixtures and all else work as usual. With several workers one of them starts a file's process, and
the others wait for it. `EIGHT_DEVICES=1 pytest tests/parallel/test_mesh.py` runs a file in one process, for a debugger.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CHILD = os.environ.get("EIGHT_DEVICES") == "1"
TIMEOUT = 600.0  # seconds for a file

if CHILD:  # before corejax and jax are imported
    os.environ["COREJAX_NUM_CPU_DEVICES"] = "8"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

_reports: dict[Path, dict[str, list[Any]]] = {}  # in the parent: file -> test -> its reports
_written: Any = None  # in the child: where reports go


def pytest_configure(config: pytest.Config) -> None:
    """In the child, open the file for reports."""
    global _written
    if CHILD and (path := os.environ.get("EIGHT_DEVICES_REPORTS")):
        _written = Path(path).open("a", encoding="utf-8")  # noqa: SIM115


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the child, write it for the parent."""
    if _written is not None:
        _written.write(json.dumps(report._to_json()) + "\n")
        _written.flush()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In the parent, report what the child said."""
    if CHILD or HERE not in item.path.parents:
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
    for each in found:
        if isinstance(each["longrepr"], list):  # of a skipped test, a tuple before it was JSON
            each["longrepr"] = tuple(each["longrepr"])
    return [pytest.TestReport._from_json(each) for each in found]


def _run(config: pytest.Config, path: Path, chosen: list[str]) -> dict[str, list[Any]]:
    """Reports of a file's tests by test, and under an empty name what the process said."""
    shared = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    place = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / f"eight-devices-{path.stem}"
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
    environment |= {"EIGHT_DEVICES": "1", "EIGHT_DEVICES_REPORTS": str(reports)}
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


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    """Fail, rather than test nothing, where there are fewer."""
    import corejax

    assert corejax.device_count("cpu") == 8
    yield
