"""A program that saves over and over, each time in a process that is killed one step later than the one before.

    crashing.py DIRECTORY

Steps are what Python tells audit hooks about files: opening, renaming, removing, making directories.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from corejax import checkpoints

STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.scandir", "shutil.rmtree"}
SHAPE = (1000,)


def tree(number: int) -> Any:
    return {"w": np.full(SHAPE, number), "number": number}


def killed_at(step: int, path: Path, number: int) -> bool:
    """Save in a process that is killed at a step; whether it had ended before."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    left = [step]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in STEPS and str(path.parent) in str(args[0]):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    checkpoints.save(path, tree(number), overwrite=True)
    os._exit(0)


def check(path: Path, allowed: set[int]) -> int:
    """The number of the checkpoint that is there: whole, and one of those."""
    found = checkpoints.restore(path)
    checkpoints.verify(path)
    assert found["number"] in allowed and (found["w"] == found["number"]).all(), found
    return int(found["number"])


def replaced(path: Path) -> tuple[int, int]:
    """Crashes while a checkpoint is replaced: steps that there are, and of how many the old one was left."""
    checkpoints.save(path, tree(0))
    there, olds, step = 0, 0, 0
    while True:
        ended = killed_at(step, path, step + 1)
        now = check(path, {there, step + 1})
        if ended:
            assert now == step + 1
            break
        olds += now == there
        there, step = now, step + 1
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name], "leftovers are gone"
    assert len(list(path.iterdir())) == 2
    return step, olds


def new(path: Path) -> tuple[int, int]:
    """Crashes while a checkpoint is made where none was: steps, and of how many none was left."""
    none, step = 0, 0
    while True:
        ended = killed_at(step, path, step)
        if not path.exists():
            none += 1
        else:
            check(path, {step})
            if ended:
                return step, none
            for file in sorted(path.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
            path.rmdir()
        assert not ended
        step += 1


if __name__ == "__main__":
    for name in ("new", "replaced"):
        place = Path(sys.argv[1]) / name
        place.mkdir()
        print(name, *globals()[name](place / "c"))
