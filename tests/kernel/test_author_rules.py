"""What authors may leave out or declare: an impl alone, integer results, no derivative, what is derived."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import corejax as cj
from corejax.cli.rule_status import rule_statuses
from corejax.errors import MissingRuleError, NotDifferentiableError
from corejax.extend import (
    Array,
    Primitive,
    Tracer,
    abstract_eval_rules,
    as_array,
    defjvp,
    defjvp_with_result,
    dtypes,
    impl_rules,
    jvp_rules,
    nondifferentiable,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.messages import DerivedRuleWarning
from corejax.extend.plugins import isolated_plugins
from corejax.extend.transforms import trace_stack, why_not_differentiable
from tests.kernel.toys import cos, mul, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def isolated():
    with isolated_plugins(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DerivedRuleWarning)
        yield


def same(x):
    return x.strip_weak_type()


def test_bytes_where_integers_of_fewer_bits_are_promised():
    """NumPy computes with bytes there; the lowest bits are right, whatever overflowed."""
    negated = Primitive("acme.negated", impl=np.negative, abstract_eval=lambda x: x)
    for name in ("int4", "uint4"):
        x = np.arange(8).astype(dtypes.dtype(name))
        out = negated.bind(x)
        assert out.dtype == x.dtype
        expected = -np.arange(8) if name == "int4" else -np.arange(8) % 16
        np.testing.assert_array_equal(np.asarray(out).astype(int), expected)
    with pytest.raises(TypeError, match=r"returned int16\[8\], but its abstract-eval rule promises int4\[8\]"):
        Primitive("acme.wide", impl=lambda x: x.astype(np.int16), abstract_eval=lambda x: x).bind(
            np.zeros(8, dtypes.dtype("int4"))
        )


def test_rules_get_arrays_whatever_the_primitive_was_given():
    """The operators of NumPy's arrays would widen small floats, and a Python number has no shape."""
    seen = []
    p = Primitive("acme.first", impl=lambda x, y: x.copy(), abstract_eval=lambda x, y: same(x))

    @jvp_rules.register(p, symbolic_zeros=True)
    def _(primals, tangents):
        seen.extend([*primals, *(t for t in tangents if t is not None)])
        return p.bind(*primals), tangents[0]

    @vmap_rules.register(p)
    def _(axis_size, vals, dims):
        seen.extend(vals)
        return p.bind(*vals), dims[0]

    for x, y in [(X, X), (X, 2.0), (as_array(X), np.float32(2.0))]:
        zero = np.zeros(np.shape(y), np.float32)
        cj.jvp(p.bind, (x, y), (X, zero))
        cj.jvp(lambda x, y=y: p.bind(x, y), (x,), (X,))
        cj.linearize(p.bind, x, y)[1](X, zero)
        cj.vmap(p.bind, (0, None))(x, y)
        cj.make_jaxpr(cj.vmap(lambda x, y=y: p.bind(x, y)))(x)
    cj.grad(p.bind)(1.0, 2.0)
    assert len(seen) == 3 * (4 + 3 + 4 + 2 + 2) + 3
    assert all(isinstance(x, Array | Tracer) for x in seen)


# -- an impl alone -------------------------------------------------------------------------------------------


def test_an_impl_alone_runs_eagerly():
    p = Primitive("acme.square", impl=np.square)
    for x, dtype in [(X, np.float32), (X.astype(np.float64), np.float64), (np.int32(3), np.int32), (2.0, np.float32)]:
        out = p.bind(x)
        assert type(out) is cj.Array and out.dtype == dtype and not out.aval.weak_type
        np.testing.assert_array_equal(out, np.square(x))
    np.testing.assert_allclose(sin(p.bind(X)), np.sin(X * X), rtol=1e-6)
    scaled = Primitive("acme.scaled", impl=lambda x, by: x * by)
    np.testing.assert_array_equal(scaled.bind(X, by=2), X * 2)
    both = Primitive("acme.both", multiple_results=True, impl=lambda x: (x.sum(), x.size))
    total, count = both.bind(X)
    assert total.dtype == np.float32 and count.dtype == np.int32 and int(count) == 3
    device = Primitive("acme.device")
    impl_rules.register(device, lambda x: sin(x), device=True)
    np.testing.assert_allclose(device.bind(X), np.sin(X), rtol=1e-6)


