"""The functions against SciPy, finite differences, and themselves under every transformation."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import corejax
from corejax.special_functions import erfcx, lambertw

BRANCH_POINT = -np.exp(-1.0)
FUNCTIONS = {
    "erfcx": (erfcx, scipy.special.erfcx, np.linspace(-5.0, 40.0, 301)),
    "lambertw": (lambertw, lambda x: scipy.special.lambertw(x).real, np.linspace(-0.367, 40.0, 301)),
}
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 3e-6, "float64": 1e-12}
each = pytest.mark.parametrize("name", FUNCTIONS)
each_dtype = pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])


def close(result: Any, expected: Any, dtype: Any) -> None:
    result = np.asarray(result)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=TOLERANCE[np.dtype(dtype).name])


def jitted(fun: Any) -> Any:
    pytest.importorskip("corejax_xla_backend")
    return corejax.jit(fun)


@each
@each_dtype
@pytest.mark.parametrize("run", [lambda fun: fun, jitted], ids=["eager", "jit"])
def test_against_scipy(name: str, dtype: Any, run: Any) -> None:
    fun, reference, xs = FUNCTIONS[name]
    xs = xs[(xs > -3) & (xs < 30)].astype(dtype)
    xs = xs[~(xs.astype(np.float64) < -0.36) | (name == "erfcx")]  # W is steep there: the rounding of x shows
    close(run(fun)(xs), reference(xs.astype(np.float64)), dtype)


@each
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 4)])
def test_shapes(name: str, shape: tuple[int, ...]) -> None:
    fun, reference, _ = FUNCTIONS[name]
    x = np.linspace(0.5, 2.0, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    assert fun(x).shape == shape
    close(fun(x), reference(x.astype(np.float64)), np.float32)
    assert corejax.make_jaxpr(fun)(2.0).out_avals[0].weak_type, "a Python scalar stays one"


@each
def test_far_out(name: str) -> None:
    fun, _, _ = FUNCTIONS[name]
    x = np.array([np.nan, -np.inf, np.inf, 0.0, 1e-30, 1e30], np.float32)
    ends = {"erfcx": [np.nan, np.inf, 0.0, 1.0, 1.0, 1e-30 / np.sqrt(np.pi)],
            "lambertw": [np.nan, np.nan, np.inf, 0.0, 1e-30, float(scipy.special.lambertw(1e30).real)]}  # fmt: skip
    for run in (lambda f: f, jitted):
        np.testing.assert_allclose(np.asarray(run(fun)(x)), ends[name], rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lambertw_at_its_branch_point(dtype: Any) -> None:
    inside = np.asarray([BRANCH_POINT, np.nextafter(dtype(BRANCH_POINT), dtype(0))], dtype)
    outside = np.nextafter(inside[:1], dtype(-1))
    for run in (lambda f: f, jitted):
        np.testing.assert_allclose(np.asarray(run(lambertw)(inside)), -1.0, atol=1e-3)
        assert np.isnan(np.asarray(run(lambertw)(outside))).all()


@each
def test_what_it_refuses(name: str) -> None:
    fun, _, _ = FUNCTIONS[name]
    for x in (np.ones(2, np.int32), np.ones(2, np.complex64), True):
        with pytest.raises(TypeError, match=f"{name} takes real floating-point numbers, got"):
            fun(x)


@each
@pytest.mark.parametrize("x", [-0.25, 0.0, 0.75, 5.0])
def test_derivatives_against_finite_differences(name: str, x: float) -> None:
    fun, reference, _ = FUNCTIONS[name]
    grad, step = corejax.grad(fun), 1e-5
    x64 = np.float64(x)
    slope = (reference(x + step) - reference(x - step)) / (2 * step)
    np.testing.assert_allclose(grad(x64), slope, rtol=1e-6)
    np.testing.assert_allclose(corejax.jvp(fun, (x64,), (np.float64(2.0),))[1], 2 * slope, rtol=1e-6)
    bend = (grad(x64 + step) - grad(x64 - step)) / (2 * step)
    np.testing.assert_allclose(corejax.grad(grad)(x64), bend, rtol=1e-6)


@each
def test_compositions(name: str) -> None:
    fun, reference, _ = FUNCTIONS[name]
    x = np.linspace(0.1, 3.0, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(corejax.vmap(fun, 1, 1)(x), reference(x), rtol=1e-5)
    slopes = corejax.vmap(corejax.vmap(corejax.grad(fun)))
    one_by_one = [[corejax.grad(fun)(v) for v in row] for row in x]
    np.testing.assert_allclose(slopes(x), one_by_one, rtol=1e-5)
    np.testing.assert_allclose(jitted(slopes)(x), one_by_one, rtol=1e-4)
    np.testing.assert_allclose(corejax.vmap(corejax.grad(jitted(fun)))(x[0]), one_by_one[0], rtol=1e-4)


@each
def test_compiled_programs_do_not_call_back(name: str) -> None:
    fun, _, _ = FUNCTIONS[name]
    text = jitted(corejax.grad(fun)).lower(1.0).as_text()
    assert "custom_call" not in text
