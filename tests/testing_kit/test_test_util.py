"""`corejax.test_util`: right derivatives pass in every order and mode, wrong ones are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.test_util import check_grads, check_jvp, check_vjp
from tests.value_types import dense, symmetric

X = jnp.asarray(np.linspace(0.2, 1.3, 6, dtype=np.float32).reshape(2, 3))


@pytest.mark.parametrize("modes", ["fwd", "rev", ("fwd", "rev"), ["rev"]])
@pytest.mark.parametrize(
    ("f", "args", "order"),
    [
        (jnp.sin, (X,), 3),
        (lambda x, n: {"a": jnp.exp(x) * n, "b": [x**2]}, (X, 2), 2),
        (lambda pair: jnp.tanh(pair[0] @ pair[1]), ((X, X.T),), 2),
        (lambda x: jnp.exp(x * 1j), (X.astype(np.complex64) * (1 + 0.2j),), 2),
        (lambda x: jnp.cbrt(x), (X.astype(np.float64),), 3),
        (lambda x: x * x, (X.astype(jnp.bfloat16),), 1),
        (lambda x: x[:0], (X,), 1),
        (corejax.jit(jnp.log1p), (X,), 2),
    ],
)
def test_right_derivatives_pass(f: Callable[..., Any], args: Any, order: int, modes: Any) -> None:
    check_grads(f, args, order, modes)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_derivative_that_is_off_by_a_percent_is_found(mode: str, dtype: str) -> None:
    @corejax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.exp(x)

    f.defjvps(lambda t, out, x: 1.01 * t * out)
    with pytest.raises(AssertionError, match=("jvp" if mode == "fwd" else "vjp") + " of f: .* differs"):
        check_grads(f, (X.astype(dtype),), 1, mode)


def test_a_second_derivative_that_is_wrong_is_found() -> None:
    @corejax.custom_jvp
    def slope(x: Any) -> Any:
        return jnp.cos(x)

    slope.defjvps(lambda t, out, x: t * jnp.sin(x))  # the sign is wrong

    @corejax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvps(lambda t, out, x: t * slope(x))
    check_grads(f, (X,), 1)
    with pytest.raises(AssertionError, match="jvp of jvp of f: the tangent differs"):
        check_grads(f, (X,), 2, "fwd")
    with pytest.raises(AssertionError, match="vjp of vjp of f"):
        check_grads(f, (X,), 2, "rev")


def test_functions_of_ones_own() -> None:
    def of_square(args: Any, tangents: Any) -> Any:
        return args[0] ** 2, 2 * args[0] * tangents[0]

    check_jvp(lambda x: x**2, of_square, (X,), eps=1e-2)
    check_vjp(lambda x: x**2, lambda x: (x**2, lambda ct: (2 * x * ct,)), (X,), eps=1e-2)
    with pytest.raises(AssertionError, match="mine: the value differs"):
        check_jvp(lambda x: x**3, of_square, (X,), err_msg="mine")
    with pytest.raises(AssertionError, match="the cotangent's product differs"):
        check_vjp(lambda x: x**2, lambda x: (x**2, lambda ct: (3 * x * ct,)), (X,), eps=1e-2)
    with pytest.raises(AssertionError, match="structure"):
        check_jvp(lambda x: (x, x), of_square, (X,))


def test_tolerances_are_taken() -> None:
    @corejax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.exp(x)

    f.defjvps(lambda t, out, x: 1.01 * t * out)
    check_grads(f, (X,), 1, rtol=0.05, atol=0.05)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="modes are 'fwd' and 'rev', got 'forward'"):
        check_grads(jnp.sin, (X,), 1, "forward")
    with pytest.raises(ValueError, match="order is a number of derivatives, 1 or more, got 0"):
        check_grads(jnp.sin, (X,), 0)


def test_tolerances_by_dtype():
    x = np.linspace(0.5, 1, 3, dtype=np.float32)
    check_grads(jnp.sin, (x,), 1, atol={np.float32: 1e-2, "float64": 0.0}, rtol={np.dtype("float32"): 1e-2})
    with pytest.raises(AssertionError, match="differs"):
        check_grads(jnp.sin, (x,), 1, atol={np.float32: 1e-12}, rtol={"float32": 1e-12})


def test_values_are_differentiated_as_their_parts() -> None:
    s = symmetric(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    check_grads(lambda s, x: {"a": symmetric(dense(s) ** 2), "b": jnp.sin(dense(s) @ x)}, (s, X[0, :2]), 2)

    @corejax.custom_jvp
    def wrong(s: Any) -> Any:
        return dense(s)

    wrong.defjvp(lambda primals, tangents: (dense(primals[0]), 2 * dense(tangents[0])))
    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError, match="of wrong: the"):
            check_grads(wrong, (s,), 1, mode)
