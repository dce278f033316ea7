"""Public: what a translation means, for those who write and check translation rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import tree
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._jit.stages import Lowered


def reference_eval(lowered: Lowered, *args: Any) -> list[np.ndarray[Any, Any]]:
    """The results of a lowered program by StableHLO's reference interpreter: slow, simple, independent of XLA.

    Args:
        lowered: from `jit(f).lower(*args)`.
        args: the arguments, concrete, of the types that it was lowered for.

    Returns:
        The results as flat list of arrays.

    Raises:
        TypeError: the arguments do not fit.
        RuntimeError: the interpreter does not implement an operation, or is known to end the process on it: custom
            calls, `fft`. (Empty contractions and integer division by zero, on which it does too, are not found out.)
    """
    program, operands = program_and_operands(lowered, *args)
    for operation in ("stablehlo.custom_call", "stablehlo.fft"):
        if f'"{operation}"' in program:
            raise RuntimeError(f"the interpreter ends the process on {operation}")
    return interpret(program, operands)


def program_and_operands(lowered: Lowered, *args: Any) -> tuple[str, list[np.ndarray[Any, Any]]]:
    """A lowered program as text, and the operands of its `main` for these arguments: plain values, which can be sent
    to another process."""
    leaves = [*lowered.consts, *tree.tree_leaves((args, {}))]
    used = [np.asarray(x) for x, keep in zip(leaves, lowered.lowering.kept, strict=True) if keep]
    return lowered.as_text(pretty=False), used


def interpret(program: str, operands: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """As `reference_eval`, of what `program_and_operands` gives; for a process that may end."""
    return _jaxlib.reference_eval(program, list(operands))  # type: ignore[no-any-return]
