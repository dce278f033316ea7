"""The prompt of `debug.breakpoint`: pdb's commands, for frames with concrete values in their variables."""

from __future__ import annotations

import bdb
import cmd
import pprint
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TextIO

_prompt_lock = threading.RLock()  # all prompts read from one terminal
_CONTEXT_LINES = 5  # lines of source that `list` shows before and after the current one


class Frame(NamedTuple):
    """A frame of the call stack at the breakpoint.

    Attributes:
        file, line, function: the frame's place.
        source: all lines of the file.
        variables: the local variables.
        globals: the global variables.
    """

    file: str
    line: int
    function: str
    source: list[str]
    variables: dict[str, Any]
    globals: dict[str, Any]

    def place(self) -> str:
        """Return the frame's place as text, in pdb's format."""
        return f"{self.file}({self.line}){self.function}()"

    def listing(self, first: int, last: int) -> str:
        """Return numbered lines of the source, with the current line marked."""
        shown = []
        for number in range(max(first, 1), min(last, len(self.source)) + 1):
            mark = "->" if number == self.line else "  "
            shown.append(f"{number:4d} {mark} {self.source[number - 1].rstrip()}")
        return "\n".join(shown)


class Debugger:
    """The callback of `debug.breakpoint`: a prompt over frames, innermost first, that reads stdin by default."""

    __name__ = "breakpoint"

    def __init__(self, frames: Sequence[Frame], stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self.frames = list(frames)
        self.stdin = stdin
        self.stdout = stdout

    def __call__(self, variables: Sequence[dict[str, Any]], token: Any) -> None:
        """Run the prompt, with these values in place of the traced variables of each frame."""
        frames = [f._replace(variables=f.variables | v) for f, v in zip(self.frames, variables, strict=True)]
        with _prompt_lock:
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
        self._print_place()

    def precmd(self, line: str) -> str:
        return "quit" if line == "EOF" else line  # `cmd` passes "EOF" at the end of the input

    def emptyline(self) -> bool:
        return False

    def _write(self, text: str) -> None:
        self.stdout.write(text + "\n")
        self.stdout.flush()

    def _print_place(self) -> None:
        if self.frames:
            self._write(f"> {self.frame.place()}\n{self.frame.listing(self.frame.line, self.frame.line)}")

    def _print_value(self, text: str, show: Callable[[Any], str]) -> None:
        # One dict, because comprehensions inside `eval` see global names only.
        names = {**self.frame.globals, **self.frame.variables} if self.frames else {}
        try:
            value = eval(text, names)
        except Exception as error:
            self._write(f"*** {type(error).__name__}: {error}")
        else:
            self._write(show(value))

    def do_p(self, text: str) -> None:
        """Print the value of an expression: p expression."""
        self._print_value(text, repr)

    def do_pp(self, text: str) -> None:
        """Pretty-print the value of an expression: pp expression."""
        self._print_value(text, pprint.pformat)

    def default(self, line: str) -> None:
        """Print the value of a line that is not a command, as an expression."""
        self.do_p(line.removeprefix("!"))

    def do_locals(self, text: str) -> None:
        """List the names of the frame's variables."""
        self._write(", ".join(self.frame.variables) if self.frames else "")

    def do_up(self, text: str) -> None:
        """Select the frame of the caller."""
        self._move(self.position + 1, "Oldest frame")

    def do_down(self, text: str) -> None:
        """Select the frame that this frame called."""
        self._move(self.position - 1, "Newest frame")

    def _move(self, position: int, end: str) -> None:
        if 0 <= position < len(self.frames):
            self.position = position
            self._print_place()
        else:
            self._write(f"*** {end}")

    def do_where(self, text: str) -> None:
        """List the frames, the innermost last."""
        for i in reversed(range(len(self.frames))):
            self._write(f"{'>' if i == self.position else ' '} {self.frames[i].place()}")

    def do_list(self, text: str) -> None:
        """Show the source around the current line."""
        if self.frames:
            self._write(self.frame.listing(self.frame.line - _CONTEXT_LINES, self.frame.line + _CONTEXT_LINES))

    def do_continue(self, text: str) -> bool:
        """Continue the program."""
        return True

    def do_quit(self, text: str) -> bool:
        """End the program by raising bdb.BdbQuit."""
        raise bdb.BdbQuit

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_quit
