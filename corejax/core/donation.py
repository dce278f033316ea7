"""Arrays whose memory a program takes for its results: after the call they are deleted, and say to whom they went.

All of a call's donated arrays are looked at around it, so little is done for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corejax.base.restoring import Restoring
from corejax.core.array import Array, Deleted, GivenUp, held_buffers, numbers_held
from corejax.core.backends import backends
from corejax.messages import source_info

_new = tuple.__new__


class _Donating(Restoring):
    __slots__ = ("arrays", "held", "name")

    def __init__(self, arrays: Iterable[Array], name: str) -> None:
        self.arrays = list(arrays)
        self.name = name
        self.held: list[Any] = []  # what the arrays hold of devices

    def __enter__(self) -> None:
        held = held_buffers(self.arrays)
        there = self.arrays
        if _some_on_host(held):
            there = [x for x, buffer in zip(there, held, strict=True) if buffer is not None]
        for x in there:
            x._host = None  # a view is made again when it is asked for; memory with views would be copied
        self.held = held

    def restore(self) -> None:
        """Mark those whose buffers were taken."""
        arrays, held, self.held = self.arrays, self.held, []  # done: the second time there is nothing left
        if _some_on_host(held):  # a buffer was made of what was on the host only
            held = held_buffers(arrays)
        taken = _taken(held)
        if True not in taken:
            return
        if False in taken:
            arrays = [x for x, gone in zip(arrays, taken, strict=True) if gone]
            held = [buffer for buffer, gone in zip(held, taken, strict=True) if gone]
        why = GivenUp(
            f"it was donated to the jitted function {self.name}, whose result has its memory now; use the result, "
            "donate a copy (x.copy()), or do not donate",
            source_info.capture_source(),
        )
        for x, buffer in zip(arrays, held, strict=False):
            x._buf = _new(Deleted, (why, buffer.aval))
            x._host = None


def _some_on_host(held: Sequence[Any]) -> bool:
    return type(None) in set(map(type, held))  # `in` alone asks buffers whether they are equal to None


def _taken(held: Sequence[Any]) -> list[bool]:
    """Whether a program took each buffer that arrays hold."""
    backend = backends.of_buffer(held[0]) if held else None
    if backend is not None and set(map(type, held)) == {backend.buffer_type}:
        return [*map(backend.is_deleted, held)]
    return [_is_taken(buffer) for buffer in held]


def _is_taken(held: Any) -> bool:
    buffer = numbers_held(held)
    backend = backends.of_buffer(buffer)
    return backend is not None and backend.is_deleted(buffer)


def donating(arrays: Iterable[Array], name: str) -> Restoring:
    """For a `with` block that calls a program with donated arguments.

    Args:
        arrays: the donated ones; those whose buffers the backend says are taken (`Backend.is_deleted`) are deleted
            afterwards, also where the call fails.
        name: the function's, for the error of who uses them.
    """
    return _Donating(arrays, name)
