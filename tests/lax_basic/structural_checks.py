"""One table row, many checks: a function written for `corejax.lax` and for `jax.lax` alike, and its arguments.

Case("squeeze one", lambda lax, x: lax.squeeze(x, (1,)), [f32(3, 1)])
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.lax
from corejax.extend import as_array, get_aval
from corejax.extend.programs import check_jaxpr, eval_jaxpr

DTYPES = [
    np.dtype(t) for t in ("bool", "int8", "int32", "uint8", "float16", "float32", "complex64", ml_dtypes.bfloat16)
]


def data(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Reproducible values of any dtype: small integers for integer types, halves and quarters for the others."""
    rng = np.random.default_rng([seed, *shape])
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    whole = rng.integers(0 if dtype.kind == "u" else -8, 9, shape)
    if dtype.kind in "iu":
        return whole.astype(dtype)
    if dtype.kind == "c":
        return (whole / 4 + 1j * rng.integers(-8, 9, shape) / 4).astype(dtype)
    return (whole / 4).astype(dtype)


@dataclass(frozen=True)
class Case:
    """A function `f(lax, *args)` with arguments; `diff` are the positions that it is differentiated in."""

    name: str
    f: Callable[..., Any]
    args: Sequence[Any]
    diff: Sequence[int] = (0,)
    batched: Sequence[int] | None = None  # positions that vmap maps over; default: all

    def __str__(self) -> str:
        return self.name

    @property
    def ours(self) -> Callable[..., Any]:
        """The function on corejax."""
        return lambda *args: self.f(corejax.lax, *args)

    @property
    def theirs(self) -> Callable[..., Any]:
        """The function on jax."""
        jax = pytest.importorskip("jax")
        return lambda *args: self.f(jax.lax, *args)


def parametrize(cases: Sequence[Case]) -> Any:
    """The decorator that runs a test for each case."""
    return pytest.mark.parametrize("case", cases, ids=[c.name for c in cases])


def assert_same(ours: Any, theirs: Any, tol: float = 1e-5) -> None:
    """Equal types and (nearly) equal values; `theirs` is jax's or NumPy's."""
    a, b = np.asarray(ours), np.asarray(theirs)
    assert a.dtype == b.dtype, f"dtype {a.dtype} instead of {b.dtype}"
    assert a.shape == b.shape, f"shape {a.shape} instead of {b.shape}"
    if a.dtype == np.bool_ or a.dtype.kind in "iu":
        np.testing.assert_array_equal(a, b)
        return
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    tol = max(tol, 1e-2) if a.dtype.itemsize < 4 else tol
    np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=tol, atol=tol)


def check_values(case: Case) -> None:
    """Eager, staged and replayed, and compiled: all as jax."""
    expected = case.theirs(*case.args)
    out = case.ours(*case.args)
    assert_same(out, expected)
    assert get_aval(out).weak_type == bool(expected.weak_type)
    closed = corejax.make_jaxpr(case.ours)(*case.args)
    check_jaxpr(closed.jaxpr)
    assert closed.out_avals[0] is get_aval(out)
    assert_same(eval_jaxpr(closed.jaxpr, closed.consts, list(case.args))[0], out)


def check_compiled(case: Case) -> None:
    """The StableHLO that the translation rules write computes the same."""
    pytest.importorskip("jaxlib")
    assert_same(corejax.jit(case.ours)(*case.args), case.ours(*case.args))


def check_vmap(case: Case) -> None:
    """Every choice of in_axes against a loop over the batch."""
    positions = range(len(case.args)) if case.batched is None else case.batched
    size = 3
    choices = []
    for i, x in enumerate(case.args):
        ndim = np.ndim(x)
        axes = sorted({0, ndim, ndim // 2})
        choices.append([None, *axes] if i in positions else [None])
    for axes in itertools.product(*choices):
        if all(a is None for a in axes):
            continue
        args = [
            x if a is None else np.stack([_varied(x, i) for i in range(size)], axis=a)
            for x, a in zip(case.args, axes, strict=True)
        ]
        batched = corejax.vmap(case.ours, in_axes=axes)(*args)
        loop = [
            np.asarray(case.ours(*(x if a is None else np.take(x, i, a) for x, a in zip(args, axes, strict=True))))
            for i in range(size)
        ]
        assert_same(batched, np.stack(loop))


def _varied(x: Any, i: int) -> Any:
    x = np.asarray(x)
    return (
        np.roll(x, i)
        if x.ndim
        else (x + np.asarray(i, x.dtype) if x.dtype.kind in "iu" else x * (i + 1)).astype(x.dtype)
    )


def check_derivatives(case: Case) -> None:
    """jvp, vjp and second order in the positions `diff`, against jax."""
    jax = pytest.importorskip("jax")
    where = tuple(case.diff)

    def restricted(f: Any) -> Any:
        def g(*moving: Any) -> Any:
            args = list(case.args)
            for i, x in zip(where, moving, strict=True):
                args[i] = x
            return f(*args)

        return g

    ours, theirs = restricted(case.ours), restricted(case.theirs)
    primals = [np.asarray(case.args[i]) for i in where]
    tangents = [data(*p.shape, dtype=p.dtype, seed=i + 5) for i, p in enumerate(primals)]
    aval = get_aval(case.ours(*case.args))
    ct = data(*aval.shape, dtype=aval.dtype, seed=11)
    real = primals[0].dtype.kind == "f"

    def everything(m: Any, f: Any, *primals: Any) -> Any:
        """Tangent, cotangents, and the derivative of a gradient, with nonlinear functions around `f`."""
        first = (m.jvp(f, primals, tuple(tangents))[1], *m.vjp(f, *primals)[1](ct))
        if not real:
            return first
        grad = m.grad(lambda x: (f(x * x, *primals[1:]) ** 2).sum())
        return (*first, *m.jvp(grad, primals[:1], tuple(tangents[:1])))

    expected = jax.jit(lambda *primals: everything(jax, theirs, *primals))(*primals)  # one compilation
    for a, b in zip(everything(corejax, ours, *map(as_array, primals)), expected, strict=True):
        assert_same(a, b, 1e-4)
