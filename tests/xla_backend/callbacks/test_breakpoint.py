"""`debug.breakpoint`: commands over the frames of a call, with the values of what was traced."""

from __future__ import annotations

import bdb
import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import debug, jit, lax

pytest.importorskip("jaxlib")

WAYS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": jit}
way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
FACTOR = 3
PROMPT = f"({cj.__name__}) "


class Session:
    """Commands, and what is answered to each."""

    def __init__(self, *commands: str) -> None:
        self.stdin = io.StringIO("".join(f"{c}\n" for c in commands))
        self.stdout = io.StringIO()
        self.files = {"stdin": self.stdin, "stdout": self.stdout}

    def answers(self) -> list[str]:
        return [part.rstrip("\n") for part in self.stdout.getvalue().split(PROMPT)]


def inner(session: Session, x: Any, kept: str) -> Any:
    found = {"sin": jnp.sin(x), "n": 5}
    debug.breakpoint(**session.files)
    return found["sin"]


def outer(session: Session, z: Any) -> Any:
    twice = z * 2
    return inner(session, twice, "text")


@way
def test_frames_and_values(way: Any) -> None:
    asked = ["p float(x)", "!kept, found['n']", "[FACTOR * round(float(z)) for z in (x, x)]", "nope"]
    asked += ["pp found['sin'].shape", "u", "float(z + twice)", "locals", "d", "d", "", "l", "w", "c", "p 'not asked'"]
    session = Session(*asked)
    assert way(lambda z: outer(session, z))(1.0) == np.float32(np.sin(np.float32(2)))
    place, *answers = session.answers()
    line = inner.__code__.co_firstlineno + 2
    assert place == f"> {__file__}({line})inner()\n{line:4d} ->     debug.breakpoint(**session.files)"
    above = outer.__code__.co_firstlineno + 2
    listed, frames = answers[11:13]
    assert answers[:5] == ["2.0", "('text', 5)", "[6, 6]", "*** NameError: name 'nope' is not defined", "()"]
    assert answers[5] == f'> {__file__}({above})outer()\n{above:4d} ->     return inner(session, twice, "text")'
    assert answers[6:11] == ["3.0", "session, z, twice", place, "*** Newest frame", ""]
    assert place.splitlines()[1] in listed.splitlines() and "def inner(" in listed
    assert frames.splitlines()[-1] == f"> {__file__}({line})inner()"
    assert frames.splitlines()[-2] == f"  {__file__}({above})outer()"
    assert session.stdin.read() == "p 'not asked'\n"


@way
def test_loops_batches_and_derivatives(way: Any) -> None:
    session = Session(*["x.item()", "c"] * 3)

    def f(x: Any) -> Any:
        debug.breakpoint(**session.files, num_frames=1)
        return x * x

    np.testing.assert_array_equal(way(cj.vmap(cj.grad(f)))(jnp.arange(3.0)), [0, 2, 4])
    assert sorted(session.answers()[1:-1:2]) == ["0.0", "1.0", "2.0"]
    session = Session(*["c"] * 3)
    way(lambda x: lax.scan(lambda c, x: (c, f(x)), 0, x))(jnp.arange(3.0))
    assert len(session.answers()) == 4


@way
def test_quitting(way: Any) -> None:
    for commands in (["q"], ["p x"], []):  # the end of the input quits, too
        session = Session(*commands)
        with pytest.raises(bdb.BdbQuit):
            way(lambda x, s=session: (debug.breakpoint(**s.files), x)[1])(1.0)


def test_tokens_and_what_has_ended() -> None:
    kept: list[Any] = []
    cj.vmap(lambda x: kept.append(x))(jnp.arange(2.0))
    session = Session("type(old).__name__, x.item(), pair[1].item()", "c")

    @jit
    def f(x: Any) -> Any:
        old, pair = kept[0], (1, x + 1)
        y, _ = debug.breakpoint(**session.files, token=(x * 2, None), ordered=True)
        return y + pair[1] if old is kept[0] else x

    assert f(1.0) == 4.0
    assert session.answers()[1] == "('BatchTracer', 1.0, 2.0)"
    assert debug.breakpoint(**Session("c").files, token=7) == 7


def test_standard_input(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("p x.item()\nc\n"))
    jit(lambda x: (debug.breakpoint(), x)[1])(3.0)
    assert "(corejax) 3.0\n" in capsys.readouterr().out


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"backend must be one of \('cli',\) or None, got 'web'"):
        debug.breakpoint(backend="web")
    with pytest.raises(ValueError, match="num_frames must be at least 1, got 0"):
        debug.breakpoint(num_frames=0)
    with pytest.raises(TypeError, match="takes stdin and stdout for its backend, got input"):
        debug.breakpoint(input=3)
