"""odeint against closed forms, SciPy and jax; its gradients against finite differences and jax's."""

import numpy as np
import pytest
import scipy.integrate

import corejax
import corejax.numpy as jnp
from corejax.experimental.ode import odeint

TIMES = np.linspace(0.0, 2.0, 5, dtype=np.float32)
Y0 = np.array([1.0, 2.0], np.float32)


def forced(y, t, a, b):
    return jnp.sin(t) * a - y * b


def test_values_against_scipy():
    corejax.config.update("default_dtype_bits", 64)
    times = np.array([0.0, 0.3, 0.31, 4.0, 10.0])

    def pendulum(y, t):
        return jnp.stack([y[1], -jnp.sin(y[0]) - 0.1 * y[1]])

    wanted = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], -np.sin(y[0]) - 0.1 * y[1]], (0, 10), [1.0, 0.5], t_eval=times, rtol=1e-12, atol=1e-12
    ).y.T
    got = odeint(pendulum, np.array([1.0, 0.5]), times, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8)


def test_pytrees_and_what_is_closed_over():
    w = jnp.array(0.3)

    def position(w):
        return odeint(lambda y, t: {"u": y["v"], "v": -w * y["u"]}, {"u": 1.0, "v": 0.0}, TIMES)["u"][-1]

    np.testing.assert_allclose(position(w), np.cos(2 * np.sqrt(0.3)), rtol=1e-5)
    root = np.sqrt(0.3)
    np.testing.assert_allclose(corejax.grad(position)(w), -2 * np.sin(2 * root) / (2 * root), rtol=1e-4)


def test_gradients_are_those_of_jax():
    jax = pytest.importorskip("jax")
    from jax.experimental.ode import odeint as jax_odeint

    def jax_forced(y, t, a, b):
        return jax.numpy.sin(t) * a - y * b

    wanted = jax.grad(lambda *xs: (jax_odeint(jax_forced, *xs) ** 2).sum(), (0, 1, 2, 3))(Y0, TIMES, 1.5, 0.7)
    got = corejax.jit(corejax.grad(lambda *xs: jnp.sum(odeint(forced, *xs) ** 2), (0, 1, 2, 3)))(Y0, TIMES, 1.5, 0.7)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_integer_arguments_and_batches():
    def last(k, n):
        return odeint(lambda y, t, n, k: -y * n * k, 1.0, TIMES, n, k)[-1]

    np.testing.assert_allclose(corejax.jit(corejax.grad(last))(0.5, np.int32(2)), -4 * np.exp(-2), rtol=1e-4)
    batch = corejax.vmap(lambda y: odeint(forced, y, TIMES, 1.5, 0.7))(np.stack([Y0, 2 * Y0]))
    one = odeint(forced, 2 * Y0, TIMES, 1.5, 0.7)
    np.testing.assert_allclose(batch[1], one, rtol=1e-4)


def test_a_single_time_is_the_start():
    np.testing.assert_array_equal(odeint(forced, Y0, TIMES[:1], 1.0, 1.0), Y0[None])


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: odeint(forced, np.array([1]), TIMES, 1.0, 1.0), TypeError, "y0 has floating-point leaves"),
        (lambda: odeint(forced, Y0, 2.0, 1.0, 1.0), TypeError, "t is a floating-point array of one axis"),
        (lambda: odeint(forced, Y0, np.arange(3), 1.0, 1.0), TypeError, "t is a floating-point array of one axis"),
        (lambda: odeint(forced, Y0, TIMES[:0], 1.0, 1.0), ValueError, "t has one time at least"),
        (lambda: odeint(lambda y, t: (y, y), Y0, TIMES), TypeError, "dy/dt has the structure of y"),
        (lambda: odeint(lambda y, t: y[0], Y0, TIMES), TypeError, r"dy/dt has the shape of y, f32\[2\], got f32\[\]"),
        (lambda: odeint(forced, Y0, TIMES[::-1], 1.0, 1.0), ValueError, "times increase, got"),
        (lambda: odeint(forced, Y0, TIMES, 1.0, 1.0, rtol=-1.0), TypeError, "rtol is a positive number, got -1.0"),
    ],
)
def test_bad_arguments(call, error, said):
    with pytest.raises(error, match=f"odeint of .*{said}"):
        call()


def test_no_function():
    with pytest.raises(TypeError, match="odeint: func is a function of y, t and args, got 3 of type int"):
        odeint(3, Y0, TIMES)


def test_a_function_that_was_solved_before_is_neither_traced_nor_compiled():
    slope = corejax.grad(lambda a: odeint(forced, Y0, TIMES, a, 0.7)[-1].sum())
    slope(jnp.float32(0.5))
    assert not corejax.explain(slope)(jnp.float32(0.75)).jit


def test_a_slope_may_be_a_list_of_components():
    times = TIMES[:3]
    listed = odeint(lambda y, t: [y[1], -y[0]], Y0, times)
    np.testing.assert_array_equal(listed, odeint(lambda y, t: jnp.stack([y[1], -y[0]]), Y0, times))


def test_second_derivatives_in_reverse_mode():
    def last(a):
        return odeint(lambda y, t, a: a * y, jnp.float32(1.0), TIMES[:3], a)[-1]  # exp(a)

    second = corejax.grad(corejax.grad(last))(jnp.float32(0.5))
    np.testing.assert_allclose(second, np.exp(0.5), rtol=1e-3)
