"""Where programs are listed, and numbers for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A program `function(library, *args)` for jax or corejax.

    Attributes:
        function: the program.
        args: its arguments, of NumPy arrays.
        grad: which of them it is differentiated by; None where it is not.
        tolerance: how exactly results agree.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    grad: tuple[int, ...] | None
    tolerance: float


PROGRAMS: dict[str, Program] = {}


def program(*args: Any, grad: tuple[int, ...] | None = (0,), tol: float = 2e-4) -> Callable[..., Any]:
    """List a function as a program; see `Program`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(function, args, grad, tol)
        return function

    return register


def floats(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Normally distributed numbers, in single precision."""
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def integers(high: int, *shape: int, seed: int = 0) -> Any:
    """Numbers from 0 to `high`, which is not included."""
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)
