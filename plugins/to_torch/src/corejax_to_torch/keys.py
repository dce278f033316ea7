"""Keys of programs: the operators of PyTorch take strings, and find the programs by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from corejax.extend import ClosedJaxpr
from corejax_to_torch.tensors import aval_of

Stage = Callable[[tuple[Any, ...]], ClosedJaxpr]

_stages: dict[str, Stage] = {}  # key -> function from types of arguments to the program


def register(key: str, stage: Stage) -> None:
    """Register the function that stages the program of a key."""
    _stages[key] = stage


def name_of(closed: ClosedJaxpr) -> str:
    """Return the name of a program's first primitive, for messages."""
    return next((eqn.primitive.name for eqn in closed.eqns), "identity")


def key_of(closed: ClosedJaxpr) -> str:
    """Return the key of a program, the same at every call."""
    key: str | None = closed.memo.get("to_torch.key")
    if key is None:
        key = closed.memo["to_torch.key"] = f"{name_of(closed)}#program{len(_stages)}"
        register(key, lambda avals: closed)
    return key


def stage(key: str, avals: tuple[Any, ...]) -> ClosedJaxpr:
    """Return the program of a key for types of arguments."""
    return _stages[key](avals)


def staged(key: str, xs: Sequence[torch.Tensor]) -> ClosedJaxpr:
    """Return the program of a key for the types of tensors."""
    name = key.partition("#")[0]
    return stage(key, tuple([aval_of(x, name) for x in xs]))
