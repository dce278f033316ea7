"""What jax gives for the same operands in every run: recorded in `tests/fixtures/jax`, where jax takes seconds for it.

`REWRITE_FIXTURES=1 pytest FILE` asks jax and records anew, after a change of operands or programs; read the difference
of results before you commit it. `make test-slow` asks jax, and finds a record that is out of date.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent / "fixtures" / "jax"
REWRITE = "REWRITE_FIXTURES" in os.environ
LIVE = False  # tests/conftest.py sets it


class Recorded:
    """Lists of arrays by name, in a file."""

    def __init__(self, name: str) -> None:
        self.file = HERE / f"{name}.npz"
        self.arrays: dict[str, np.ndarray] = {}
        if REWRITE:
            atexit.register(self._write)
        elif self.file.exists():
            with np.load(self.file) as archive:
                self.arrays = dict(archive)

    def of(self, name: str, ask: Callable[[], Iterable[Any]]) -> list[np.ndarray]:
        """The arrays of this name; those that jax gives, if there are none or jax is to be asked."""
        found = sorted((key for key in self.arrays if key.rpartition(" ")[0] == name), key=_number)
        if found and not LIVE:
            return [self.arrays[key] for key in found]
        asked = [np.asarray(x) for x in ask()]
        if REWRITE:
            self.arrays |= {f"{name} {i}": x for i, x in enumerate(asked)}
        return asked

    def _write(self) -> None:
        if not self.arrays:  # asked for in a process of the tests' own
            return
        HERE.mkdir(exist_ok=True)
        np.savez_compressed(self.file, **self.arrays)  # type: ignore[arg-type]


def _number(key: str) -> int:
    return int(key.rpartition(" ")[2])
