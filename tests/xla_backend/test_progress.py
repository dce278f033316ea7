"""The line on the terminal while the compiler takes long."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace

import pytest

import corejax
from corejax_xla_backend import _progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    monkeypatch.setattr(_progress, "DELAY", 0.02)
    monkeypatch.setattr(_progress, "_PERIOD", 0.01)
    stderr = _Terminal()
    _redirect(monkeypatch, stderr)
    return stderr


def _redirect(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO | None) -> None:
    """Replace `sys.stderr` for the module alone: pytest sets its own between fixture and test."""
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=stderr))


def _wait_for(terminal: _Terminal, text: str) -> None:
    until = time.monotonic() + 30
    while text not in terminal.getvalue():
        assert time.monotonic() < until, terminal.getvalue()
        time.sleep(0.005)


def test_line_names_long_compilations_and_is_erased(terminal: _Terminal) -> None:
    with _progress.compilation("train_step"):
        _wait_for(terminal, "\rcompiling train_step … 0 s")
        with _progress.compilation("evaluate"):
            _wait_for(terminal, "compiling evaluate, train_step … 0 s")
    _wait_for(terminal, "compiling train_step … 0 s")
    until = time.monotonic() + 30
    while not terminal.getvalue().endswith(" \r"):
        assert time.monotonic() < until
        time.sleep(0.005)
    assert "\n" not in terminal.getvalue()


def test_short_compilations_show_nothing(terminal: _Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "DELAY", 60.0)
    with _progress.compilation("short"):
        pass
    assert terminal.getvalue() == ""


def test_setting_and_redirection_switch_it_off(terminal: _Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    with corejax.config.override(compilation_progress=False), _progress.compilation("quiet"):
        assert not _progress._running
    _redirect(monkeypatch, io.StringIO())
    with _progress.compilation("redirected"):
        assert not _progress._running
    _redirect(monkeypatch, None)  # pythonw, daemons
    with _progress.compilation("without streams"):
        assert not _progress._running
    assert terminal.getvalue() == ""


def test_compiled_programs_are_shown(terminal: _Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxlib")
    names = []
    own = _progress.compilation
    from corejax_xla_backend import _programs

    monkeypatch.setattr(_programs, "compilation", lambda name: names.append(name) or own(name))
    corejax.jit(lambda x: x * 2.125 + 7)(1.0)
    assert names == ["<lambda>"]
