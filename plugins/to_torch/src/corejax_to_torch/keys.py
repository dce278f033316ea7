"""Keys of programs: the operators of PyTorch take strings, and find the programs by them.

PyTorch keeps compiled programs on disk by the text of their graphs, which has the keys, so no two keys are equal, not
even in two processes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import torch

from corejax.extend import ClosedJaxpr
from corejax_to_torch.tensors import aval_of

Stage = Callable[[tuple[Any, ...]], ClosedJaxpr]

_stages: dict[str, Stage] = {}  # key -> function from types of arguments to the program


def register(name: str, stage: Stage) -> str:
    """Return a new key for the function that stages a program; `name` is for messages."""
    key = f"{name}#{uuid.uuid4().hex}"
    _stages[key] = stage
    return key


def name_of(closed: ClosedJaxpr) -> str:
    """Return the name of a program's first primitive, for messages."""
    return next((eqn.primitive.name for eqn in closed.eqns), "identity")


def key_of(closed: ClosedJaxpr) -> str:
    """Return the key of a program, the same at every call."""
    key: str | None = closed.memo.get("to_torch.key")
    if key is None:
        key = closed.memo["to_torch.key"] = register(name_of(closed), lambda avals: closed)
    return key


def stage(key: str, avals: tuple[Any, ...]) -> ClosedJaxpr:
    """Return the program of a key for types of arguments.

    Raises:
        LookupError: the key is of another process.
    """
    found = _stages.get(key)
    if found is None:
        raise LookupError(
            f"to_torch: {key.partition('#')[0]}: the exported program is of another process; bridge and export it in "
            "this one"
        )
    return found(avals)


def staged(key: str, xs: Sequence[torch.Tensor]) -> ClosedJaxpr:
    """Return the program of a key for the types of tensors."""
    name = key.partition("#")[0]
    return stage(key, tuple([aval_of(x, name) for x in xs]))
