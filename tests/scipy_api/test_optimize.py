"""`corejax.scipy.optimize.minimize`: minima of known functions, compositions, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import corejax
import corejax.numpy as jnp
from corejax.scipy import optimize

LBFGS = "l-bfgs-experimental-do-not-rely-on-this"


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def matyas(x):
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


@pytest.mark.parametrize(("method", "dtype"), [("BFGS", "float32"), ("BFGS", "float64"), (LBFGS, "float32")])
def test_minima(method, dtype):
    cases = [
        (rosenbrock, [-1.2, 1.0], [1.0, 1.0]),
        (rosenbrock, [0.0] * 5, [1.0] * 5),
        (himmelblau, [1.0, 1.0], [3.0, 2.0]),
        (matyas, [2.0, -3.0], [0.0, 0.0]),
        (lambda x: jnp.sum(jnp.cosh(x - 3.0)), [0.0, 9.0, -4.0], [3.0] * 3),
    ]
    for fun, start, want in cases[:: 1 if method == "BFGS" else 2]:
        x0 = jnp.asarray(start, dtype)
        found = corejax.jit(lambda x, f=fun: optimize.minimize(f, x, method=method, tol=2e-5))(x0)
        tolerance = 5e-3 if dtype == "float32" or method == LBFGS else 1e-4
        np.testing.assert_allclose(found.x, want, atol=tolerance)
        assert found.fun < 1e-3 + fun(jnp.asarray(want, dtype)) and found.x.dtype == dtype


def test_results_are_those_of_scipy():
    x0 = np.array([-1.2, 1.0, 0.5])
    want = scipy.optimize.minimize(lambda x: float(rosenbrock(x)), x0, method="BFGS")
    got = optimize.minimize(rosenbrock, x0, method="BFGS")
    assert got.success and got.status == 0 and got.nfev <= 3 * want.njev and got.nit < 2 * want.nit
    np.testing.assert_allclose(got.x, want.x, atol=1e-4)
    np.testing.assert_allclose(got.hess_inv, np.linalg.inv(corejax.hessian(rosenbrock)(want.x)), rtol=0.3, atol=0.1)


def test_no_iterations_and_no_progress():
    stopped = optimize.minimize(rosenbrock, jnp.zeros(2), method="BFGS", options={"maxiter": 2})
    assert not stopped.success and stopped.status == 1 and stopped.nit == 2
    there = optimize.minimize(matyas, jnp.zeros(2), method="BFGS")
    assert there.success and there.nit == 0
    falling = optimize.minimize(lambda x: jnp.sum(x), jnp.zeros(2), method="BFGS", options={"maxiter": 5})
    assert not falling.success


def test_args_vmap_and_derivative_forward():
    def fun(x, a):
        return jnp.sum((x - a) ** 2 * (1 + x**2))

    starts = jnp.zeros((3, 2))
    centres = jnp.array([[0.1, 0.2], [1.0, -1.0], [0.5, 0.5]])
    found = corejax.vmap(lambda x, a: optimize.minimize(fun, x, (a,), method="BFGS").x)(starts, centres)
    for row, a in zip(found, centres, strict=True):
        want = scipy.optimize.minimize(lambda x, a=a: float(fun(x, a)), np.zeros(2)).x
        np.testing.assert_allclose(row, want, atol=2e-3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m(1, jnp.ones(2), method="BFGS"), TypeError, "minimize: fun must be a function, got 1"),
        (lambda m: m(matyas, jnp.ones(2), 3, method="BFGS"), TypeError, "minimize: args must be a tuple, got 3"),
        (lambda m: m(matyas, jnp.ones(2), method=["BFGS"]), ValueError, "minimize: method must be 'BFGS' or .*'BFGS'"),
        (
            lambda m: m(matyas, jnp.ones(2), method="newton"),
            ValueError,
            "minimize: method must be 'BFGS' or .*'newton'",
        ),
        (lambda m: m(matyas, jnp.ones((2, 2)), method="BFGS"), ValueError, "minimize: x0 must be a vector of real"),
        (
            lambda m: m(lambda x: x, jnp.ones(2), method="BFGS"),
            ValueError,
            "fun must return a real floating-point scalar",
        ),
        (
            lambda m: m(matyas, jnp.ones(2), method="BFGS", tol="a"),
            TypeError,
            "minimize takes arrays .* got 'a' .* tol",
        ),
        (lambda m: m(matyas, jnp.ones(2), method="BFGS", options={"xtol": 1}), TypeError, "got 'xtol'"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(optimize.minimize)
