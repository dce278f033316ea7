"""Matrices for tests, and what compares results with jax's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
from tests.recorded import Recorded

DTYPES = ("float32", "float64", "complex64", "complex128")


def random(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Normally distributed numbers."""
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def definite(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Positive definite matrices `[..., n, n]`."""
    a = random(*shape, dtype=dtype, seed=seed)
    return (a @ adjoint(a) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def adjoint(x: Any) -> Any:
    """Conjugate transposes."""
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


def close(got: Any, wanted: Any, tolerance: float | None = None, message: str = "") -> None:
    """One dtype (of integers any: jax has 64 bits or 32), one shape, and values up to rounding."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, message
    assert got.dtype == wanted.dtype or got.dtype.kind == wanted.dtype.kind == "i", message
    if tolerance is None:
        tolerance = 2e-3 if got.dtype.name in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=message)


def flat(out: Any) -> list[Any]:
    """A result as a list of arrays."""
    return list(out) if isinstance(out, list | tuple) else [out]


def check(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *args: Any,
    compiled: bool = True,
    recorded: tuple[Recorded, str] | None = None,
    **kwargs: Any,
) -> None:
    """Results are jax's: eager ones, twice (the second time from a remembered program), and compiled ones.

    `recorded` is where jax's are, and their name there.
    """

    def ask() -> list[Any]:
        jax = pytest.importorskip("jax")
        with jax.enable_x64(True):
            return [np.asarray(x) for x in flat(theirs(*args, **kwargs))]

    wanted = ask() if recorded is None else recorded[0].of(recorded[1], ask)
    calls: dict[str, Callable[..., Any]] = {"eager": lambda *a: ours(*a, **kwargs)}
    calls["again"] = calls["eager"]
    if compiled:
        calls["compiled"] = corejax.jit(calls["eager"])
    for how, call in calls.items():
        got = flat(call(*args))
        assert len(got) == len(wanted)
        for x, y in zip(got, wanted, strict=True):
            close(x, y, message=how)
