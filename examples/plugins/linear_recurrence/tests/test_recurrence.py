"""The recurrence against SciPy's filters and a plain loop, under every transformation and with both kernels."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.signal

import corejax
from corejax.linear_recurrence import linear_recurrence
from corejax_linear_recurrence import kernels

rng = np.random.default_rng(0)
TOLERANCE = {np.float16: 2e-2, ml_dtypes.bfloat16: 1e-1, np.float32: 1e-5, np.complex64: 1e-5,
             np.float64: 1e-12, np.complex128: 1e-12}  # fmt: skip
DTYPES = list(TOLERANCE)


def draw(dtype: Any, *shape: int) -> np.ndarray:
    values = rng.uniform(-1, 1, shape)
    return (values + 1j * rng.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def loop(a: np.ndarray, x: np.ndarray, reverse: bool = False) -> np.ndarray:
    """One row, one entry after the other."""
    h, last = np.zeros(len(x), np.result_type(x.dtype, np.float64)), 0.0
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        h[t] = last = a[t] * last + x[t]
    return h


def jitted(fun: Any) -> Any:
    pytest.importorskip("corejax_xla_backend")
    return corejax.jit(fun)


runs = pytest.mark.parametrize("run", [lambda fun: fun, jitted], ids=["eager", "jit"])
reverses = pytest.mark.parametrize("reverse", [False, True])
needs_c = pytest.mark.skipif(
    not kernels.COMPILED, reason="the C kernel is not built here (run from sources, or no compiler)"
)


# -- the kernels -------------------------------------------------------------------------------------------------


@needs_c
@reverses
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 1, 4), (0,), (0, 3), (3, 0)])
def test_c_against_numpy(shape: tuple[int, ...], dtype: Any, reverse: bool) -> None:
    a, x = draw(dtype, *shape), draw(dtype, *shape)
    h = kernels.in_c(a, x, reverse=reverse)
    assert h.dtype == dtype and h.shape == shape
    np.testing.assert_allclose(h, kernels.in_numpy(a, x, reverse=reverse), rtol=1e-5)
    swapped = kernels.in_c(np.swapaxes(a, 0, -1), np.swapaxes(x, 0, -1), reverse=reverse)  # not contiguous
    np.testing.assert_allclose(
        swapped, kernels.in_numpy(np.swapaxes(a, 0, -1), np.swapaxes(x, 0, -1), reverse=reverse), rtol=1e-5
    )


@needs_c
def test_c_refuses_buffers_that_do_not_fit() -> None:
    a, h = np.ones(4, np.float32), np.empty(4, np.float32)
    for args in (
        (a, a, h[:3], "f", 4, False),
        (a, a, h, "f", 3, False),
        (a, a, h, "i", 4, False),
        (a, a, h, "f", 0, False),
    ):
        with pytest.raises(ValueError, match="rows of `length` numbers"):
            kernels._kernel.run(*args)
    h.flags.writeable = False
    with pytest.raises((BufferError, ValueError, TypeError)):
        kernels._kernel.run(a, a, h, "f", 4, False)


# -- values ------------------------------------------------------------------------------------------------------


@runs
@reverses
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 100])
def test_against_a_loop(length: int, dtype: Any, reverse: bool, run: Any) -> None:
    a, x = draw(dtype, length), draw(dtype, length)
    h = np.asarray(run(lambda a, x: linear_recurrence(a, x, reverse=reverse))(a, x))
    assert h.dtype == dtype and h.shape == (length,)
    wide = np.result_type(dtype, np.float64)
    expected = loop(a.astype(wide), x.astype(wide), reverse)
    np.testing.assert_allclose(h.astype(wide), expected, atol=TOLERANCE[dtype])


@runs
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_against_scipy(axis: int, run: Any) -> None:
    x, initial = draw(np.float64, 5, 6), 0.75
    smooth = run(lambda x: linear_recurrence(0.9, 0.1 * x, axis=axis, initial=initial))(x)
    start = np.full((1, 6) if axis == 0 else (5, 1), 0.9 * initial)
    expected, _ = scipy.signal.lfilter([0.1], [1, -0.9], x, axis=axis, zi=start)
    np.testing.assert_allclose(smooth, expected, rtol=1e-12)


@reverses
def test_continued_from_where_it_stopped(reverse: bool) -> None:
    a, x = draw(np.float32, 2, 10), draw(np.float32, 2, 10)
    whole = np.asarray(linear_recurrence(a, x, reverse=reverse))
    first, second = (slice(4, 10), slice(0, 4)) if reverse else (slice(0, 4), slice(4, 10))
    last = whole[:, 4] if reverse else whole[:, 3]
    rest = linear_recurrence(a[:, second], x[:, second], initial=last, reverse=reverse)
    np.testing.assert_allclose(rest, whole[:, second], rtol=1e-5)
    np.testing.assert_allclose(linear_recurrence(a[:, first], x[:, first], reverse=reverse), whole[:, first], rtol=1e-6)


def test_what_it_refuses() -> None:
    with pytest.raises(TypeError, match=r"floating-point or complex numbers along an axis, got i64\[3\]"):
        linear_recurrence(np.arange(3), np.arange(3))
    with pytest.raises(TypeError, match=r"along an axis, got f32\[\] and"):
        linear_recurrence(np.float32(1), np.float32(1))
    with pytest.raises(ValueError, match="axis 2 of arrays of 1 axes"):
        linear_recurrence(0.5, np.ones(3, np.float32), axis=2)
    with pytest.raises((TypeError, ValueError), match=r"\(2,\).*\(3,\)|2.*3"):
        linear_recurrence(np.ones(2), np.ones(3))


# -- transformations ---------------------------------------------------------------------------------------------


@runs
@reverses
def test_gradients_against_finite_differences(reverse: bool, run: Any) -> None:
    a, x, weights = (draw(np.float64, 6) for _ in range(3))
    slopes = run(corejax.grad(lambda a, x: (linear_recurrence(a, x, reverse=reverse) * weights).sum(), (0, 1)))(a, x)
    step = 1e-6
    for i in range(6):
        e = step * np.eye(6)[i]
        by_a = (loop(a + e, x, reverse) - loop(a - e, x, reverse)) @ weights / (2 * step)
        by_x = (loop(a, x + e, reverse) - loop(a, x - e, reverse)) @ weights / (2 * step)
        np.testing.assert_allclose([slopes[0][i], slopes[1][i]], [by_a, by_x], rtol=1e-6, atol=1e-8)


def test_second_derivative() -> None:
    f = lambda a: linear_recurrence(a, np.array([2.0, 0.0, 0.0, 0.0]))[3]  # noqa: E731  # 2 a**3
    np.testing.assert_allclose(corejax.grad(corejax.grad(lambda a: f(a * np.ones(4))))(np.float64(0.5)), 6.0, rtol=1e-9)


@runs
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 1)])
def test_vmap_against_a_loop(axes: tuple[int | None, int | None], run: Any) -> None:
    a, x = (draw(np.float64, *((5,) if d is None else (3, 5) if d == 0 else (5, 3))) for d in axes)
    rows = [[v if d is None else np.take(v, i, d) for v, d in zip((a, x), axes, strict=True)] for i in range(3)]
    np.testing.assert_allclose(run(corejax.vmap(linear_recurrence, axes))(a, x), [loop(*r) for r in rows], rtol=1e-9)


def test_derivatives_are_recurrences() -> None:
    x = np.ones(8)
    eqns = corejax.make_jaxpr(corejax.grad(lambda a: linear_recurrence(a, x).sum()))(x).eqns
    names = [e.primitive.name for e in eqns]
    assert names.count("linear_recurrence.linear_recurrence") == 2


def test_compiled_programs_do_not_call_back() -> None:
    text = jitted(linear_recurrence).lower(np.ones(1000), np.ones(1000)).as_text()
    assert text.count("stablehlo.add") == 4 * 9, "it halves the length nine times"
    assert "custom_call" not in text