def test_an_impl_alone_is_no_more_than_that():
    p = Primitive("acme.square", impl=np.square)
    for call, kind in [
        (lambda: cj.make_jaxpr(p.bind)(X), "abstract-eval rule"),
        (lambda: cj.vmap(p.bind)(M), "vmap rule"),
        (lambda: cj.grad(lambda x: sum_(p.bind(x)))(X), "JVP rule"),
    ]:
        with pytest.raises(MissingRuleError, match=f"acme.square.*has no {kind}"):
            call()
        assert len(trace_stack()) == 1
    abstract_eval_rules.register(p, same)
    assert str(cj.make_jaxpr(p.bind)(X)).count("acme.square") == 1
    np.testing.assert_array_equal(cj.vmap(p.bind)(M), M * M)


def test_what_an_impl_alone_may_not_give():
    for impl in (lambda x: None, lambda x: "text", lambda x: [x, x], lambda x: np.array([None])):
        with pytest.raises(TypeError, match=r"acme.bad.*its impl rule .*returned"):
            Primitive("acme.bad", impl=impl).bind(X)
    with pytest.raises(TypeError, match=r"acme.bad_list.*its impl rule .*returned .*f32\[3\].* a list of arrays"):
        Primitive("acme.bad_list", impl=lambda x: x, multiple_results=True).bind(X)


# -- integer results -----------------------------------------------------------------------------------------


def count_above(**options):
    return Primitive(
        "acme.count",
        impl=lambda x: np.int32((x > 0).sum()),
        abstract_eval=lambda x: x.update(shape=(), dtype=np.int32, weak_type=False),
        **options,
    )


def test_integer_results_need_no_jvp():
    p = count_above()
    assert rule_statuses(p)["jvp"].status == "missing", "the types of its operands decide"
    out, tangent = cj.jvp(p.bind, (X,), (X,))
    assert int(out) == 2 and np.asarray(tangent).dtype.names == ("float0",)
    f = lambda x: sum_(mul(x, np.float32(1))) if int(p.bind(x)) == 2 else sin(sum_(x))
    np.testing.assert_array_equal(cj.grad(f)(X), np.ones(3))
    np.testing.assert_array_equal(cj.vmap(cj.grad(lambda x: keep(p, x)))(M), np.ones_like(M))
    np.testing.assert_array_equal(cj.linearize(lambda x: keep(p, x), X)[1](X), X.sum())
    assert rule_statuses(p)["jvp"].derivation == jvp_rules.rule_of(p).derived == "integer results"


def keep(p, x):
    """The sum of x; p is applied on the way."""
    p.bind(x)
    return sum_(x)


def test_a_mix_needs_a_rule_still():
    p = Primitive(
        "acme.frexp", multiple_results=True, impl=np.frexp, abstract_eval=lambda x: [x, x.update(dtype=np.int32)]
    )
    assert rule_statuses(p)["jvp"].status == "missing"
    with pytest.raises(MissingRuleError, match=r"acme.frexp.*JVP rule"):
        cj.jvp(p.bind, (X,), (X,))


def test_types_decide_where_it_is_applied():
    def type_of(x, *, to):
        return x.update(dtype=to)

    p = Primitive("acme.to", impl=lambda x, to: x.astype(to), abstract_eval=type_of)
    assert rule_statuses(p)["jvp"].status == "missing"
    assert cj.jvp(lambda x: p.bind(x, to=np.dtype("int8")), (X,), (X,))[0].dtype == np.int8
    assert rule_statuses(p)["jvp"].status == "derived"
    with pytest.raises(MissingRuleError, match=r"acme.to.*JVP rule"):
        cj.jvp(lambda x: p.bind(x, to=np.dtype("float64")), (X,), (X,))


def test_strict_rules_refuse_it():
    p = count_above()
    cj.config.update("strict_rules", True)
    try:
        with pytest.raises(MissingRuleError, match="derived rules are refused"):
            cj.jvp(p.bind, (X,), (X,))
    finally:
        cj.config.update("strict_rules", False)
    assert int(cj.jvp(p.bind, (X,), (X,))[0]) == 2


# -- not differentiable --------------------------------------------------------------------------------------

WHY = "the number of bins is a count"


