"""Taylor series through functions, against nested derivatives and real jax."""

import math

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.experimental.jet import jet

X = np.array([0.3, 0.7, 0.45])
SERIES = [np.array(c) for c in ([0.4, -0.3, 0.2], [0.1, 0.5, -0.6], [-0.2, 0.3, 0.1], [0.7, 0.2, -0.4])]


def curve(t):
    return X + sum(c * t**k / math.factorial(k) for k, c in enumerate(SERIES, 1))


def nested(f):
    """The derivatives at 0 of `t -> f(curve(t))`, each by a `jvp` of the one before."""
    found, g = [], lambda t: f(curve(t))
    for _ in range(len(SERIES) + 1):
        found.append(g(0.0))
        g = derivative(g)
    return found


def derivative(g):
    return lambda t: corejax.jvp(g, (t,), (1.0,))[1]


@pytest.fixture(autouse=True)
def wide():
    corejax.config.update("default_dtype_bits", 64)  # undone behind each test


@corejax.custom_jvp
def with_a_rule(x):
    return jnp.sin(x)


with_a_rule.defjvp(lambda primals, tangents: (with_a_rule(*primals), jnp.cos(primals[0]) * tangents[0]))

PROGRAMS = {
    "elementwise": lambda x: jnp.tanh(jnp.exp(x)) / (1 + x**2) - jnp.log1p(x) * jnp.arctan2(x, x[::-1]),
    "powers": lambda x: x ** x[::-1] + x**3 + x**-2 + jnp.sqrt(x) + jnp.cbrt(x),
    "special": lambda x: lax.erf(x) + lax.lgamma(x + 1) * lax.erf_inv(x),
    "products": lambda x: jnp.dot(jnp.outer(x, x), jnp.sin(x)),
    "choices": lambda x: jnp.where(x > 0.4, x * x, jnp.maximum(x, x[::-1])) + jnp.max(x) + jnp.clip(x, 0.35, 0.6),
    "derived": lambda x: jnp.sort(x) * jnp.cumprod(x),
    "indices": lambda x: jnp.asarray(x)[np.array([2, 0, 0])] ** 2 + jnp.asarray(x).at[1].add(x[0] * x[2]),
    "softmax": corejax.nn.softmax,
    "scan": lambda x: lax.scan(lambda c, e: (c * jnp.sin(e) + x[0], c * e), 1.0, x)[1],
    "scan that moves a carry": lambda x: lax.scan(lambda c, _: (jnp.sin(c) + x, None), jnp.zeros(3), None, 3)[0],
    "while": lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1]) * x + 1), (0, x))[1],
    "cond": lambda x: lax.cond(x[0] > 0.1, lambda x: x * x, lambda x: jnp.ones(3), x),
    "jit of checkpoint": lambda x: corejax.jit(corejax.checkpoint(lambda x: jnp.sin(x) * x))(x),
    "vmap of grad": lambda x: corejax.vmap(corejax.grad(lambda e: jnp.sin(e) * e))(x),
    "custom_jvp": lambda x: with_a_rule(x) * x,
    "network": lambda x: jnp.tanh(jnp.ones((4, 3)) @ jnp.tanh(jnp.ones((3, 3)) @ x)),
    "complex": lambda x: jnp.abs(jnp.exp(1j * x) * (x + 2j)),
    "constant": lambda x: jnp.floor(x) + 2.0,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_nested_jvp(name):
    f = PROGRAMS[name]
    wanted = nested(f)
    y, ys = jet(f, (X,), (SERIES,))
    for k, (got, want) in enumerate(zip([y, *ys], wanted, strict=True)):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10, err_msg=f"derivative {k}")
    y, ys = corejax.jit(lambda x, cs: jet(f, (x,), (cs,)))(X, SERIES)
    for got, want in zip([y, *ys], wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


def test_composes():
    batch = np.stack([X, 2 * X])
    _, (_, y2) = corejax.vmap(lambda x: jet(jnp.sin, (x,), ([jnp.ones(3), jnp.zeros(3)],)))(batch)
    np.testing.assert_allclose(y2, -np.sin(batch), rtol=1e-12)
    third = corejax.grad(lambda x: jet(jnp.sin, (x,), ([1.0, 0.0],))[1][1])(0.3)
    np.testing.assert_allclose(third, -math.cos(0.3), rtol=1e-12)
    inner = jet(lambda x: jet(jnp.exp, (x,), ([1.0, 0.0],))[1][1], (0.3,), ([1.0],))
    np.testing.assert_allclose(inner[1][0], math.exp(0.3), rtol=1e-12)
    (_, found), _ = jet(lambda x: corejax.jvp(jnp.sin, (x,), (2 * x,)), (0.3,), ([1.0],))
    np.testing.assert_allclose(found, 0.6 * math.cos(0.3), rtol=1e-12)


def test_pytrees_and_what_does_not_move():
    def f(d, n):
        return {"product": d["x"] * d["y"], "n": n + 1}

    out, series = jet(f, ({"x": 2.0, "y": 3.0}, 4), ([{"x": 1.0, "y": 0.5}, {"x": 0.0, "y": 0.0}], [0, 0]))
    assert float(out["product"]) == 6.0 and int(out["n"]) == 5
    np.testing.assert_allclose(series["product"], [4.0, 1.0])
    assert [int(c) for c in series["n"]] == [0, 0]


def test_coefficients_without_factorials():
    y, ys = jet(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)
    np.testing.assert_allclose([y, *ys], [1, 1, 1 / 2, 1 / 6], rtol=1e-12)


def test_against_jax():
    jax = pytest.importorskip("jax")
    from jax.experimental.jet import jet as jax_jet

    def program(np_, lax_):
        return lambda x: np_.sin(x) * np_.exp(-x) + np_.sum(np_.tanh(x) ** 2) - lax_.erf(x) / (x + 2)

    x, series = X.astype(np.float32), [c.astype(np.float32) for c in SERIES]
    wanted = jax_jet(program(jax.numpy, jax.lax), (x,), (series,))
    got = jet(program(jnp, lax), (x,), (series,))
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-5)
    for a, b in zip(got[1], wanted[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_costs_grow_with_the_square_of_the_order():
    """The recurrences do what they are for: nested jvp would double the program with each order."""

    def equations(order):
        program = corejax.make_jaxpr(lambda x: jet(lambda x: jnp.exp(jnp.sin(x)), (x,), ([1.0] * order,)))(1.0)
        return len(program.eqns)

    assert equations(12) < 6 * equations(6)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: jet(jnp.sin, (1.0,), ()), ValueError, "one series for each of 1 primals, got 0"),
        (lambda: jet(jnp.sin, 1.0, [[1.0]]), TypeError, "primals are a list or tuple"),
        (lambda: jet(jnp.sin, (1.0,), (1.0,)), TypeError, r"series\[0\] is a list of coefficients"),
        (
            lambda: jet(jnp.add, (1.0, 2.0), ([1.0], [1.0, 0.0])),
            ValueError,
            r"one length, 1 or more, got \[1, 2\]",
        ),
        (lambda: jet(jnp.sin, (1.0,), ([],)), ValueError, r"got \[0\]"),
        (
            lambda: jet(jnp.sin, (1.0,), ([np.ones(3)],)),
            TypeError,
            r"coefficient 1 of argument x .*, got f64\[3\]",
        ),
        (lambda: jet(lambda d: d["x"], ({"x": 1.0},), ([1.0],)), TypeError, r"series\[0\]\[0\] has the structure"),
    ],
)
def test_bad_arguments(call, error, said):
    with pytest.raises(error, match=f"jet of .*{said}"):
        call()


