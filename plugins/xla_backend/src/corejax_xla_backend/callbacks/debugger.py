"""The prompt of `debug.breakpoint`: commands of pdb, over frames whose variables have values."""

from __future__ import annotations

import bdb
import cmd
import pprint
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TextIO

_one_at_a_time = threading.RLock()  # prompts read from one terminal
_AROUND = 5  # lines of source around the current one


class Frame(NamedTuple):
    """A frame that the breakpoint was reached by.

    Attributes:
        file, line, function: where it was.
        source: all lines of the file.
        variables: local ones.
        globals: of the module.
    """

    file: str
    line: int
    function: str
    source: list[str]
    variables: dict[str, Any]
    globals: dict[str, Any]

    def place(self) -> str:
        """As in a traceback."""
        return f"{self.file}({self.line}){self.function}()"

    def listing(self, first: int, last: int) -> str:
        """Numbered lines of the source, the current one marked."""
        shown = []
        for number in range(max(first, 1), min(last, len(self.source)) + 1):
            mark = "->" if number == self.line else "  "
            shown.append(f"{number:4d} {mark} {self.source[number - 1].rstrip()}")
        return "\n".join(shown)


class Debugger:
    """What `debug.breakpoint` calls back: a prompt over frames, from the innermost out, by default at stdin."""

    __name__ = "breakpoint"

    def __init__(self, frames: Sequence[Frame], stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self.frames = list(frames)
        self.stdin = stdin
        self.stdout = stdout

    def __call__(self, variables: Sequence[dict[str, Any]], token: Any) -> None:
        """Ask, with the values of these variables in the place of what was traced."""
        frames = [f._replace(variables=f.variables | v) for f, v in zip(self.frames, variables, strict=True)]
        with _one_at_a_time:
            _Prompt(frames, self.stdin or sys.stdin, self.stdout or sys.stdout).cmdloop()


class _Prompt(cmd.Cmd):
    prompt = "(corejax) "

    def __init__(self, frames: list[Frame], stdin: TextIO, stdout: TextIO) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is sys.__stdin__ and stdout is sys.__stdout__
        self.frames = frames
        self.position = 0

    @property
    def frame(self) -> Frame:
        return self.frames[self.position]

    def preloop(self) -> None:
        self._say_where()

    def precmd(self, line: str) -> str:
        return "quit" if line == "EOF" else line  # the end of the input

    def emptyline(self) -> bool:
        return False

    def _say(self, text: str) -> None:
        self.stdout.write(text + "\n")
        self.stdout.flush()

    def _say_where(self) -> None:
        if self.frames:
            self._say(f"> {self.frame.place()}\n{self.frame.listing(self.frame.line, self.frame.line)}")

    def _print(self, text: str, show: Callable[[Any], str]) -> None:
        # One dict, for comprehensions see global names only.
        names = {**self.frame.globals, **self.frame.variables} if self.frames else {}
        try:
            value = eval(text, names)
        except Exception as error:
            self._say(f"*** {type(error).__name__}: {error}")
        else:
            self._say(show(value))

    def do_p(self, text: str) -> None:
        """p expression: print its value."""
        self._print(text, repr)

    def do_pp(self, text: str) -> None:
        """pp expression: print its value, on several lines if it is long."""
        self._print(text, pprint.pformat)

    def default(self, line: str) -> bool:
        """An expression alone is printed."""
        self.do_p(line.removeprefix("!"))
        return False

    def do_locals(self, text: str) -> None:
        """locals: names of the frame's variables."""
        self._say(", ".join(self.frame.variables) if self.frames else "")

    def do_up(self, text: str) -> None:
        """up: to the caller."""
        self._move(self.position + 1, "Oldest frame")

    def do_down(self, text: str) -> None:
        """down: to what this frame called."""
        self._move(self.position - 1, "Newest frame")

    def _move(self, position: int, end: str) -> None:
        if 0 <= position < len(self.frames):
            self.position = position
            self._say_where()
        else:
            self._say(f"*** {end}")

    def do_where(self, text: str) -> None:
        """where: the frames, the innermost last."""
        for i in reversed(range(len(self.frames))):
            self._say(f"{'>' if i == self.position else ' '} {self.frames[i].place()}")

    def do_list(self, text: str) -> None:
        """list: the source around the current line."""
        if self.frames:
            self._say(self.frame.listing(self.frame.line - _AROUND, self.frame.line + _AROUND))

    def do_continue(self, text: str) -> bool:
        """continue: go on with the program."""
        return True

    def do_quit(self, text: str) -> bool:
        """quit: end the program with bdb.BdbQuit."""
        raise bdb.BdbQuit

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_quit
