"""Frames of libraries: errors name the user's line outside these frames."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from corejax.extend.messages import register_internal

_directories = [os.path.dirname(__file__) + os.sep]  # of files without frames in libraries' messages


def register_exclusion(path: str) -> None:
    """Declare the package of a file as library code."""
    _exclude(os.path.dirname(path))


def _exclude(directory: str) -> None:
    register_internal(directory)
    _directories.append(os.path.join(os.path.abspath(directory), ""))


class _ExcludedPaths(list[str]):
    """A list of files and directories; appending one declares it as library code."""

    def append(self, path: str) -> None:
        """Declare a file's package, or a directory, as library code."""
        super().append(path)
        _exclude(os.path.dirname(path) if path.endswith(".py") else path)


exclude_paths = _ExcludedPaths()


def api_boundary(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return the function unchanged; corejax shortens tracebacks itself."""
    return function


def include_frame(frame: Any) -> bool:
    """Return whether a frame is the program's: not corejax's, and not in a library that has excluded itself."""
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    own = package in ("corejax", "runpy") or package.startswith("corejax_")
    return not own and not frame.f_code.co_filename.startswith(tuple(_directories))
