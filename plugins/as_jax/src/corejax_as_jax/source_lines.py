"""Frames of libraries: errors name the user's line outside these frames."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from corejax.extend.messages import register_internal


def register_exclusion(path: str) -> None:
    """Declare the package of a file as library code."""
    register_internal(os.path.dirname(path))


class _ExcludedPaths(list[str]):
    """A list of files and directories; appending one declares it as library code."""

    def append(self, path: str) -> None:
        """Declare a file's package, or a directory, as library code."""
        super().append(path)
        register_internal(os.path.dirname(path) if path.endswith(".py") else path)


exclude_paths = _ExcludedPaths()


def api_boundary(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return the function unchanged; corejax shortens tracebacks itself."""
    return function


def include_frame(frame: Any) -> bool:
    """Return True; corejax decides itself which frames a traceback shows."""
    return True
