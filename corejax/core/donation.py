"""Arrays whose memory a program takes for its results: after the call they are deleted, and say to whom they went."""

from __future__ import annotations

from collections.abc import Iterable

from corejax.base.restoring import Restoring
from corejax.core.array import Array, Deleted, GivenUp, held_buffers, numbers_held
from corejax.core.backends import backends
from corejax.messages import source_info


class _Donating(Restoring):
    __slots__ = ("arrays", "name")

    def __init__(self, arrays: Iterable[Array], name: str) -> None:
        self.arrays = list(arrays)
        self.name = name

    def __enter__(self) -> None:
        for x, buffer in zip(self.arrays, held_buffers(self.arrays), strict=True):
            if buffer is not None:
                x._host = None  # a view is made again when it is asked for; memory with views would be copied

    def restore(self) -> None:
        """Mark those whose buffers were taken."""
        arrays, self.arrays = self.arrays, []  # done: the second time there is nothing left
        why = None
        for x, held in zip(arrays, held_buffers(arrays), strict=True):
            buffer = numbers_held(held)
            backend = backends.of_buffer(buffer)
            if backend is not None and backend.is_deleted(buffer):
                why = why or GivenUp(
                    f"it was donated to the jitted function {self.name}, whose result has its memory now; use the "
                    "result, donate a copy (x.copy()), or do not donate",
                    source_info.capture_source(),
                )
                x._buf = Deleted(why, held.aval)
                x._host = None


def donating(arrays: Iterable[Array], name: str) -> Restoring:
    """For a `with` block that calls a program with donated arguments.

    Args:
        arrays: the donated ones; those whose buffers the backend says are taken (`Backend.is_deleted`) are deleted
            afterwards, also where the call fails.
        name: the function's, for the error of who uses them.
    """
    return _Donating(arrays, name)
