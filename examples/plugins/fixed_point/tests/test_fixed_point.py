"""The solution against closed forms and SciPy, under every transformation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import corejax
import corejax.numpy as jnp
from corejax.extend import get_aval
from corejax.fixed_point import fixed_point

rng = np.random.default_rng(0)
A = rng.uniform(-1, 1, (4, 4)) / 5
B = rng.uniform(-1, 1, 4)


def jitted(fun: Any) -> Any:
    pytest.importorskip("corejax_xla_backend")
    return corejax.jit(fun)


runs = pytest.mark.parametrize("run", [lambda fun: fun, jitted], ids=["eager", "jit"])


def sqrt(a: Any) -> Any:
    """By Heron's method."""
    return fixed_point(lambda x, a: 0.5 * (x + a / x), 1.0, a)


def affine(a: Any, b: Any) -> Any:
    """(I - a)^-1 b."""
    return fixed_point(lambda x, a, b: a @ x + b, np.zeros_like(B), a, b)


def layer(a: Any, b: Any) -> Any:
    return fixed_point(lambda x, a, b: jnp.tanh(a @ x + b), np.zeros_like(B), a, b)


def numpy_layer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return scipy.optimize.root(lambda x: np.tanh(a @ x + b) - x, np.zeros_like(b), tol=1e-14).x


# -- values ------------------------------------------------------------------------------------------------------


@runs
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_values(dtype: Any, run: Any) -> None:
    x = run(sqrt)(dtype(2))
    assert x.dtype == dtype and x.shape == () and not get_aval(x).weak_type
    np.testing.assert_allclose(x, np.sqrt(2.0), rtol=8 * np.finfo(dtype).eps)


@runs
def test_of_a_vector(run: Any) -> None:
    np.testing.assert_allclose(run(layer)(A, B), numpy_layer(A, B), rtol=1e-10)


@runs
def test_complex(run: Any) -> None:
    x = run(lambda c: fixed_point(lambda x: x * x + c, 0j, tol=1e-14))(np.complex128(0.1 + 0.2j))
    np.testing.assert_allclose(x, (1 - np.sqrt(1 - 4 * (0.1 + 0.2j))) / 2, rtol=1e-10)


@runs
def test_pytrees_and_what_is_closed_over(run: Any) -> None:
    def solve(scale: Any) -> Any:
        def f(x: Any, p: Any) -> Any:
            return {"u": scale * jnp.cos(x["v"][0]), "v": (p["shift"] + 0.5 * x["u"],)}

        return fixed_point(f, {"u": np.zeros(2), "v": (np.zeros(2),)}, {"shift": np.array([0.1, 0.2])})

    x = run(solve)(np.float64(0.5))
    np.testing.assert_allclose(x["u"], 0.5 * np.cos(x["v"][0]), rtol=1e-10)
    np.testing.assert_allclose(x["v"][0], np.array([0.1, 0.2]) + 0.5 * np.asarray(x["u"]), rtol=1e-10)
    step = 1e-6
    slope = (np.asarray(solve(0.5 + step)["u"]) - np.asarray(solve(0.5 - step)["u"])) / (2 * step)
    np.testing.assert_allclose(corejax.jacrev(lambda s: run(solve)(s)["u"])(np.float64(0.5)), slope, rtol=1e-6)


