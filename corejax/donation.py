"""Arrays whose memory a program takes for its results: after the call they are deleted, and say to whom they went."""

from __future__ import annotations

from collections.abc import Iterable

from corejax import source_info
from corejax.array import Array, Deleted, device_buffer
from corejax.restoring import Restoring


class _Donating(Restoring):
    __slots__ = ("arrays", "name")

    def __init__(self, arrays: Iterable[Array], name: str) -> None:
        self.arrays = arrays
        self.name = name

    def __enter__(self) -> None:
        for x in self.arrays:
            if device_buffer(x) is not None:
                _ = x.aval
                x._host = None  # a view is made again when it is asked for; memory with views would be copied

    def restore(self) -> None:
        """Mark those whose buffers were taken."""
        taken = [x for x in self.arrays if type(device_buffer(x)) is not Deleted and x.is_deleted()]
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


def donating(arrays: Iterable[Array], name: str) -> Restoring:
    """For a `with` block that calls a program with donated arguments.

    Args:
        arrays: the donated ones; those whose buffers the backend says are taken (`Backend.is_deleted`) are deleted
            afterwards, also where the call fails.
        name: the function's, for the error of who uses them.
    """
    return _Donating(arrays, name)
