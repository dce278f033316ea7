"""The product against SciPy's matrices, finite differences, and itself under every transformation."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg

import corejax
from corejax.toeplitz import toeplitz_matvec

rng = np.random.default_rng(0)
TOLERANCE = {
    "float16": 2e-2,
    "bfloat16": 1e-1,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float64": 1e-12,
    "complex128": 1e-12,
}
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128]


def draw(dtype: Any, *shape: int) -> np.ndarray:
    values = rng.uniform(-1, 1, shape)
    return (values + 1j * rng.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def matrix(c: np.ndarray, r: np.ndarray) -> np.ndarray:
    wide = np.result_type(c.dtype, np.float64)
    return scipy.linalg.toeplitz(c.astype(wide), r.astype(wide))


def jitted(fun: Any) -> Any:
    pytest.importorskip("corejax_xla_backend")
    return corejax.jit(fun)


runs = pytest.mark.parametrize("run", [lambda fun: fun, jitted], ids=["eager", "jit"])


@runs
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 6), (6, 1), (4, 4), (3, 7), (50, 21)])
def test_against_scipy(n: int, m: int, dtype: Any, run: Any) -> None:
    c, r, x = draw(dtype, n), draw(dtype, m), draw(dtype, m)
    y = np.asarray(run(toeplitz_matvec)(c, r, x))
    assert y.shape == (n,) and y.dtype == dtype
    wide = y.astype(np.result_type(dtype, np.float64))
    expected = matrix(c, r) @ x.astype(wide.dtype)
    np.testing.assert_allclose(wide, expected, atol=TOLERANCE[np.dtype(dtype).name] * np.sqrt(m))


def test_without_a_row_it_is_hermitian() -> None:
    c, x = draw(np.complex64, 5), draw(np.complex64, 5)
    c[0] = c[0].real
    np.testing.assert_allclose(toeplitz_matvec(c, None, x), scipy.linalg.toeplitz(c) @ x, atol=1e-5)


def test_dtypes_are_promoted() -> None:
    c, r, x = draw(np.float32, 4), draw(np.float32, 4), draw(np.complex64, 4)
    assert toeplitz_matvec(c, r, x).dtype == np.complex64
    assert toeplitz_matvec(np.arange(4), r, draw(np.float32, 4)).dtype == np.float32


@pytest.mark.parametrize(
    ("c", "r", "x"),
    [((3,), (2,), (3,)), ((3, 1), (2,), (2,)), ((0,), (2,), (2,)), ((2,), (0,), (0,)), ((), (2,), (2,))],
)
def test_shapes_that_do_not_fit(c: tuple[int, ...], r: tuple[int, ...], x: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match=r"takes a column \(n,\), a row \(m,\) and a vector \(m,\).* got c f32"):
        toeplitz_matvec(*(np.ones(shape, np.float32) for shape in (c, r, x)))


def test_integers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"floating-point numbers, got c i64\[3\]"):
        toeplitz_matvec(np.arange(3), np.arange(3), np.arange(3))


def test_derivatives_against_finite_differences() -> None:
    args = [draw(np.float64, 4), draw(np.float64, 3), draw(np.float64, 3)]
    directions = [draw(np.float64, len(v)) for v in args]
    step = 1e-6
    above, below = ([v + sign * step * t for v, t in zip(args, directions, strict=True)] for sign in (1, -1))
    slope = (matrix(*above[:2]) @ above[2] - matrix(*below[:2]) @ below[2]) / (2 * step)
    np.testing.assert_allclose(corejax.jvp(toeplitz_matvec, args, directions)[1], slope, rtol=1e-7, atol=1e-9)

    weights = draw(np.float64, 4)
    cts = corejax.vjp(toeplitz_matvec, *args)[1](weights)
    pulled = sum(float(np.vdot(ct, t)) for ct, t in zip(cts, directions, strict=True))
    np.testing.assert_allclose(pulled, weights @ slope, rtol=1e-7)


@runs
def test_gradients_in_closed_form(run: Any) -> None:
    c, r, x, weights = draw(np.float64, 5), draw(np.float64, 4), draw(np.float64, 4), draw(np.float64, 5)
    slopes = run(corejax.grad(lambda c, r, x: (toeplitz_matvec(c, r, x) * weights).sum(), (0, 1, 2)))(c, r, x)
    np.testing.assert_allclose(slopes[2], matrix(c, r).T @ weights, rtol=1e-9)
    np.testing.assert_allclose(slopes[0], [weights[k:] @ x[: 5 - k][: len(weights[k:])] if k else weights[:4] @ x
                                           for k in range(5)], rtol=1e-9)  # fmt: skip
    np.testing.assert_allclose(slopes[1], [0, *(weights[: 4 - k] @ x[k:] for k in range(1, 4))], atol=1e-12)


def test_linear_in_the_vector() -> None:
    c, r, y = draw(np.float64, 5), draw(np.float64, 3), draw(np.float64, 5)
    (x,) = corejax.linear_transpose(lambda x: toeplitz_matvec(c, r, x), np.zeros(3))(y)
    np.testing.assert_allclose(x, matrix(c, r).T @ y, rtol=1e-9)


@runs
@pytest.mark.parametrize("axes", [(0, 0, 0), (None, None, 0), (0, 0, None), (0, None, None), (None, None, 1)])
def test_vmap_against_a_loop(axes: tuple[int | None, ...], run: Any) -> None:
    shapes = [(4,), (3,), (3,)]
    args = [draw(np.float64, *(s if a is None else (6, *s) if a == 0 else (*s, 6)))
            for s, a in zip(shapes, axes, strict=True)]  # fmt: skip
    rows = [[v if a is None else np.take(v, i, a) for v, a in zip(args, axes, strict=True)] for i in range(6)]
    expected = [matrix(c, r) @ x for c, r, x in rows]
    np.testing.assert_allclose(run(corejax.vmap(toeplitz_matvec, axes))(*args), expected, rtol=1e-9, atol=1e-12)
    slopes = corejax.vmap(corejax.grad(lambda c, r, x: toeplitz_matvec(c, r, x).sum(), 2), axes)(*args)
    np.testing.assert_allclose(slopes, [matrix(c, r).sum(0) for c, r, _ in rows], rtol=1e-9, atol=1e-12)


def test_a_shared_matrix_is_transformed_once() -> None:
    c, r, xs = draw(np.float32, 4), draw(np.float32, 4), draw(np.float32, 100, 4)
    text = jitted(corejax.vmap(toeplitz_matvec, (None, None, 0))).lower(c, r, xs).as_text()
    assert text.count("stablehlo.fft") == 3 and "custom_call" not in text
    assert "tensor<1x7xf32>" in text, "the matrix goes through its transform by itself, not a hundred times"
