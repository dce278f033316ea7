"""Progress bars: eager and compiled, under every transformation, and never in the way of a result."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

import corejax
from corejax import lax
from tests.control_flow.checks import check, equations, jaxpr, message

F = np.float32
XS = np.linspace(0.5, 1.0, 20, dtype=F)
both = pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit], ids=["eager", "compiled"])


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """What is drawn, without pauses."""
    from corejax_control_flow.loops import _progress_display as progress_display

    stream = Terminal()
    monkeypatch.setattr(progress_display, "sys", SimpleNamespace(stderr=stream))  # pytest sets sys.stderr for itself
    monkeypatch.setattr(progress_display, "_PAUSE", 0.0)
    progress_display.display._runs.clear()
    return stream


def counts(stream, label=""):
    """The numbers of iterations that were drawn, and the text is emptied."""
    text = stream.getvalue()
    stream.seek(0)
    stream.truncate()
    return [int(n) for n in re.findall(rf"{label}(?: \[[#-]*\])? ?(\d+)(?:/\d+)?(?:,|\r|\n|$)", text)]


def scan(xs, x, **options):
    return lax.scan(lambda c, a: (lax.sin(c) * a + x, c), x, xs, **options)


BAR = lax.ProgressBar("train", every=8)


@both
def test_scan(wrap, terminal):
    got = wrap(lambda x: scan(XS, x, progress=BAR))(F(0.3))
    check(got, scan(XS, F(0.3)))
    assert counts(terminal, "train") == [8, 16, 20]
    wrap(lambda x: scan(XS, x, progress="go"))(F(0.3))
    assert counts(terminal, "go") == list(range(1, 21))
    wrap(lambda x: scan(XS, x, reverse=True, unroll=3, progress=True))(F(0.3))
    assert counts(terminal) == list(range(1, 21))
    wrap(lambda x: scan(XS[:0], x, progress=True))(F(0.3))
    assert counts(terminal) == []


@both
def test_while_and_fori(wrap, terminal):
    f = lambda x, **options: lax.while_loop(lambda c: c < 30.0, lambda c: c + x, x, **options)
    check(wrap(lambda x: f(x, progress=BAR))(F(1)), F(30))
    assert counts(terminal, "train") == [8, 16, 24, 29]
    power = lambda n, x: lax.fori_loop(0, n, lambda i, c: c * x, F(1), progress=BAR)
    check(wrap(lambda x: power(10, x))(F(2)), F(1024))
    assert counts(terminal, "train") == [8, 10]
    check(wrap(power)(9, F(2)), F(512))
    assert counts(terminal, "train")[-1] == 9
    check(wrap(lambda xs: lax.map(lambda x: x * 2.0, xs, progress=BAR))(XS), XS * 2)
    assert counts(terminal, "train") == [8, 16, 20]


@both
def test_under_transformations(wrap, terminal):
    with_bar = lambda x: scan(XS, x, progress=BAR)[0]
    without = lambda x: scan(XS, x)[0]
    batch = np.array([0.1, 0.2, 0.3], F)
    for transform, at in (
        (corejax.grad, F(0.3)),  # the forward pass
        (corejax.vmap, batch),  # one bar
        (lambda f: corejax.vmap(corejax.grad(f)), batch),
        (lambda f: corejax.grad(corejax.jit(f)), F(0.3)),
        (lambda f: lambda x: corejax.jvp(f, (x,), (F(1),)), F(0.3)),
    ):
        check(wrap(transform(with_bar))(at), transform(without)(at))
        assert counts(terminal, "train") == [8, 16, 20]
    loop = lambda x, **options: lax.while_loop(lambda c: c < 30.0, lambda c: c + x, x, **options)
    xs = np.array([1.0, 2.0, 40.0], F)
    check(wrap(corejax.vmap(lambda x: loop(x, progress=BAR)))(xs), corejax.vmap(loop)(xs))
    assert counts(terminal, "train") == [8, 16, 24, 29]  # as far as the last of the batch
    check(wrap(lambda x: corejax.jvp(lambda x: loop(x, progress=BAR), (x,), (F(1),)))(F(1)), (F(30), F(30)))
    assert counts(terminal, "train") == [8, 16, 24, 29]
    assert corejax.linearize(lambda x: loop(x, progress=BAR), F(1))[1](F(1)) == 30.0
    assert counts(terminal, "train") == [8, 16, 24, 29]  # not again when tangents are pushed


def test_loops_in_loops_share_the_line(terminal):
    inner = lambda c: lax.scan(lambda c, a: (c + a, None), c, XS[:2], progress="inner")[0]
    lax.scan(lambda c, a: (inner(c), None), F(0), XS[:2], progress="outer")
    text = terminal.getvalue()
    assert re.search(r"outer \[[#-]+\] 1/2.* \| inner \[[#-]+\] 1/2", text)
    assert text.endswith("\n") and text.count("outer") >= 2


def test_silent_where_nobody_looks(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    for wrap in (lambda f: f, corejax.jit):
        wrap(lambda x: scan(XS, x, progress=True))(F(0.3))
    assert stream.getvalue() == ""
    scan(XS, F(0.3), progress=lax.ProgressBar(force=True))
    assert "20/20" in stream.getvalue()
    stream.close()
    for wrap in (lambda f: f, corejax.jit):  # a stream that cannot be written to
        check(wrap(lambda x: scan(XS, x, progress=lax.ProgressBar(force=True)))(F(0.3)), scan(XS, F(0.3)))
    monkeypatch.setattr("sys.stderr", None)
    scan(XS, F(0.3), progress=True)


def test_calls_the_host_only_when_it_is_time():
    text = corejax.jit(lambda x: scan(XS, x, progress=BAR)).lower(F(1)).as_text()
    assert text.count("stablehlo.custom_call") == 1 and "stablehlo.case" in text
    assert "custom_call" not in corejax.jit(lambda x: scan(XS, x)).lower(F(1)).as_text()
    closed = jaxpr(lambda x: scan(XS, x, progress=BAR), F(1))
    assert closed.effects == {"progress"} and len(list(equations(closed, "progress"))) == 1


def test_periods():
    assert [lax.ProgressBar().period(n) for n in (None, 5, 1000)] == [10, 1, 10]
    assert lax.ProgressBar(every=7).period(1000) == 7


def test_bad_input():
    assert "`progress` must be True, a label or a lax.ProgressBar(label, every=n), got 3" in message(
        TypeError, lambda: scan(XS, F(1), progress=3)
    )
    assert "`every` must be at least 1" in message(ValueError, lambda: lax.ProgressBar(every=0))
    assert "`every` must be a number of iterations" in message(TypeError, lambda: lax.ProgressBar(every=1.5))
    assert "the label must be a string" in message(TypeError, lambda: lax.ProgressBar(3))
