"""Time two checkouts of this project against each other: `python benchmarks/against.py DIRECTORY [WORD ...]`.

The rows are the cases of `cases/`, matched by name, without those whose time is that of compiled code. Each checkout
runs its own rows in a process of its own, with the environment `.venv` of the checkout. Both processes run on one
processor, in turn for each round. The table has the CPU time of the best round of each, and the median of the ratios of
the rounds: the processor's speed varies with other load, but not within a round. Both processes are started several
times, because the layout of memory differs from process to process.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve()
COMPILED = ("compiled ", "first call of ")
BATCH = 1e-3  # seconds
STARTS = 3
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def serve(devices: int, budget: float) -> None:
    """Time rows in this process: print their names, then read names and print the time of a round of each.

    Args:
        devices: how many devices the rows want.
        budget: seconds of CPU time that a round takes; more if one call takes longer.
    """
    from cases import CASES  # the checkout's own: its folder of benchmarks is on the path

    cases = {c.name: c for c in CASES if c.devices == devices and not c.name.startswith(COMPILED)}
    print(json.dumps(list(cases)), flush=True)
    rows: dict[str, tuple[Any, int]] = {}
    for line in sys.stdin:
        name = line.rstrip("\n")
        try:
            if name not in rows:
                rows = {name: _ready(cases[name].make()[0])}
            print(_round(*rows[name], budget), flush=True)
        except Exception as error:  # an old checkout may lack what a row needs
            print(f"{type(error).__name__}: {error}".splitlines()[0], flush=True)


def _ready(call: Any) -> tuple[Any, int]:
    """Return a call that has run a few times, and how often it runs in a batch of a millisecond."""
    for _ in range(3):
        call()
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # the collections before each round do not visit what is there now
    return call, max(1, int(BATCH / max(_seconds_of(call, 1), 1e-7)))


def _round(call: Any, count: int, budget: float) -> float:
    """Return the CPU time of one call in the best of the batches of a round: short ones are seldom disturbed."""
    gc.collect()
    gc.disable()
    end = time.process_time() + budget
    best = _seconds_of(call, count)
    while time.process_time() < end:
        best = min(best, _seconds_of(call, count))
    gc.enable()
    return best


def _seconds_of(call: Any, count: int) -> float:
    """Return the CPU time of one call, as the mean of `count` calls."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


class Side:
    """A process that times the rows of a checkout.

    Attributes:
        names: the names of its rows.
        faults: errors of rows that do not run there, by name.
    """

    def __init__(self, checkout: pathlib.Path, devices: int, budget: float) -> None:
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
        variables = {"COREJAX_NUM_CPU_DEVICES": str(devices), "XLA_FLAGS": flags, "COREJAX_COMPILATION_CACHE_DIR": ""}
        # With one seed, sets and dicts of both have the same layout.
        variables |= {"PYTHONPATH": str(checkout / "benchmarks"), "PYTHONHASHSEED": "0"}
        command = [checkout / ".venv/bin/python", "-P", HERE, "--serve", str(devices), "--budget", str(budget)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=os.environ | variables)
        self.names: list[str] = json.loads(self._line())
        self.faults: dict[str, str] = {}

    def _line(self) -> str:
        """Return the next line that the process prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} ended")
        return line

    def time(self, name: str) -> float:
        """Return the CPU time of one call of a row; infinite if the row does not run."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        line = self._line()
        try:
            return float(line)
        except ValueError:
            self.faults[name] = line.strip()
            return math.inf


@contextlib.contextmanager
def sides(checkouts: list[pathlib.Path], devices: int, budget: float) -> Iterator[list[Side]]:
    """Start the processes of the checkouts, and end them on exit."""
    started = [Side(checkout, devices, budget) for checkout in checkouts]
    try:
        yield started
    finally:
        for side in started:
            side.process.kill()
            side.process.wait()


def measure(
    checkouts: list[pathlib.Path], devices: int, words: list[str], rounds: int, budget: float
) -> dict[str, list[tuple[float, float]]]:
    """Return the times of the rounds of each row that both checkouts have, and print which rows are left out.

    The rounds are spread over `STARTS` processes of each checkout.
    """
    times: dict[str, list[tuple[float, float]]] = {}
    for start in range(STARTS):
        with sides(checkouts, devices, budget) as (base, now):
            both = [n for n in now.names if n in base.names and (not words or any(word in n for word in words))]
            for number, name in enumerate(both, 1):
                print(f"\r\033[K{start + 1}/{STARTS} {number}/{len(both)} {name}", end="", file=sys.stderr, flush=True)
                found = [(base.time(name), now.time(name)) for _ in range(math.ceil(rounds / STARTS))]
                times[name] = times.get(name, []) + found
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    for name in sorted({*now.names} ^ {*base.names}) if not words else ():
        print(f"only {'now' if name in now.names else 'in the base'}: {name}")
    for name, fault in (base.faults | now.faults).items():
        print(f"does not run: {name}: {fault}")
        del times[name]
    return times


def _amount(seconds: float) -> str:
    """Return seconds in a unit that suits them."""
    scale, unit = next(((scale, unit) for scale, unit in UNITS if seconds >= scale), UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def main() -> None:
    """Measure, and print the rows with their ratios, in order."""
    parser = argparse.ArgumentParser(description="two checkouts against each other")
    parser.add_argument("base", nargs="?", type=pathlib.Path, help="the other checkout, with an environment .venv")
    parser.add_argument("words", nargs="*", help="only rows whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=21, help="rounds of each row (default 21)")
    parser.add_argument("--budget", type=float, default=0.005, help="seconds of a round (default 0.005)")
    parser.add_argument("--devices", type=int, default=1, help="rows of how many devices: 1 (default) or 8")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)  # in the process of a checkout
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.budget)
        return
    if options.base is None or not (options.base / ".venv").is_dir():
        parser.error("name a checkout that has an environment .venv")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # inherited by both processes
    checkouts = [options.base.resolve(), HERE.parents[1]]
    times = measure(checkouts, options.devices, options.words, options.rounds, options.budget)
    if not times:
        parser.error("no row has such a name")
    ratios = {name: statistics.median(now / base for base, now in found) for name, found in times.items()}
    print(f"{'base':>9}  {'now':>9}  ratio")
    for name in sorted(ratios, key=lambda name: ratios[name]):
        base, now = (min(column) for column in zip(*times[name], strict=True))
        print(f"{_amount(base):>9}  {_amount(now):>9}  {ratios[name]:5.3f}  {name}")
    print(f"median of {len(ratios)} rows: {statistics.median(ratios.values()):.3f}")


if __name__ == "__main__":
    main()
