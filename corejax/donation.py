"""Arrays whose memory a program takes for its results: after the call they are deleted, and say to whom they went."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corejax import source_info
from corejax.array import Array, Deleted, device_buffer
from corejax.backends import backends
from corejax.restoring import Restoring


class _Donating(Restoring):
    __slots__ = ("arrays", "held", "name")

    def __init__(self, arrays: Iterable[Array], name: str) -> None:
        self.arrays = list(arrays)
        self.name = name
        self.held: list[Any] = []  # the arrays' buffers

    def __enter__(self) -> None:
        held = [device_buffer(x) for x in self.arrays]
        for x, buffer in zip(self.arrays, held, strict=True):
            if buffer is not None:
                x._host = None  # a view is made again when it is asked for; memory with views would be copied
        self.held = held

    def restore(self) -> None:
        """Mark those whose buffers were taken."""
        taken = [x for x, buffer in zip(self.arrays, self.held, strict=False) if _is_taken(x, buffer)]
        if taken:
            deleted = Deleted(
                f"it was donated to the jitted function {self.name}, whose result has its memory now; use the result, "
                "donate a copy (x.copy()), or do not donate",
                source_info.capture(),
            )
            for x in taken:
                _ = x.aval
                x._buf = deleted
                x._host = None
        self.held = []  # done: the second time there is nothing left


def _is_taken(x: Array, buffer: Any) -> bool:
    """Whether a program took an array's buffer: the one that it had, or one that was made of its value."""
    found = device_buffer(x) if buffer is None else buffer
    backend = backends.of_buffer(found)
    return backend is not None and backend.is_deleted(found)


def donating(arrays: Iterable[Array], name: str) -> Restoring:
    """For a `with` block that calls a program with donated arguments.

    Args:
        arrays: the donated ones; those whose buffers the backend says are taken (`Backend.is_deleted`) are deleted
            afterwards, also where the call fails.
        name: the function's, for the error of who uses them.
    """
    return _Donating(arrays, name)