def test_rules_of_others_are_held_to_their_types():
    from corejax.experimental.jet import jet_rules
    from corejax.extend import Primitive

    twice_p = Primitive("test.jet_twice", impl=lambda x: 2 * x, abstract_eval=lambda x: x)
    jet_rules.register(twice_p, lambda primals, series: (twice_p.bind(*primals), [2 * series[0][0]]))
    assert float(jet(twice_p.bind, (1.0,), ([3.0],))[1][0]) == 6.0
    with pytest.raises(TypeError, match=r"test.jet_twice.*1 coefficients, of a series of order 2"):
        jet(twice_p.bind, (1.0,), ([3.0, 0.0],))


def test_without_any_rule():
    from corejax.errors import MissingRuleError
    from corejax.extend import Primitive

    opaque_p = Primitive("test.jet_opaque", impl=lambda x: x, abstract_eval=lambda x: x)
    with pytest.raises(MissingRuleError, match=r"test.jet_opaque.*jet rule"):
        jet(opaque_p.bind, (1.0,), ([1.0],))


def test_a_jvp_rule_that_is_not_the_derivative_of_the_decomposition():
    from corejax.extend import Primitive, jvp_rules

    rounded_p = Primitive("test.jet_rounded", decomposition=jnp.round)
    jvp_rules.register(rounded_p, lambda primals, tangents: (rounded_p.bind(*primals), 3 * tangents[0]))
    out, series = jet(rounded_p.bind, (1.7,), ([1.0, 0.5],))
    np.testing.assert_allclose([out, *series], [2.0, 3.0, 1.5])


@corejax.custom_jvp
def straight_through(x):
    return jnp.round(x)


straight_through.defjvp(lambda primals, tangents: (straight_through(*primals), jnp.cos(primals[0]) * tangents[0]))


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit, corejax.vmap])
def test_custom_rules_are_followed(wrap):
    """The series is that of the custom rule: the derivative of rounding alone is zero."""
    x = np.array([0.7, 1.2])
    out, series = jet(wrap(straight_through), (x,), ((np.ones(2), np.zeros(2), np.zeros(2)),))
    np.testing.assert_array_equal(out, np.round(x))
    np.testing.assert_allclose(series, [np.cos(x), -np.sin(x), -np.cos(x)], rtol=1e-12)
