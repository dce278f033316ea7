"""`effects_barrier`: waiting for programs that call back."""

from __future__ import annotations

from corejax_xla_backend._callbacks import under_way


def effects_barrier() -> None:
    """Wait until the programs with callbacks that run now, in any thread, have run.

    A call of one waits for its own, so that there is nothing to wait for in a program of one thread. In a callback it
    returns at once: its own program waits for that.
    """
    under_way.wait()
