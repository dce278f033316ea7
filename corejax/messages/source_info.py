"""The user's line that an equation came from.

It is stored as (code, offset of the instruction), which is cheap, and converted to file and line only when it is shown.
Inside named scopes and transformations the scope is a third item: (code, offset, scope).
"""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

Scope = tuple[str, ...]  # from the outside in
Source = tuple[CodeType, int] | tuple[CodeType | None, int, Scope]


class Transform(str):
    """The name of a transformation in a scope. It wraps the next name, as in `jvp(layer)`."""

    __slots__ = ()


JVP, TRANSPOSE, VMAP = Transform("jvp"), Transform("transpose"), Transform("vmap")

_internal_prefixes: list[str] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<frozen "]
_callers: set[str] = set()  # files that start a command: they call the library but are not the user's code
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
    """Return the innermost frame that is not library code, as (code, offset), or (code, offset, scope) in a scope."""
    frame: FrameType | None = sys._getframe(depth)
    known = _internal_files
    while frame is not None:
        code = frame.f_code
        internal = known.get(code.co_filename)
        if not (_is_internal(code.co_filename) if internal is None else internal):
            return (code, frame.f_lasti, scope) if scope else (code, frame.f_lasti)
        frame = frame.f_back
    return (None, 0, scope) if scope else None


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _of_library(frame: FrameType) -> bool:
    return _is_internal(frame.f_code.co_filename)


def user_frames(*, filtered: bool = True) -> list[FrameType]:
    """Return the callers' frames, the innermost first, from the innermost one that is not library code.

    If `filtered`, all frames of library code are left out.
    """
    frames = list(itertools.dropwhile(_of_library, _outwards(sys._getframe(1))))
    return list(itertools.filterfalse(_of_library, frames)) if filtered else frames


_WRAPPER = "call"  # name of the functions that decorators such as `api_boundary` and `remembered` return


def called_frame() -> FrameType | None:
    """Return the frame of the library's function that the user's line calls; None if no user code is running."""
    called: FrameType | None = None
    for frame in _outwards(sys._getframe(1)):
        if not _of_library(frame):
            return called
        if called is None or not _is_wrapper(frame):
            called = frame
    return None


def called_function() -> str:
    """Return the name of the plugin's function that the user's line calls, for messages; "" if there is no name."""
    called = called_frame()
    name = "" if called is None or _of_kernel(called) else _name_of(called)
    return "" if name.startswith(("_", "<")) else name


def called_as(*names: str) -> str:
    """Return the name by which the user's code called the running library function; "" if library code called it.

    A call by a transformation of the function, `vmap(jnp.dot)`, counts as the user's. Settings such as
    `numpy_rank_promotion` check the operands of the user's calls only, not of calls inside the library.

    Args:
        names: names of the function; operators are reported by the first one, `__mul__` and `__rmul__` as `mul`.
    """
    called, in_plugin = "", False
    for frame in itertools.takewhile(_of_library, _outwards(sys._getframe(1))):
        if not _is_wrapper(frame):
            name, in_kernel = _name_of(frame), _of_kernel(frame)
            if in_plugin and in_kernel and not name.startswith("__"):  # a dunder name is a decorated operator
                break
            called, in_plugin = name, in_plugin or not in_kernel
    if called in names:
        return called
    if called in (f"__{side}{name}__" for name in names for side in ("", "r")):
        return names[0]
    warnings_given[0] += 1  # so that this unchecked result is not cached: the same call by the user is checked
    return ""


def _is_wrapper(frame: FrameType) -> bool:
    """Return True if a frame belongs to a kernel's decorator around the function."""
    return frame.f_code.co_name == _WRAPPER and _of_kernel(frame)


def _name_of(frame: FrameType) -> str:
    name = frame.f_code.co_name
    if name == "__call__":  # an object with a name, such as a ufunc, or its class
        own = frame.f_locals
        return str(getattr(own.get("self", own.get("cls")), "__name__", ""))
    if name == _WRAPPER:  # a decorator of a plugin
        return str(getattr(frame.f_locals.get("fun"), "__name__", name))
    return name


def by_caller() -> str:
    """Return the name of the function that the user called, to begin a message: "dot: "."""
    name = called_function()
    return f"{name}: " if name else ""


def without_caller(error: BaseException) -> str:
    """Return the text of an error without the function's name that `by_caller` puts first, for a longer message."""
    return str(error).removeprefix(by_caller())


def _of_kernel(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_internal_prefixes[0])


def scope_of(source: Source | None) -> Scope:
    """Return the scope of a place."""
    return source[2] if source is not None and len(source) > 2 else ()


def inside(scope: Scope, source: Source | None) -> Source:
    """Return a place (None if the line is unknown) with one more scope around its own."""
    if source is None:
        return (None, 0, scope)
    return (source[0], source[1], scope + source[2] if len(source) > 2 else scope)


def scope_text(scope: Scope) -> str:
    """Format a scope: `layer1/dense`, `transpose(jvp(layer1))/dense`; `jvp()` if there is no name inside."""
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
    """Convert a captured place to file and line; `known` is a cache of lines by code object, for many places."""
    code = None if source is None else source[0]
    if code is None:
        return None
    cached = None if known is None else known.get(id(code))
    positions = list(code.co_positions()) if cached is None else cached[1]
    if known is not None and cached is None:
        known[id(code)] = (code, positions)
    offset: int = source[1]  # type: ignore[index]  # not None, as `code` is not
    index = offset // 2
    line, _, column, _ = positions[index] if index < len(positions) else (None, None, None, None)
    return Location(code.co_filename, line or code.co_firstlineno, column, code.co_qualname.rsplit(".", 1)[-1])


def describe_source(source: Source | None) -> str:
    """Return `file:line:column (function)`, or "an unknown line" if no user code was on the stack."""
    location = locate_source(source)
    return str(location) if location else "an unknown line"


def user_line() -> str:
    """Return the user's line that is running now, as text."""
    return describe_source(capture_source(2))


def raised_at(error: BaseException) -> str:
    """Return the innermost of the user's lines that an exception came through, as text; "" if no line is the user's."""
    line, traceback = "", error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename != "<corejax>" and not _is_internal(code.co_filename):  # a marker of removed frames
            line = f"{code.co_filename}:{traceback.tb_lineno} ({code.co_name})"
        traceback = traceback.tb_next
    return line


def needed(words: str, source: Source | None = None) -> str:
    """Return `words` and a user's line, by default the running one; "" if no user code is running, as in commands."""
    location = locate_source(source if source is not None else capture_source(2))
    return f"{words} {location}" if location else ""


warnings_given = [0]  # counts warnings of `warn_user`, shown or not, and checks that `called_as` left out
_warned: dict[str, dict[Any, Any]] = {}  # user's file -> registry of the warnings that were shown


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line that is running now, once for each line, however deep in the library the call is."""
    warnings_given[0] += 1
    place = locate_source(capture_source(2))
    if place is None:
        warnings.warn(text, category, stacklevel=2)
    else:
        warnings.warn_explicit(text, category, place.file, place.line, registry=_warned.setdefault(place.file, {}))


def register_caller() -> None:
    """Declare the files of all running functions, which have started a command, as library code."""
    _callers.update(frame.f_code.co_filename for frame in _outwards(sys._getframe(1)))
    _internal_files.clear()
