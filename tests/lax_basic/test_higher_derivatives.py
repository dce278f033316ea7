"""Second and third derivatives where first ones are given by cases: powers at special bases and exponents, ties,
remainders. The oracles are formulas; every order of forward and reverse mode has to agree, compiled or not."""

import itertools

import numpy as np
import pytest

import corejax
from corejax import lax

MODES = {"forward": corejax.jacfwd, "reverse": corejax.jacrev}
SECOND = [f"{outer} over {inner}" for outer, inner in itertools.product(MODES, MODES)]


def second(f, order):
    outer, inner = order.split(" over ")
    return MODES[outer](MODES[inner](f))


def assert_derivative(f, x, expected, compiled=True):
    for run in (f, corejax.jit(f)) if compiled else (f,):
        np.testing.assert_allclose(run(np.asarray(x, np.float64)), expected, rtol=1e-12, atol=1e-14)


def power(v):
    return lax.pow(v[0], v[1])


def power_hessian(x, y):
    log, mixed = np.log(x), x ** (y - 1) * (1 + y * np.log(x))
    return [[y * (y - 1) * x ** (y - 2), mixed], [mixed, log * log * x**y]]


@pytest.mark.parametrize("order", SECOND)
def test_power_at_exponents_that_are_special(order):
    for x, y in [(0.5, 0.0), (0.5, -0.0), (3.0, 0.0), (1.0, 0.0), (2.0, 1.0), (0.5, 2.0), (2.0, -1.0)]:
        assert_derivative(second(power, order), [x, y], power_hessian(x, y), compiled=y == 0.0)


def test_third_derivative_of_a_power_with_exponent_zero():
    x = 0.5
    third = corejax.jacfwd(corejax.jacrev(corejax.jacrev(power)))
    log = np.log(x)
    xxx, xxy, xyy, yyy = 0.0, -1 / x**2, 2 * log / x, log**3
    assert_derivative(third, [x, 0.0], [[[xxx, xxy], [xxy, xyy]], [[xxy, xyy], [xyy, yyy]]])


@pytest.mark.parametrize("order", SECOND)
@pytest.mark.parametrize("y", [0.0, 1.0, 2.0, 3.0])
def test_at_base_zero_the_power_counts_as_independent_of_the_exponent(order, y):
    by_base = {2.0: 2.0}.get(y, 0.0)
    assert_derivative(second(power, order), [0.0, y], [[by_base, 0.0], [0.0, 0.0]], compiled=y == 1.0)


@pytest.mark.parametrize("y", [0.0, 1.0, 2.0, 3.0])
def test_third_derivatives_of_a_power_at_base_zero_are_symmetric(y):
    third = corejax.jacrev(corejax.jacfwd(corejax.jacrev(power)))(np.array([0.0, y]))
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0] = {3.0: 6.0}.get(y, 0.0)
    np.testing.assert_array_equal(third, expected)


def test_power_of_complex_numbers_with_exponent_zero():
    def mixed(x, y):
        return corejax.grad(lambda y: corejax.grad(lax.pow, holomorphic=True)(x, y), holomorphic=True)(y)

    x = 0.5 + 1j
    np.testing.assert_allclose(mixed(np.complex128(x), np.complex128(0)), 1 / x, rtol=1e-12)


@pytest.mark.parametrize("name", ["square", "self"])
def test_a_power_with_a_variable_exponent_inside_a_function(name):
    f = {"square": lambda x: lax.pow(x, lax.mul(x, x)), "self": lambda x: lax.pow(x, x)}[name]
    expected = {"square": 4.0, "self": 2.0}[name]  # x**(x*x) is 1 + (x-1) + 2 (x-1)**2, x**x is 1 + (x-1) + (x-1)**2
    assert_derivative(corejax.grad(corejax.grad(f)), 1.0, expected)


def softmax_hessian(x):
    p = np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x)))
    return np.diag(p) - np.outer(p, p)


@pytest.mark.sampled
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", SECOND)
@pytest.mark.parametrize("x", [[0.0, 0.0], [1.0, 1.0, 1.0], [2.0, 1.0, 2.0, -1.0], [50.0, 0.0, 50.0]])
def test_cumlogsumexp_of_equal_elements(order, reverse, x):
    x = np.array(x)
    expected = np.zeros((len(x),) * 3)
    for i in range(len(x)):
        part = slice(i, None) if reverse else slice(None, i + 1)
        expected[i, part, part] = softmax_hessian(x[part])
    f = second(lambda x: lax.cumlogsumexp(x, reverse=reverse), order)
    assert_derivative(f, x, expected, compiled=len(x) == 2 and not reverse)


def test_third_derivative_of_cumlogsumexp_of_equal_elements():
    third = corejax.jacfwd(corejax.jacrev(corejax.jacrev(lambda x: lax.cumlogsumexp(x)[1])))
    np.testing.assert_allclose(third(np.zeros(2)), np.zeros((2, 2, 2)), atol=1e-15)


def test_cumlogsumexp_of_infinities_has_derivatives():
    inf = np.inf
    for x, value, jacobian in [
        ([-inf, -inf], [-inf, -inf], [[1, 0], [1, 1]]),
        ([-inf, 0.0], [-inf, 0.0], [[1, 0], [0, 1]]),
        ([inf, 0.0], [inf, inf], [[1, 0], [1, 0]]),
        ([inf, inf], [inf, inf], [[1, 0], [1, 1]]),
    ]:
        np.testing.assert_array_equal(lax.cumlogsumexp(np.array(x)), value)
        assert_derivative(corejax.jacfwd(lax.cumlogsumexp), x, jacobian, compiled=False)
        assert_derivative(corejax.jacrev(lax.cumlogsumexp), x, jacobian, compiled=False)
    assert np.isnan(corejax.jacfwd(lax.cumlogsumexp)(np.array([np.nan, 0.0]))[1]).all()


@pytest.mark.parametrize("order", SECOND)
def test_the_second_derivative_of_a_remainder_is_zero(order):
    def f(v):
        return lax.rem(v[0], v[1])

    for x, y in [(7.0, 2.5), (2.0, 1e-5), (1e300, 1e-5), (-3.0, 0.7)]:
        np.testing.assert_array_equal(second(f, order)(np.array([x, y])), np.zeros((2, 2)))
    assert_derivative(corejax.grad(f), [7.0, 2.5], [1.0, -2.0])
