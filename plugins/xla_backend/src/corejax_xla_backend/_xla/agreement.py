"""Processes that share a program's devices run the same program: otherwise each waits for what the others never send.

Before its first run of a program each of them writes down which one it is, in the coordinator's table, and reads what
the others wrote. A process that does not come in a while is not waited for: it may be late.
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

PATIENCE = 20.0  # seconds for all others to come to their first run of the program

_lock = threading.Lock()
_runs: dict[str, int] = {}  # processes -> programs that they have run first


def check_before_runs(text: str, devices: Sequence[Any]) -> Callable[[], None] | None:
    """What compares a program with those of other processes, if there are any.

    What holds an address of this process is not compared.
    """
    if _jaxlib.connection() is None or not devices or "InspectSharding" in text:
        return None
    return _Agreement(text, devices).check


class _Agreement:
    """That the processes of a program's devices run the same one, compared once."""

    def __init__(self, text: str, devices: Sequence[Any]) -> None:
        text = without_locations(text)
        name = re.match(r"module @(\w+)", text)
        self.name = name[1] if name else "main"
        self.processes = sorted({device.process_index for device in devices})
        found = re.search(r"func\.func public @main\((.*?)\) -> ", text, re.S)
        self.types = ", ".join(re.findall(r"tensor<([^>]*)>", found[1])) if found else ""
        self._digest = sha256(text.encode()).hexdigest()
        self._checked = False
        self._difference = ""  # what was found, for each further try

    def check(self) -> None:
        """Compare with what the others run.

        Raises:
            BackendError: one runs another program.
        """
        if self._difference:
            raise BackendError(self._difference)
        connection = _jaxlib.connection()
        with _lock:
            if self._checked or connection is None or self.processes == [connection.process_id]:
                return
            self._checked = True
            everyone = sha256(repr(self.processes).encode()).hexdigest()[:16]
            number = _runs[everyone] = _runs.get(everyone, 0) + 1
        folder, own = f"corejax/programs/{everyone}/{number}/", connection.process_id
        connection.client.key_value_set(f"{folder}{own}", f"{self._digest}\n{self.name}\n{self.types}")
        # The first one reads what all have written, the others what it has: so few messages are enough.
        needed = self.processes if own == self.processes[0] else self.processes[:1]
        until, pause = time.monotonic() + PATIENCE, 0.001
        while True:
            written = {int(key.rpartition("/")[2]): value for key, value in _read(connection.client, folder, needed)}
            for process, value in sorted(written.items()):
                self._compare(own, process, *value.split("\n"))
            if len(written) == len(needed) or time.monotonic() > until:
                return
            time.sleep(pause)
            pause = min(2 * pause, 0.2)

    def _compare(self, own: int, process: int, digest: str, name: str, types: str) -> None:
        if digest == self._digest:
            return
        if (name, types) == (self.name, self.types):
            what = f"a program {name} of arguments of the same types ({types}), but another one"
        else:
            what = f"the program {name} of ({types})"
        self._difference = (
            f"process {own} runs the program {self.name} of ({self.types}) on devices that it shares with process "
            f"{process}, which runs {what}. All processes run the same programs in the same order: what a program "
            "is made of may not depend on the process, or on data that only one has"
        )
        raise BackendError(self._difference)


def _read(client: Any, folder: str, processes: Sequence[int]) -> list[tuple[str, str]]:
    if len(processes) > 1:
        return list(client.key_value_dir_get(folder))
    key = f"{folder}{processes[0]}"
    try:
        return [(key, client.blocking_key_value_get(key, 200))]
    except RuntimeError:  # it is not there yet
        return []
