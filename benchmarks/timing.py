"""Best of several rounds, two sides in turn, so that a slow spell of the machine hits both."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One case's outcome, in seconds for one call (or in another unit).

    Attributes:
        name: the case.
        ours: best time of corejax.
        theirs: best time of jax.
        wanted: the ratio that the project wants, or None.
        numpy: best time of NumPy, where that counts too.
        unit: of the numbers: "s", or "MiB".
    """

    name: str
    ours: float
    theirs: float
    wanted: float | None
    numpy: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """corejax / jax, or the better of jax and NumPy."""
        return self.ours / min(self.theirs, self.numpy or self.theirs)

    @property
    def reached(self) -> bool | None:
        """Whether the wanted ratio is reached."""
        return None if self.wanted is None else self.ratio <= self.wanted


def best_of_each(sides: Sequence[Callable[[], object]], rounds: int, budget: float) -> list[float]:
    """Best time of one call of each.

    Args:
        sides: what is called; each is called beforehand, too.
        rounds: how often each is timed.
        budget: seconds that one round of one side may take, at most.
    """
    counts = [max(1, int(budget / _once(side))) for side in sides]
    best = [float("inf")] * len(sides)
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()  # what is there now is not looked at again before each round
    try:
        for _ in range(rounds):
            for i, side in enumerate(sides):
                gc.collect()
                gc.disable()
                best[i] = min(best[i], _time(side, counts[i]))
                gc.enable()
    finally:
        gc.unfreeze()
        gc.enable() if was_enabled else gc.disable()
    return best


def _once(side: Callable[[], object]) -> float:
    side()
    side()
    return max(_time(side, 1), 1e-7)


def _time(side: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        side()
    return (time.perf_counter() - start) / count


def process_time(program: str, rounds: int) -> float:
    """Best wall time of a fresh Python that runs a program, its modules compiled before as an installation does."""
    output_of(program)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        output_of(program)
        best = min(best, time.perf_counter() - start)
    return best


def output_of(program: str, **variables: str) -> str:
    """Return what a fresh Python prints that runs a program, with variables added to the environment.

    The byte code of modules is kept.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | variables
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=environment, text=True)
    return done.stdout
