"""The user's line that an equation came from.

It is remembered as (code, offset of the instruction), and turned into file and line only when it is shown. Inside named
scopes and transformations these are a third item: (code, offset, scope).
"""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

Source = tuple[CodeType, int] | tuple[CodeType | None, int, "Scope"]


class Transform(str):
    """A transformation's name in a scope: it wraps the next name, as in `jvp(layer)`."""

    __slots__ = ()


Scope = tuple[str, ...]  # from the outside in
JVP, TRANSPOSE, VMAP = Transform("jvp"), Transform("transpose"), Transform("vmap")

_internal_prefixes: list[str] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<frozen "]
_callers: set[str] = set()  # files whose functions call the library, and are not the user's
_internal_files: dict[str, bool] = {}


def register_internal(directory: str) -> None:
    """Declare a package's directory as library code: frames in it are not the user's lines."""
    prefix = os.path.join(os.path.abspath(directory), "")
    if prefix not in _internal_prefixes:
        _internal_prefixes.append(prefix)
        _internal_files.clear()


def _is_internal(filename: str) -> bool:
    internal = filename in _callers or filename.startswith(tuple(_internal_prefixes))
    _internal_files[filename] = internal
    return internal


def capture_source(depth: int = 1, scope: Scope = ()) -> Source | None:
    """The innermost frame that is not library code, as (code, offset of the instruction), and inside a scope that."""
    frame: FrameType | None = sys._getframe(depth)
    known = _internal_files
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        if not (known[filename] if filename in known else _is_internal(filename)):
            return (code, frame.f_lasti, scope) if scope else (code, frame.f_lasti)
        frame = frame.f_back
    return (None, 0, scope) if scope else None


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that it was reached by, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _of_library(frame: FrameType) -> bool:
    return _is_internal(frame.f_code.co_filename)


def user_frames(*, filtered: bool = True) -> list[FrameType]:
    """The frames that the caller was reached by, the innermost first, from the innermost that is not library code.

    Library code among them is left out if they are `filtered`.
    """
    found = list(itertools.dropwhile(_of_library, _outwards(sys._getframe(1))))
    return list(itertools.filterfalse(_of_library, found)) if filtered else found


_AROUND = frozenset({"call", "call_anew"})  # frames of `remembered`


def called_frame() -> FrameType | None:
    """The frame of the library's function that the user's line calls; None where no user code is running."""
    called: FrameType | None = None
    for frame in _outwards(sys._getframe(1)):
        if not _of_library(frame):
            return called
        if called is None or not _is_around(frame):
            called = frame
    return None


def called_function() -> str:
    """The name of the plugin's function that the user's line calls, for messages; "" where there is none to name."""
    called = called_frame()
    name = "" if called is None or _of_kernel(called) else _name_of(called)
    return "" if name.startswith(("_", "<")) else name


def called_as(*names: str) -> str:
    """The name by which the library's function that runs now was called from outside of the library; "" otherwise.

    The user's code calls it, or a transformation that has got it: `vmap(jnp.dot)`. Where a setting asks for checks of
    operands, a function makes them only if it is called so. What library code calls is its own matter.

    Args:
        names: of the function; the first one is the name of operators too, `mul` of `__mul__` and `__rmul__`.
    """
    called, in_plugin = "", False
    for frame in itertools.takewhile(_of_library, _outwards(sys._getframe(1))):
        if not _is_around(frame):
            name, in_kernel = _name_of(frame), _of_kernel(frame)
            if in_plugin and in_kernel and not name.startswith("__"):  # but for a decorated operator
                break
            called, in_plugin = name, in_plugin or not in_kernel
    if called in names:
        return called
    if called in (f"__{side}{name}__" for name in names for side in ("", "r")):
        return names[0]
    warnings_given[0] += 1  # the user's call would be checked: this one must not be remembered for it
    return ""


def _is_around(frame: FrameType) -> bool:
    """Whether a frame belongs to a decorator around the function."""
    return frame.f_code.co_name in _AROUND and _of_kernel(frame)


