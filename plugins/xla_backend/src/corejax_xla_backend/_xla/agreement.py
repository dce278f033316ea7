"""The check that all processes that share a program's devices run the same program.

Processes with different programs would wait for each other's messages forever. Before its first run of a program, each
process writes the program's digest to the coordinator's key-value store and reads the digests of the others. A process
that does not write within `PATIENCE` seconds may only be late, so that the check then passes.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import BackendError
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._lowering.locations import without_locations
from corejax_xla_backend._xla.digests import sha256

PATIENCE = 20.0  # seconds to wait for the other processes to reach their first run of the program

_lock = threading.Lock()
_runs: dict[str, int] = {}  # digest of a set of processes -> number of programs that they have compared


def check_before_runs(text: str, devices: Sequence[Any]) -> Callable[[], None] | None:
    """Return the function that compares a program with those of other processes; None if nothing is compared.

    A program that contains an address of this process cannot be compared.
    """
    if _jaxlib.connection() is None or not devices or "InspectSharding" in text:
        return None
    return _Agreement(text, devices).check


class _Agreement:
    """The comparison of one program between the processes of its devices; it runs once."""

    def __init__(self, text: str, devices: Sequence[Any]) -> None:
        text = without_locations(text)
        name = re.match(r"module @(\w+)", text)
        self.name = name[1] if name else "main"
        self.processes = sorted({device.process_index for device in devices})
        signature = re.search(r"func\.func public @main\((.*?)\) -> ", text, re.S)
        self.types = ", ".join(re.findall(r"tensor<([^>]*)>", signature[1])) if signature else ""
        self._digest = sha256(text.encode()).hexdigest()
        self._checked = False
        self._difference = ""  # the message of a failed comparison, raised again at each later run

    def check(self) -> None:
        """Raise BackendError if another process runs another program."""
        if self._difference:
            raise BackendError(self._difference)
        connection = _jaxlib.connection()
        with _lock:
            if self._checked or connection is None or self.processes == [connection.process_id]:
                return
            self._checked = True
            group = sha256(repr(self.processes).encode()).hexdigest()[:16]
            number = _runs[group] = _runs.get(group, 0) + 1
        folder, own = f"corejax/programs/{group}/{number}/", connection.process_id
        connection.client.key_value_set(f"{folder}{own}", f"{self._digest}\n{self.name}\n{self.types}")
        # The first process reads all entries and the others read the first one's, which keeps the messages few.
        needed = self.processes if own == self.processes[0] else self.processes[:1]
        until, pause = time.monotonic() + PATIENCE, 0.001
        while True:
            entries = {int(key.rpartition("/")[2]): value for key, value in _read(connection.client, folder, needed)}
            for process, value in sorted(entries.items()):
                self._compare(own, process, *value.split("\n"))
            if len(entries) == len(needed) or time.monotonic() > until:
                return
            time.sleep(pause)
            pause = min(2 * pause, 0.2)

    def _compare(self, own: int, process: int, digest: str, name: str, types: str) -> None:
        """Raise BackendError if another process's program has another digest."""
        if digest == self._digest:
            return
        if (name, types) == (self.name, self.types):
            what = f"another program {name} of arguments of the same types ({types})"
        else:
            what = f"the program {name} of ({types})"
        self._difference = (
            f"process {own} runs the program {self.name} of ({self.types}) on devices that it shares with process "
            f"{process}, which runs {what}. All processes must run the same programs in the same order: a program must "
            "not depend on the process, or on data that only one process has"
        )
        raise BackendError(self._difference)


def _read(client: Any, folder: str, processes: Sequence[int]) -> list[tuple[str, str]]:
    """Return the entries of some processes that exist by now, as keys and values."""
    if len(processes) > 1:
        return list(client.key_value_dir_get(folder))
    key = f"{folder}{processes[0]}"
    try:
        return [(key, client.blocking_key_value_get(key, 200))]
    except RuntimeError:  # the process has not written yet
        return []
