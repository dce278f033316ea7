"""The JVP interpreter: symbolic zeros, rules with and without them, multiple results, derived rules."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.errors import MissingRuleError
from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    add_tangents,
    defjvp,
    defjvp_with_result,
    deflinear,
    defzero,
    instantiate,
    jvp_flat,
    jvp_rules,
    zeros_like,
)
from corejax.extend.transforms import tangent_aval
from corejax.interpreters.jvp import JVPTracer
from tests.kernel.toys import (
    add,
    bare_p,
    call,
    cos,
    floor_p,
    greater,
    jacfwd,
    moments_p,
    mul,
    scale_p,
    sin,
    sincos_p,
    sum_,
    swap_p,
)

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
Y = np.array([1.0, -1.0, 3.0], np.float32)


def test_values_without_tangent_are_not_boxed():
    seen = []

    def f(x, y):
        seen.extend([type(x), type(y), type(sin(y)), type(mul(x, y)), type(greater(x, y))])
        return [mul(x, y)]

    _outs, tangents = jvp_flat(f, [X, Y], [X, None])
    assert seen == [JVPTracer, np.ndarray, Array, JVPTracer, Array]
    np.testing.assert_allclose(tangents[0], X * Y)


def test_an_output_that_does_not_depend_on_the_input_has_no_tangent():
    outs, tangents = jvp_flat(lambda x, y: [sin(y), 3.0, x], [X, Y], [X, None])
    assert tangents[:2] == [None, None] and outs[1] == 3.0 and np.array_equal(tangents[2], X)


def test_primals_steer_control_flow():
    def f(x):
        assert bool(x) and int(x) == 0 and x.shape == () and x.dtype == np.float32
        return sin(x) if x > 0.0 else cos(x)

    np.testing.assert_allclose(cj.jvp(f, (np.float32(0.5),), (1.0,))[1], np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(cj.jvp(f, (0.5,), (1.0,))[1], np.cos(0.5), rtol=1e-6)  # a Python number
    indexed = lambda i, x: mul(x, [10.0, 20.0][i])
    assert float(cj.jvp(indexed, (np.int32(1), 2.0), (None, 1.0))[1]) == 20.0


def test_multiple_results():
    (s, c), (ds, dc) = cj.jvp(sincos_p.bind, (X,), (Y,))
    np.testing.assert_allclose([s, c, ds, dc], [np.sin(X), np.cos(X), Y * np.cos(X), -Y * np.sin(X)], rtol=1e-6)


def test_symbolic_zeros_of_multiple_results():
    _, tangents = jvp_flat(swap_p.bind, [X, Y], [X, None])
    assert tangents[0] is None and np.array_equal(tangents[1], X)
    _, tangents = cj.jvp(lambda x: swap_p.bind(x, Y), (X,), (X,))
    np.testing.assert_array_equal(tangents[0], np.zeros(3))  # made real for the user
    # A zero on one result only: the pullback of the other is not touched.
    gradient = cj.grad(lambda x: sum_(swap_p.bind(x, Y)[0]))(X)
    np.testing.assert_array_equal(gradient, np.zeros(3))


def test_plain_rules_get_real_zeros():
    seen = []

    def rule(primals, tangents):
        seen.append(tangents)
        return p.bind(*primals), add(mul(tangents[0], primals[1]), mul(tangents[1], primals[0]))

    p = Primitive("toy.plain_mul", impl=np.multiply, abstract_eval=lambda a, b: a, jvp=rule)
    np.testing.assert_allclose(cj.jvp(lambda x: p.bind(x, Y), (X,), (X,))[1], X * Y)
    np.testing.assert_array_equal(seen[0][1], np.zeros(3))
    assert seen[0][1].dtype == np.float32
    i = Primitive("toy.plain_pick", impl=lambda x, i: x, abstract_eval=lambda a, b: a)
    jvp_rules.register(i, lambda primals, tangents: (seen.append(tangents) or i.bind(*primals), tangents[0]))
    cj.jvp(lambda x: i.bind(x, np.int32(1)), (X,), (X,))
    assert seen[1][1] is None  # integers have no tangents, not even zero ones


def test_helpers_for_rules():
    square = Primitive("toy.square", impl=np.square, abstract_eval=lambda a: a)
    defjvp(square, lambda t, x: mul(mul(t, 2.0), x))
    np.testing.assert_allclose(cj.jvp(square.bind, (X,), (Y,))[1], 2 * X * Y)
    exp = Primitive("toy.exp", impl=np.exp, abstract_eval=lambda a: a)
    defjvp_with_result(exp, lambda t, out, x: mul(t, out))
    np.testing.assert_allclose(cj.jvp(exp.bind, (X,), (Y,))[1], Y * np.exp(X), rtol=1e-6)
    half = Primitive("toy.half", impl=lambda x: x / np.float32(2), abstract_eval=lambda a: a)
    deflinear(half, lambda ct, x: [half.bind(ct)])
    np.testing.assert_allclose(cj.jvp(half.bind, (X,), (Y,))[1], Y / 2)
    np.testing.assert_allclose(cj.grad(lambda x: sum_(half.bind(x)))(X), [0.5, 0.5, 0.5])
    power = Primitive(
        "toy.times_power", impl=lambda k, s, x: np.float32(s**k * x), abstract_eval=lambda k, s, x: x, linear_in=(2,)
    )
    deflinear(power, lambda ct, k, s, x: [None, None, power.bind(k, s, ct)])
    k = np.array([2, 0, 1], np.int32)
    np.testing.assert_allclose(cj.jvp(lambda x: power.bind(k, X, x), (Y,), (Y,))[1], X**k * Y)
    np.testing.assert_allclose(cj.grad(lambda x: sum_(power.bind(k, X, x)))(Y), X**k)
    with pytest.raises(TypeError, match=r"toy.times_power: operand 1 is not in linear_in; add it, or write a JVP rule"):
        cj.jvp(lambda s: power.bind(k, s, Y), (X,), (X,))
    both = Primitive(
        "toy.two_flags", multiple_results=True, impl=lambda x: [np.sign(x)] * 2, abstract_eval=lambda a: [a, a]
    )
    defzero(both)
    np.testing.assert_array_equal(cj.jvp(both.bind, (X,), (Y,))[1][1], np.zeros(3))
    first = Primitive("toy.first", impl=lambda x, y: x, abstract_eval=lambda a, b: a)
    defjvp(first, lambda t, x, y: t, None)
    np.testing.assert_array_equal(cj.jvp(lambda y: first.bind(X, y), (Y,), (Y,))[1], np.zeros(3))


def test_tangents_that_do_not_depend_on_the_input():
    """A rule may give a known tangent (real zeros, say): it is no variable on the tape."""
    np.testing.assert_array_equal(cj.grad(lambda x: sum_(floor_p.bind(x)))(X), np.zeros(3))
    np.testing.assert_array_equal(cj.vjp(floor_p.bind, X)[1](X)[0], np.zeros(3))
    np.testing.assert_array_equal(cj.grad(lambda x: floor_p.bind(x))(np.float32(2.5)), 0.0)
    np.testing.assert_array_equal(cj.linearize(floor_p.bind, X)[1](X), np.zeros(3))
    np.testing.assert_allclose(cj.grad(lambda x: sum_(mul(floor_p.bind(x), x)))(X), np.floor(X))
    np.testing.assert_array_equal(jacfwd(floor_p.bind)(X), np.zeros((3, 3)))


def test_tangents_are_strongly_typed():
    assert tangent_aval(ShapedArray((), np.float32, True)) is ShapedArray((), np.float32)
    for t in (1.0, 1, np.float32(1.0)):
        assert not cj.jvp(lambda x: x, (2.0,), (t,))[1].weak_type
    assert not cj.vjp(lambda x: x, 2.0)[1](1.0)[0].weak_type
    closed = cj.make_jaxpr(lambda x: cj.jvp(call(sin), (x,), (x,))[1])(2.0)  # a weakly typed tracer as tangent
    assert closed.out_avals == [ShapedArray((), np.float32)]


def test_outputs_are_arrays():
    for out in (*cj.jvp(lambda x: (x, 2.0, X), (1.0,), (1.0,)), cj.vjp(lambda x: (x, 2.0, X), 1.0)[0]):
        assert [type(x) for x in out] == [Array] * 3
    assert cj.jvp(lambda x: 2.0, (1.0,), (1.0,))[0].weak_type


def test_zeros_helpers():
    assert add_tangents(None, X) is X and add_tangents(X, None) is X and add_tangents(None, None) is None
    np.testing.assert_array_equal(add_tangents(X, Y), X + Y)
    assert instantiate(X, Y) is X
    zeros = zeros_like(np.ones((2, 3), np.float16))
    assert zeros.shape == (2, 3) and zeros.dtype == np.float16


def test_rules_derived_from_a_decomposition():
    f = lambda x, y: moments_p.bind(x, y, weight=2.0)
    (total, _), (dtotal, dweighted) = cj.jvp(f, (X, Y), (Y, X))
    np.testing.assert_allclose(total, np.sum(X * Y))
    np.testing.assert_allclose(dtotal, np.sum(Y * Y + X * X), rtol=1e-6)
    np.testing.assert_allclose(dweighted, 2 * Y * np.cos(X), rtol=1e-6)


def test_higher_order():
    f = call(lambda x, y: (mul(sin(x), y), cos(y)))
    _outs, tangents = cj.jvp(f, (X, Y), (Y, X))
    np.testing.assert_allclose(tangents[0], np.cos(X) * Y * Y + np.sin(X) * X, rtol=1e-5)
    np.testing.assert_allclose(tangents[1], -np.sin(Y) * X, rtol=1e-5)
    text = str(cj.make_jaxpr(lambda x: cj.jvp(lambda x: f(x, Y), (x,), (x,))[1][0])(X))
    assert text.count("closed_call") == 1  # one program for both halves, not inlined


def test_missing_rule():
    with pytest.raises(MissingRuleError, match=r"toy.bare.*no JVP rule") as info:
        cj.jvp(bare_p.bind, (X,), (X,))
    assert info.value.primitive is bare_p and info.value.kind == "jvp"
    np.testing.assert_array_equal(cj.jvp(lambda x: (bare_p.bind(Y), x)[1], (X,), (X,))[1], X)  # needed on tangents only


def test_scale_gets_the_cotangents_that_its_plain_rule_wants():
    f = lambda x: sum_(scale_p.bind(x, factor=3.0)[0])
    np.testing.assert_allclose(cj.grad(f)(X), [3.0] * 3)
    np.testing.assert_allclose(cj.grad(lambda x: sum_(scale_p.bind(x, factor=3.0)[1]))(X), [1.0] * 3)


def test_repr_shows_primal_and_tangent():
    seen = []
    cj.jvp(lambda x: seen.append(repr(x)) or x, (1.0,), (np.float32(2.0),))
    assert seen[0].startswith("JVPTracer(primal=Array(1., dtype=float32, weak_type=True), tangent=")


def test_deep_nesting_asks_for_types_once():
    """`get_aval` of n nested tracers costs n steps, not 2**n."""

    def nested(depth):
        return (lambda x: cj.jvp(nested(depth - 1), (x,), (1.0,))[1]) if depth else sin

    np.testing.assert_allclose(nested(12)(0.5), np.sin(0.5), rtol=1e-5)
    seen = []

    def innermost(x):
        seen.append(x.aval)
        return x

    deep = innermost
    for _ in range(40):
        deep = lambda x, f=deep: cj.jvp(f, (x,), (1.0,))[0]
    deep(1.0)
    assert seen == [ShapedArray((), np.float32, True)]