def _name_of(frame: FrameType) -> str:
    name = frame.f_code.co_name
    if name == "__call__":  # of an object with a name, as ufuncs have, or of a class of such
        own = frame.f_locals
        return str(getattr(own.get("self", own.get("cls")), "__name__", ""))
    if name in _AROUND:  # a plugin's decorator of that name
        return str(getattr(frame.f_locals.get("fun"), "__name__", name))
    return name


def by_caller() -> str:
    """The function that the user called, to begin a message with."""
    name = called_function()
    return f"{name}: " if name else ""


def without_caller(error: BaseException) -> str:
    """An error's text without the function that `by_caller` named, for who says more of it."""
    return str(error).removeprefix(by_caller())


def _of_kernel(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_internal_prefixes[0])


def scope_of(source: Source | None) -> Scope:
    """The scope of a place."""
    return source[2] if source is not None and len(source) > 2 else ()


def inside(scope: Scope, source: Source | None) -> Source:
    """A place (None: no line is known) inside one more scope, around its own."""
    if source is None:
        return (None, 0, scope)
    return (source[0], source[1], scope + source[2] if len(source) > 2 else scope)


def scope_text(scope: Scope) -> str:
    """`layer1/dense`, `transpose(jvp(layer1))/dense`; a transformation without a name is `jvp()`."""
    parts: list[str] = []  # from the inside out
    for name in reversed(scope):
        if isinstance(name, Transform):
            parts.append(f"{name}({parts.pop() if parts else ''})")
        else:
            parts.append(name)
    return "/".join(reversed(parts))


class Location(NamedTuple):
    """One place in source code; `column` counts from 0."""

    file: str
    line: int
    column: int | None
    function: str

    def __str__(self) -> str:
        column = "" if self.column is None else f":{self.column}"
        return f"{self.file}:{self.line}{column} ({self.function})"


Positions = list[tuple[int | None, int | None, int | None, int | None]]


def locate_source(source: Source | None, known: dict[int, tuple[CodeType, Positions]] | None = None) -> Location | None:
    """Resolve a captured place; `known` remembers the lines of code objects for whoever resolves many."""
    code = None if source is None else source[0]
    if code is None:
        return None
    found = None if known is None else known.get(id(code))
    positions = list(code.co_positions()) if found is None else found[1]
    if known is not None and found is None:
        known[id(code)] = (code, positions)
    offset: int = source[1]  # type: ignore[index]
    index = offset // 2
    line, _, column, _ = positions[index] if index < len(positions) else (None, None, None, None)
    return Location(code.co_filename, line or code.co_firstlineno, column, code.co_qualname.rsplit(".", 1)[-1])


def describe_source(source: Source | None) -> str:
    """`file:line:column (function)`, or a phrase where no user code was on the stack."""
    location = locate_source(source)
    return str(location) if location else "an unknown line"


def user_line() -> str:
    """The user's line that is running now, as text."""
    return describe_source(capture_source(2))


def raised_at(error: BaseException) -> str:
    """The innermost of the user's lines that an exception came through, as text; "" where there is none."""
    found, traceback = "", error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename != "<corejax>" and not _is_internal(code.co_filename):  # what stands for frames left out
            found = f"{code.co_filename}:{traceback.tb_lineno} ({code.co_name})"
        traceback = traceback.tb_next
    return found


def needed(words: str, source: Source | None = None) -> str:
    """The words with a line, or with the one that is running now: nothing where no code of a user's is running.

    A command has no such line, where it checks rules for example.
    """
    location = locate_source(source if source is not None else capture_source(2))
    return f"{words} {location}" if location else ""


warnings_given = [0]  # by `warn_user`, shown or not, and checks left out by `called_as`
_warned: dict[str, dict[Any, Any]] = {}  # for each file of users' what warnings have been shown


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line that is running now: shown once for each line, however deep in the library it is said."""
    warnings_given[0] += 1
    place = locate_source(capture_source(2))
    if place is None:
        warnings.warn(text, category, stacklevel=2)
    else:
        warnings.warn_explicit(text, category, place.file, place.line, registry=_warned.setdefault(place.file, {}))


def register_caller() -> None:
    """Declare the files of all functions that are running library code: those that start a command."""
    _callers.update(frame.f_code.co_filename for frame in _outwards(sys._getframe(1)))
    _internal_files.clear()
