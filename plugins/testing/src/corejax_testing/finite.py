"""Finite differences of functions of lists of arrays, and inner products."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax_testing.arrays import Array, epsilon, smallest_size, tolerance, wide
from corejax_testing.calls import host
from corejax_testing.diagnosis import ratio
from corejax_testing.outcomes import CheckFailure, NotApplicable

Function = Callable[..., Sequence[Any]]
Pair = tuple[Sequence[Any], Sequence[Any]]


def precision(arrays: Sequence[Array]) -> float:
    """Return the largest machine epsilon among arrays.

    Raises:
        NotApplicable: the epsilon is too large for finite differences.
    """
    eps = max((epsilon(x.dtype) for x in arrays), default=1.0)
    if eps > 1e-6:
        raise NotApplicable("half precision is too coarse for finite differences")
    return eps


def step_and_tolerance(arrays: Sequence[Array], order: int = 1) -> tuple[float, float]:
    """Return the step of central differences for such arrays, and the relative error to allow."""
    eps = precision(arrays)
    step = eps ** (1 / 3)
    return step, (100 * 10 ** (order - 1) if eps < 1e-10 else 400) * step**2


def difference(fun: Function, xs: Sequence[Array], ts: Sequence[Array], step: float) -> list[Array]:
    """Return the derivative of `fun` at `xs` along `ts` by central differences, in the dtypes of its results."""
    plus, minus = (
        host(fun(*(np.asarray(x + s * step * t).astype(x.dtype) for x, t in zip(xs, ts, strict=True)))) for s in (1, -1)
    )
    with np.errstate(all="ignore"):
        return [np.asarray((wide(p) - wide(m)) / (2 * step)).astype(p.dtype) for p, m in zip(plus, minus, strict=True)]


def gradient(fun: Function, xs: Sequence[Array], cts: Sequence[Array], step: float) -> list[Array]:
    """Return the cotangents of `xs` for `cts`, by differences along every coordinate."""
    found = []
    for i, x in enumerate(xs):
        out = np.zeros(x.shape, x.dtype)
        for index in np.ndindex(x.shape):
            for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
                t = np.zeros(x.shape, x.dtype)
                t[index] = unit
                ts = [t if k == i else np.zeros_like(y) for k, y in enumerate(xs)]
                # The derivative along t is the real part of ct * t; for t = i this is minus ct's imaginary part.
                out[index] += np.conj(unit) * inner(difference(fun, xs, ts, step), cts)
        found.append(out)
    return found


def inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Return the real part of the sum of products, which is JAX's pairing of tangents and cotangents."""
    return float(sum(np.sum(wide(x) * wide(y)).real for x, y in zip(xs, ys, strict=True)))


def magnitude(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Return the sum of the products' absolute values, to which an inner product's rounding error is proportional."""
    return float(sum(np.sum(np.abs(wide(x) * wide(y))) for x, y in zip(xs, ys, strict=True)))


def require_adjoint(forward: Pair, backward: Pair, every: Iterable[Array], what: str) -> None:
    """Require two inner products to be equal, up to the rounding of their terms in the dtypes of `every`.

    Raises:
        CheckFailure: the inner products differ.
    """
    a, b = inner(*backward), inner(*forward)
    bound, least = max((tolerance(x.dtype), smallest_size(x.dtype)) for x in every)
    allowed = 50 * bound * max(magnitude(*forward) + magnitude(*backward), least)
    if not abs(a - b) <= allowed:
        raise CheckFailure(f"{what}: {a!r} and {b!r}", "transpose", ratio(a, b))