def power(jvp=None, **options):
    p = Primitive("acme.power", impl=np.power, abstract_eval=lambda x, n: x.strip_weak_type(), jvp=jvp, **options)
    return p


def check_refusals(p, operand=1):
    """x ** n, differentiable in x alone."""
    n = np.float32(2) * np.ones(3, np.float32)
    np.testing.assert_allclose(cj.grad(lambda x: sum_(p.bind(x, n)))(X), 2 * X, rtol=1e-6)
    np.testing.assert_allclose(cj.vmap(cj.grad(lambda x: sum_(p.bind(x, n))))(M), 2 * M, rtol=1e-6)
    for call in (
        lambda: cj.grad(lambda n: sum_(p.bind(X, n)))(n),
        lambda: cj.jvp(p.bind, (X, n), (X, n)),
        lambda: cj.make_jaxpr(cj.grad(lambda n: sum_(p.bind(X, n))))(n),
        lambda: cj.vmap(cj.grad(lambda n: sum_(p.bind(X, n))))(np.stack([n, n])),
    ):
        with pytest.raises(NotDifferentiableError, match=f"acme.power.*operand {operand}: {WHY}.*test_author_rules"):
            call()
        assert len(trace_stack()) == 1
    assert why_not_differentiable(p, operand) == WHY and why_not_differentiable(p, 0) is None


def test_in_defjvp():
    p = power()
    defjvp(p, lambda t, x, n: mul(t, mul(np.float32(2), x)), nondifferentiable(WHY))
    check_refusals(p)


def test_in_defjvp_with_result():
    p = power()
    defjvp_with_result(p, lambda t, out, x, n: mul(t, mul(np.float32(2), x)), nondifferentiable(WHY))
    check_refusals(p)


@pytest.mark.parametrize("symbolic", [True, False])
def test_beside_a_rule(symbolic):
    p = power()

    def jvp(primals, tangents):
        assert symbolic is (tangents[1] is None)
        x, _ = primals
        return p.bind(*primals), mul(tangents[0], mul(np.float32(2), x))

    jvp_rules.register(p, jvp, symbolic_zeros=symbolic, nondifferentiable={1: WHY})
    check_refusals(p)
    for wrong in ({"n": WHY}, {1: None}, [1], {-1: WHY}):
        with pytest.raises(TypeError, match="nondifferentiable"):
            jvp_rules.register(power(), jvp, nondifferentiable=wrong)


def test_in_the_place_of_a_whole_rule():
    p = power(jvp=nondifferentiable(WHY))
    np.testing.assert_array_equal(cj.grad(lambda x: keep2(p, x))(X), np.ones(3))
    for operand in (0, 1):
        assert why_not_differentiable(p, operand) == WHY
        f = (lambda x: p.bind(x, X), lambda x: p.bind(X, x))[operand]
        with pytest.raises(NotDifferentiableError, match=f"acme.power.*in operand {operand}: {WHY}"):
            cj.jvp(f, (X,), (X,))
    assert rule_statuses(p)["jvp"].status == "own"


def keep2(p, x):
    p.bind(X, X)
    return sum_(x)


def test_in_the_place_of_a_transpose():
    p = Primitive(
        "acme.double",
        impl=lambda x: 2 * x,
        abstract_eval=same,
        jvp=lambda p_, t: (p.bind(*p_), p.bind(*t)),
        transpose=nondifferentiable("its inverse is lost"),
    )
    np.testing.assert_array_equal(cj.jvp(p.bind, (X,), (X,))[1], 2 * X)
    with pytest.raises(NotDifferentiableError, match=r"acme.double.*its inverse is lost"):
        cj.grad(lambda x: sum_(p.bind(x)))(X)


def test_the_reason_is_a_text():
    for wrong in (None, "", 3):
        with pytest.raises(TypeError, match="reason"):
            nondifferentiable(wrong)


# -- numbers of rules ----------------------------------------------------------------------------------------


def one(t, *primals):
    return t


