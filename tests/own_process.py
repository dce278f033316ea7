"""The marker `own_process`: tests run in a process of their own.

For tests that need another environment than the rest, or a small process. The first test that is asked for starts it;
it collects the file and then runs what it is asked for, and the test reports what happened to it there. In the test
files nothing else is to be seen of that, but that modules are imported in both processes. Fixtures and all else work as
usual. A file has a process of its own, `own_process(shared=True)` the directory; each worker has its own of these.
`OWN_PROCESS=1 pytest FILE` runs a file in one process, for a debugger.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

CHILD = os.environ.get("OWN_PROCESS") == "1"
PIPES = "OWN_PROCESS_PIPES"
TIMEOUT = 600.0  # seconds for a test

_processes: dict[Path, _Process] = {}  # in the parent: what they are for -> the process
_answers: Any = None  # in the child: where reports go


# -- in the child ----------------------------------------------------------------------------------------------------


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what the parent asks for, one test after the other."""
    global _answers
    if not CHILD or PIPES not in os.environ:
        return None
    asked, answers = map(int, os.environ.pop(PIPES).split())
    items = {item.nodeid: item for item in session.items}
    with open(asked, encoding="utf-8") as questions, open(answers, "w", encoding="utf-8") as _answers:
        for line in questions:
            name, following = json.loads(line)
            if name in items:
                item, nextitem = items[name], items.get(following)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            _say(None)
    _answers = None
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tell the parent."""
    if _answers is not None:
        _say(report._to_json())


def _say(answer: Any) -> None:
    _answers.write(json.dumps(answer) + "\n")
    _answers.flush()


# -- in the parent ---------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Report what the child says."""
    key = None if CHILD else _key(item)
    if key is None:
        return None
    following = nextitem if nextitem is not None and _key(nextitem) == key else None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports_of(item, key, following):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    # What the test before left set up here for this one: directories that both are in, and the next one may not be.
    item.session._setupstate.teardown_exact(nextitem)
    if key in _processes and (nextitem is None or (following is None and key == item.path)):
        _processes.pop(key).end()
    return True


def pytest_sessionfinish() -> None:
    """End what an interrupt has left."""
    while _processes:
        _processes.popitem()[1].end()


def _key(item: pytest.Item) -> Path | None:
    """What a test has a process for: its file, its directory; None where it has none."""
    marker = item.get_closest_marker("own_process")
    if marker is None:
        return None
    return item.path.parent if marker.kwargs.get("shared") else item.path


def _reports_of(item: pytest.Item, key: Path, following: pytest.Item | None) -> list[pytest.TestReport]:
    if key not in _processes:
        files = dict.fromkeys(str(other.path) for other in item.session.items if _key(other) == key)
        _processes[key] = _Process(item.config, list(files))
    process = _processes[key]
    written, ended = process.run(item.nodeid, following.nodeid if following is not None else "")
    reports = [_report(each) for each in written]
    if ended:
        del _processes[key]
        reports.append(pytest.TestReport(item.nodeid, item.location, {}, "failed", process.end(), "call"))
    elif not reports:
        reports = [pytest.TestReport(item.nodeid, item.location, {}, "failed", "it was not collected there", "call")]
    return reports


def _report(written: dict[str, Any]) -> pytest.TestReport:
    report = pytest.TestReport._from_json(written)
    if isinstance(report.longrepr, list):  # of a skipped test: where and why, a tuple before it was JSON
        report.longrepr = tuple(report.longrepr)
    return report


class _Process:
    """A process that runs tests of some files."""

    def __init__(self, config: pytest.Config, files: list[str]) -> None:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", config.option.markexpr, *files]
        asked, questions = os.pipe()
        answers, answered = os.pipe()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        environment |= {"OWN_PROCESS": "1", PIPES: f"{asked} {answered}"}
        self.output = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.process = subprocess.Popen(
            command,
            cwd=config.rootpath,
            env=environment,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            pass_fds=(asked, answered),
        )
        os.close(asked)
        os.close(answered)
        self.questions, self.answers, self.unread = questions, answers, b""

    def run(self, name: str, following: str) -> tuple[list[Any], bool]:
        """Run a test, after which another one follows: its reports, and whether the process ended or did not answer."""
        reports: list[Any] = []
        try:
            os.write(self.questions, (json.dumps([name, following]) + "\n").encode())
            while (answer := json.loads(self._line())) is not None:
                reports.append(answer)
        except (BrokenPipeError, EOFError):
            return reports, True
        return reports, False

    def _line(self) -> bytes:
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.answers], [], [], TIMEOUT)
            more = os.read(self.answers, 1 << 16) if ready else b""
            if not more:
                raise EOFError
            self.unread += more
        line, _, self.unread = self.unread.partition(b"\n")
        return line

    def end(self) -> str:
        """Let it end; how it did, with the last that it wrote."""
        os.close(self.questions)
        try:
            status = str(self.process.wait(60))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = f"no answer for {TIMEOUT} s"
        os.close(self.answers)
        self.output.seek(0)
        said = self.output.read()[-8000:]
        self.output.close()
        return f"its process ended with {status}:\n{said}"
