"""jaxlib's C++ dispatchers, as long as they live; without an import of jaxlib."""

from __future__ import annotations

from typing import Any

from ._live import LiveSet

dispatchers: LiveSet[Any] = LiveSet()


def clear_dispatchers() -> None:
    """Have all dispatchers forget their signatures, and the programs that they run."""
    for dispatcher in dispatchers:
        dispatcher._clear_cache()