@pytest.mark.parametrize("helper", [defjvp, defjvp_with_result])
def test_numbers_of_rules_are_checked_where_they_are_known(helper):
    ufunc = Primitive("acme.mul", impl=np.multiply, abstract_eval=lambda x, y: x)
    linear = Primitive("acme.linear", impl=lambda *xs: xs[0], linear_in=(0, 2))
    several = Primitive("acme.several", impl=np.frexp, multiple_results=True)
    body = Primitive("acme.body", decomposition=lambda x, /, y: x)
    for p, rules, words in [
        (ufunc, (one,), "has 2 operands, and was given 1 rule:"),
        (ufunc, (one, one, one), "has 2 operands, and was given 3 rules"),
        (linear, (one, one), "has at least 3 operands, and was given 2"),
        (body, (one, one, one), "has at most 2 operands, and was given 3"),
        (body, (), "has at least 1 operand"),
        (several, (one,), "has several results"),
        (ufunc, (one, "zero"), "operand 1 .*got 'zero'"),
    ]:
        with pytest.raises(
            TypeError, match=f"{helper.__name__}.*{p.name}.*{words}" if "operand 1 " not in words else words
        ):
            helper(p, *rules)
        assert jvp_rules.rule_of(p) is None


@pytest.mark.parametrize("helper", [defjvp, defjvp_with_result])
@pytest.mark.parametrize("count", [1, 3])
def test_numbers_of_rules_are_checked_at_first_use(helper, count):
    p = Primitive("acme.add", impl=lambda *xs: xs[0] + xs[1], abstract_eval=lambda *xs: xs[0])
    helper(p, *[one] * count)
    for call in (lambda: cj.jvp(p.bind, (X, X), (X, X)), lambda: cj.grad(lambda x: sum_(p.bind(x, X)))(X)):
        with pytest.raises(TypeError, match=f"{helper.__name__}.*acme.add.* has 2 operands, and was given {count}"):
            call()


# -- derived rules, called by written ones -------------------------------------------------------------------


def test_a_vmap_rule_hands_on_to_the_loop():
    calls = []
    p = Primitive("acme.cumsum", impl=lambda x: calls.append(x.shape) or np.cumsum(x, -1), abstract_eval=same)

    @vmap_rules.register(p)
    def vmap(axis_size, vals, dims):
        if dims[0] != 0:
            return vmap_rules.derived(p)(axis_size, vals, dims)
        return p.bind(*vals), 0

    np.testing.assert_array_equal(cj.vmap(p.bind)(M), np.cumsum(M, 1))
    assert calls == [(2, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(cj.vmap(p.bind, in_axes=1, out_axes=1)(M), np.cumsum(M, 0))
    assert calls[1:] == [(2,)] * 3
    assert vmap_rules.rule_of(p).fn is vmap
    np.testing.assert_array_equal(
        cj.vmap(cj.vmap(p.bind, in_axes=1), in_axes=0)(M[None]), np.moveaxis(np.cumsum(M, 0), 0, 1)[None]
    )


def test_rules_hand_on_to_the_decomposition():
    p = Primitive("acme.sincos", decomposition=lambda x: mul(sin(x), cos(x)))
    used = []

    def through(registry):
        def rule(*args, **params):
            used.append(registry.kind)
            return registry.derived(p)(*args, **params)

        return rule

    for registry in (impl_rules, abstract_eval_rules, jvp_rules, vmap_rules, transpose_rules):
        flags = {"symbolic_zeros": True} if registry in (jvp_rules, transpose_rules) else {}
        registry.register(p, through(registry), **flags)
    wanted = np.cos(2 * X)
    np.testing.assert_allclose(p.bind(X), np.sin(X) * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(cj.grad(lambda x: sum_(p.bind(x)))(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(cj.vmap(p.bind)(M), np.sin(M) * np.cos(M), rtol=1e-5)
    assert {"impl", "abstract_eval", "jvp", "vmap"} <= set(used)
    assert all(registry.rule_of(p).derived is None for registry in (impl_rules, jvp_rules, vmap_rules))
    np.testing.assert_allclose(p.bind(X), np.sin(X) * np.cos(X), rtol=1e-6)


def test_where_nothing_can_be_derived():
    p = Primitive("acme.opaque", impl=np.sort)
    for registry, words in [(vmap_rules, "an impl and an abstract-eval rule"), (jvp_rules, "a decomposition")]:
        with pytest.raises(MissingRuleError, match=f"acme.opaque.*can be derived.*test_author_rules.*{words}"):
            registry.derived(p)
    cj.config.update("strict_rules", True)
    try:
        assert callable(vmap_rules.derived(Primitive("acme.both", decomposition=sin)))
    finally:
        cj.config.update("strict_rules", False)
