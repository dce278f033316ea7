"""Finite differences: derivatives of functions of lists of arrays, by their definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax_testing.arrays import Array, epsilon, tolerance, wide
from corejax_testing.calls import host
from corejax_testing.diagnosis import ratio
from corejax_testing.outcomes import CheckFailure, NotApplicable

Function = Callable[..., Sequence[Any]]
Pair = tuple[Sequence[Any], Sequence[Any]]


def precision(arrays: Sequence[Array]) -> float:
    """The coarsest machine epsilon among arrays.

    Raises:
        NotApplicable: too coarse for differences.
    """
    eps = max((epsilon(x.dtype) for x in arrays), default=1.0)
    if eps > 1e-6:
        raise NotApplicable("no differences in half precision")
    return eps


def step_and_tolerance(arrays: Sequence[Array], order: int = 1) -> tuple[float, float]:
    """Step of central differences and the relative error that is left, for a function of such values."""
    eps = precision(arrays)
    step = eps ** (1 / 3)
    return step, (100 * 10 ** (order - 1) if eps < 1e-10 else 400) * step**2


def difference(fun: Function, xs: Sequence[Array], ts: Sequence[Array], step: float) -> list[Array]:
    """Derivative of `fun` at `xs` along `ts`, of the dtypes of its results."""
    plus, minus = (
        host(fun(*(np.asarray(x + s * step * t).astype(x.dtype) for x, t in zip(xs, ts, strict=True)))) for s in (1, -1)
    )
    with np.errstate(all="ignore"):
        return [np.asarray((wide(p) - wide(m)) / (2 * step)).astype(p.dtype) for p, m in zip(plus, minus, strict=True)]


def gradient(fun: Function, xs: Sequence[Array], cts: Sequence[Array], step: float) -> list[Array]:
    """Cotangents of `xs`: the real part's derivative along every coordinate."""
    found = []
    for i, x in enumerate(xs):
        out = np.zeros(x.shape, x.dtype)
        for index in np.ndindex(x.shape):
            for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
                t = np.zeros(x.shape, x.dtype)
                t[index] = unit
                ts = [t if k == i else np.zeros_like(y) for k, y in enumerate(xs)]
                # The real part of ct t is the derivative along t; at t = i it is minus ct's imaginary part.
                out[index] += np.conj(unit) * inner(difference(fun, xs, ts, step), cts)
        found.append(out)
    return found


def inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Real part of the sum of products; JAX's pairing of tangents and cotangents."""
    return float(sum(np.sum(wide(x) * wide(y)).real for x, y in zip(xs, ys, strict=True)))


def magnitude(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Sum of the products' absolute values: what an inner product's rounding error is measured by."""
    return float(sum(np.sum(np.abs(wide(x) * wide(y))) for x, y in zip(xs, ys, strict=True)))


def require_adjoint(forward: Pair, backward: Pair, every: Iterable[Array], what: str) -> None:
    """Require two inner products to be the same number, up to the rounding of their terms in these arrays' dtypes.

    Raises:
        CheckFailure: they differ.
    """
    a, b = inner(*backward), inner(*forward)
    allowed = 50 * max(tolerance(x.dtype) for x in every) * max(magnitude(*forward) + magnitude(*backward), 1.0)
    if not abs(a - b) <= allowed:
        raise CheckFailure(f"{what}: {a!r} and {b!r}", "transpose", ratio(a, b))