@runs
def test_empty(run: Any) -> None:
    assert run(lambda x: fixed_point(lambda x: 0.5 * x, x))(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert run(lambda: fixed_point(lambda x: x, ()))() == ()


@runs
def test_what_does_not_converge_is_nan(run: Any) -> None:
    factors = np.array([0.5, 1.5, 0.9])
    x = run(corejax.vmap(lambda a: fixed_point(lambda x, a: a * x + 1, 0.0, a, max_steps=500)))(factors)
    np.testing.assert_allclose(x, [2.0, np.nan, 10.0], rtol=1e-6)
    assert np.isnan(run(lambda: fixed_point(lambda x: -x, 1.0, max_steps=10))())


def test_steps_are_counted() -> None:
    assert np.isnan(fixed_point(jnp.cos, 1.0, max_steps=5))
    assert not np.isnan(fixed_point(jnp.cos, 1.0, max_steps=5, tol=0.5))


# -- derivatives -------------------------------------------------------------------------------------------------


@runs
def test_first_and_second_derivative(run: Any) -> None:
    a = np.float64(2.0)
    np.testing.assert_allclose(run(corejax.grad(sqrt))(a), 0.5 * a**-0.5, rtol=1e-10)
    np.testing.assert_allclose(run(corejax.grad(corejax.grad(sqrt)))(a), -0.25 * a**-1.5, rtol=1e-10)
    np.testing.assert_allclose(run(corejax.hessian(sqrt))(a), -0.25 * a**-1.5, rtol=1e-10)
    np.testing.assert_allclose(corejax.grad(jitted(sqrt))(a), 0.5 * a**-0.5, rtol=1e-10)


@runs
def test_jacobians_by_the_implicit_function_theorem(run: Any) -> None:
    x = numpy_layer(A, B)
    slope = 1 - x**2
    inverse = np.linalg.inv(np.eye(4) - slope[:, None] * A)
    expected = inverse * slope
    for jacobian in (corejax.jacfwd, corejax.jacrev):
        np.testing.assert_allclose(run(jacobian(layer, 1))(A, B), expected, rtol=1e-9)
        np.testing.assert_allclose(
            run(jacobian(layer, 0))(A, B), expected[:, :, None] * x[None, None, :], rtol=1e-9, atol=1e-12
        )


def test_a_tiny_tangent_is_as_precise_as_a_large_one() -> None:
    _, small = corejax.jvp(lambda b: layer(A, b), (B,), (1e-30 * B,))
    _, large = corejax.jvp(lambda b: layer(A, b), (B,), (B,))
    np.testing.assert_allclose(np.asarray(small) * 1e30, large, rtol=1e-12)


@runs
def test_a_derivative_that_is_zero_after_a_while(run: Any) -> None:
    def second(b: Any) -> Any:
        return fixed_point(lambda x, b: (b, 0.5 * x[1] + (x[0] - b)), (1.0, 1.0), b)[1]

    for derivative in (corejax.grad, corejax.jacfwd):
        np.testing.assert_allclose(run(derivative(second))(np.float64(3.0)), 0.0, atol=1e-12)


def test_where_it_starts_has_no_derivative() -> None:
    assert corejax.grad(lambda x0: fixed_point(jnp.cos, x0))(0.5) == 0.0
    assert corejax.jvp(lambda x0: fixed_point(jnp.cos, x0), (0.5,), (1.0,))[1] == 0.0


def test_linear_in_a_parameter() -> None:
    (ct,) = corejax.linear_transpose(lambda b: affine(A, b), B)(np.ones(4))
    np.testing.assert_allclose(ct, np.linalg.solve(np.eye(4) - A.T, np.ones(4)), rtol=1e-10)


def test_the_derivative_of_f_at_the_solution_is_computed_once() -> None:
    _, tangent = corejax.linearize(lambda b: layer(A, b), B)
    (eqn,) = [e for e in corejax.make_jaxpr(tangent)(B).eqns if e.primitive.name == "fixed_point.fixed_point"]
    inside = {e.primitive.name for e in eqn.params["jaxpr"].eqns}
    assert "tanh" not in inside and "dot_general" in inside


# -- batches, programs -------------------------------------------------------------------------------------------


@runs
@pytest.mark.parametrize("axes", [(None, 0), (0, None), (2, 1)])
def test_vmap_against_a_loop(axes: tuple[int | None, int | None], run: Any) -> None:
    scales = np.array([0.5, 1.0, -1.0])
    many = [A * s for s in scales], [B * s for s in scales]
    a, b = (one if axis is None else np.stack(each, axis) for one, each, axis in zip((A, B), many, axes, strict=True))
    rows = [(A if axes[0] is None else x, B if axes[1] is None else y) for x, y in zip(*many, strict=True)]
    np.testing.assert_allclose(run(corejax.vmap(layer, axes))(a, b), [numpy_layer(*row) for row in rows], rtol=1e-9)
    slopes = corejax.grad(lambda a, b: layer(a, b).sum(), 1)
    np.testing.assert_allclose(run(corejax.vmap(slopes, axes))(a, b), [slopes(*row) for row in rows], rtol=1e-9)


def test_inside_scan_and_itself() -> None:
    lax = pytest.importorskip("corejax_control_flow") and corejax.lax
    roots = lambda xs: lax.scan(lambda c, a: (c + sqrt(a), c), np.float64(0), xs)[0]  # noqa: E731
    xs = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(jitted(corejax.grad(roots))(xs), 0.5 * xs**-0.5, rtol=1e-10)
    nested = lambda a: fixed_point(lambda x, a: sqrt(x + a), 1.0, a)  # noqa: E731  # x**2 = x + a
    np.testing.assert_allclose(nested(np.float64(2.0)), 2.0, rtol=1e-10)
    np.testing.assert_allclose(corejax.grad(nested)(np.float64(2.0)), 1 / 3, rtol=1e-9)


def test_compiled_programs_do_not_call_back() -> None:
    text = jitted(corejax.grad(sqrt)).lower(2.0).as_text()
    assert text.count("stablehlo.while") == 2 and "custom_call" not in text


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fixed_point(3, 1.0), r"f is a function, got 3 of type int"),
        (lambda: fixed_point(jnp.cos, "a"), r"argument x is 'a' of type str"),
        (lambda: fixed_point(lambda x: (x, x), 1.0), r"has to give what is like x0, of structure .*\*.*, but gives"),
        (lambda: fixed_point(lambda x: x, {"n": np.arange(3)}), r"x0\['n'\] is int64\[3\]; x has to be of floating"),
        (lambda: fixed_point(lambda x: x[:2], np.ones(3)), r"x0 is float64\[3\], of which .* makes float64\[2\]"),
        (lambda: fixed_point(lambda x: x + np.ones(3), np.float32([1, 2, 3])), r"x0 is float32\[3\].* float64\[3\]"),
    ],
)
def test_type_errors(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_value_errors() -> None:
    with pytest.raises(ValueError, match=r"max_steps is at least 1 and tol at least 0, got max_steps=0 and tol=None"):
        fixed_point(jnp.cos, 1.0, max_steps=0)
    with pytest.raises(ValueError, match="tol=-1"):
        fixed_point(jnp.cos, 1.0, tol=-1.0)


def test_an_equation_leaves_what_an_iteration_computes_of_known_params_to_the_known_part() -> None:
    from corejax.extend import partial_eval_jaxpr

    def solve(w: Any, p: Any) -> Any:
        return fixed_point(lambda x, w, p: 0.1 * jnp.tanh(x) * jnp.exp(w) + p, jnp.sin(w), w, p)

    w, p = np.float64(0.5), np.float64(1.5)
    known, unknown, unknowns_out, _ = partial_eval_jaxpr(corejax.make_jaxpr(solve)(w, p), [False, True])
    assert unknowns_out == [True] and "exp" in str(known) and "exp" not in str(unknown) and "tanh" in str(unknown)
    residuals = corejax.extend.inline_closed(known, [w])
    (x,) = corejax.extend.inline_closed(unknown, [*residuals, p])
    np.testing.assert_allclose(x, solve(w, p), rtol=1e-12)
    np.testing.assert_allclose(corejax.grad(jitted(solve), 1)(w, p), corejax.grad(solve, 1)(w, p), rtol=1e-10)
