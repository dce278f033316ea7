"""For the tests of elementwise primitives and reductions: sample values, tolerances, and the checks of every family."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import extend
from corejax_lax_basic.structural_operations import OPERATIONS

for _name, _operation in OPERATIONS.items():
    extend.transforms.structural.provide(_name, _operation)

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
KINDS: dict[str, tuple[np.dtype[Any], ...]] = {
    "b": (np.dtype(bool),),
    "i": tuple(np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64)),
    "u": tuple(np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64)),
    "f": (np.dtype(np.float16), BFLOAT16, np.dtype(np.float32), np.dtype(np.float64)),
    "c": (np.dtype(np.complex64), np.dtype(np.complex128)),
}
_RTOL = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-11}


def dtypes_of(kinds: str) -> list[np.dtype[Any]]:
    """The dtypes of kinds given by letters: b, i, u, f, c."""
    return [d for kind in kinds for d in KINDS[kind]]


_FEW = {"b": ("bool",), "i": ("int8", "int64"), "u": ("uint32",), "f": ("bfloat16", "float32"), "c": ("complex64",)}


def few_dtypes(kinds: str) -> list[np.dtype[Any]]:
    """One or two dtypes of each kind, for what has to be compiled."""
    return [d for kind in kinds for d in KINDS[kind] if d.name in _FEW[kind]]


def kind_of(dtype: np.dtype[Any]) -> str:
    """The letter of a dtype's kind."""
    return next(kind for kind, members in KINDS.items() if dtype in members)


def sample(dtype: Any, shape: tuple[int, ...], seed: int = 0, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    """Reproducible values of a dtype: all of a small range of integers, floats between `low` and `high`."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    kind = kind_of(dtype)
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
    real = rng.uniform(low, high, shape)
    return (real + 1j * rng.uniform(low, high, shape) if kind == "c" else real).astype(dtype)


def extremes(dtype: Any) -> np.ndarray:
    """The values at which elementwise functions go wrong."""
    dtype = np.dtype(dtype)
    kind = kind_of(dtype)
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array(sorted({info.min, info.min + 1, 0, 1, 2, 3, info.max, info.max - 1}), dtype)
    real = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 2.0, -3.0, 1e-3, 30.0, -30.0]
    return np.array(real if kind == "f" else [0, 1, -1, 1j, -1j, 0.5 - 2j, -0.25 + 0.25j, 1e-3j], dtype)


def assert_same(got: Any, expected: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """Equal dtype and shape; values equal, or to rounding if inexact (NaN equals NaN)."""
    expected, value = np.asarray(expected), np.asarray(got)
    assert value.dtype == expected.dtype, f"{value.dtype} is not {expected.dtype}"
    assert value.shape == expected.shape
    name = expected.dtype.name
    if name not in _RTOL:
        np.testing.assert_array_equal(value, expected)
        return
    rtol = _RTOL[name] if rtol is None else rtol
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    atol = rtol / 10 if atol is None else atol
    np.testing.assert_allclose(value.astype(wide), expected.astype(wide), rtol=rtol, atol=atol)


@contextmanager
def _with_x64(jax: Any) -> Iterator[Any]:
    with jax.enable_x64(True):
        yield jax


@pytest.fixture
def jax() -> Iterator[Any]:
    """The real jax, 64-bit types on; tests that ask for it are skipped without it."""
    with _with_x64(pytest.importorskip("jax")) as module:
        yield module


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`corejax.jit`; skips where the backend is missing."""
    pytest.importorskip("jaxlib")
    pytest.importorskip("corejax_xla_backend")
    from corejax_xla_backend._jit.jit import jit

    return jit(function)


# -- derivatives -------------------------------------------------------------------------------------------------


def derivatives(api: Any, function: Any, args: Sequence[Any], tangents: Sequence[Any], ct: Any) -> list[Any]:
    """Value, first and second derivatives, forward, reverse and reverse over forward, by `corejax` or `jax`."""

    def directional(*xs: Any) -> Any:
        return api.jvp(function, xs, tuple(tangents))[1]

    out, first = api.jvp(function, tuple(args), tuple(tangents))
    _, pull = api.vjp(function, *args)
    second = api.jvp(directional, tuple(args), tuple(tangents))[1]
    _, pull_second = api.vjp(directional, *args)
    return [out, first, *pull(ct), second, *pull_second(ct)]


def check_derivatives(
    jax: Any, ours: Any, theirs: Any, *args: np.ndarray, rtol: float = 1e-9, atol: float = 1e-9
) -> None:
    """Compare derivatives of two implementations at 64-bit arguments, with the real jax as oracle."""
    tangents = [sample(x.dtype, x.shape, seed=i + 10) for i, x in enumerate(args)]
    out = np.asarray(ours(*args))
    ct = sample(out.dtype, out.shape, seed=99)
    expected = jax.jit(lambda a, t, c: derivatives(jax, theirs, a, t, c))(args, tangents, ct)
    for got, wanted in zip(derivatives(corejax, ours, args, tangents, ct), expected, strict=True):
        assert_same(got, wanted, rtol=rtol, atol=atol)


# -- vmap --------------------------------------------------------------------------------------------------------


def check_vmap(
    function: Any, *shapes: tuple[int, ...], dtypes: Any = np.float32, size: int = 3, **domain: float
) -> None:
    """`vmap` with every combination of `in_axes` against a loop; `shapes` are those of one example."""
    each = [dtypes] * len(shapes) if not isinstance(dtypes, tuple) else dtypes
    choices = [[None, *range(len(shape) + 1)] for shape in shapes]
    for axes in itertools.product(*choices):
        if all(a is None for a in axes):
            continue
        args = []
        for i, (shape, axis, dtype) in enumerate(zip(shapes, axes, each, strict=True)):
            full = shape if axis is None else (*shape[:axis], size, *shape[axis:])
            args.append(sample(dtype, full, seed=i, **domain))
        rows = [
            function(*(x if a is None else np.take(x, i, axis=a) for x, a in zip(args, axes, strict=True)))
            for i in range(size)
        ]
        got = corejax.vmap(function, in_axes=axes)(*args)
        assert_same(got, np.stack([np.asarray(r) for r in rows]))
