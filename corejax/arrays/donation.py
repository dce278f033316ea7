"""Donation: a program reuses the memory of an argument for its results; the argument is deleted by the call."""

from __future__ import annotations

from collections.abc import Iterable

from corejax.arrays.array import Array, Deleted, DeletionReason, held_buffers, numbers_held
from corejax.arrays.backends import backends
from corejax.base.restoring import Restoring
from corejax.messages import source_info


class _Donating(Restoring):
    __slots__ = ("arrays", "name")

    def __init__(self, arrays: Iterable[Array], name: str) -> None:
        self.arrays = list(arrays)
        self.name = name

    def __enter__(self) -> None:
        for x, buffer in zip(self.arrays, held_buffers(self.arrays), strict=True):
            if buffer is not None:
                x._host = None  # the backend cannot reuse memory that has views; reading the value makes a new view

    def restore(self) -> None:
        """Mark arrays as deleted if the program took their buffers."""
        arrays, self.arrays = self.arrays, []  # `restore` may be called twice
        why = None
        for x, held in zip(arrays, held_buffers(arrays), strict=True):
            buffer = numbers_held(held)
            backend = backends.of_buffer(buffer)
            if backend is not None and backend.is_deleted(buffer):
                why = why or DeletionReason(
                    f"it was donated to the jitted function {self.name}, which reused its memory for the result; use "
                    "the result, donate a copy (x.copy()), or do not donate",
                    source_info.capture_source(),
                )
                x._buf = Deleted(why, held.aval)
                x._host = None


def donating(arrays: Iterable[Array], name: str) -> Restoring:
    """Return a context manager for the call of a program with donated arguments.

    Args:
        arrays: the donated arrays. After the block, also after an error, an array is marked as deleted if the program
            took its buffer (`Backend.is_deleted`).
        name: the function's name, for the error that using a deleted array raises.
    """
    return _Donating(arrays, name)
