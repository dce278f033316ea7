"""Which frames are a library's own: errors name the user's line outside of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from corejax.extend.messages import register_internal


def register_exclusion(path: str) -> None:
    """Declare the package of a file as library code."""
    register_internal(os.path.dirname(path))


class _ExcludedPaths(list):
    """A list of files and directories; what is added to it is library code."""

    def append(self, path: str) -> None:
        """Declare a file's package, or a directory, as library code."""
        super().append(path)
        register_internal(os.path.dirname(path) if path.endswith(".py") else path)


exclude_paths = _ExcludedPaths()


def api_boundary(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return the function: corejax shortens tracebacks by itself."""
    return function


def include_frame(frame: Any) -> bool:
    """Return True: corejax decides by itself which frames tracebacks show."""
    return True
