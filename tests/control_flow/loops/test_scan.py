"""`scan`: jaxprs, values, rules one by one, bad input. `test_nestings` has the combinations."""

from __future__ import annotations

from textwrap import dedent

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.extend import Primitive, ShapedArray, as_array, jaxpr_as_fun, jvp_jaxpr, partial_eval_jaxpr, stage_closed
from corejax.extend.programs import check_jaxpr, dce, subjaxprs
from corejax.tree_util import tree_leaves, tree_map

F = np.float32
XS = np.linspace(-1, 1, 10, dtype=F).reshape(5, 2)


def jaxpr(fun, *args):
    closed = corejax.make_jaxpr(fun)(*args)
    check_jaxpr(closed)
    return closed


def equations(program, name):
    """The equations of a primitive in a program and in those inside it."""
    for eqn in program.eqns:
        if eqn.primitive.name == name:
            yield eqn
        for sub in subjaxprs(eqn.params):
            yield from equations(sub, name)


def python_scan(f, carry, xs, length=None, reverse=False):
    length = len(tree_leaves(xs)[0]) if length is None else length
    ys = []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, tree_map(lambda x, i=i: x[i], xs))
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    return carry, tree_map(lambda *rows: np.stack([np.asarray(r) for r in rows]), *ys)


def check(got, want):
    assert corejax.tree_util.tree_structure(got) == corejax.tree_util.tree_structure(want)
    for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


# -- the seeds' example, in today's notation -----------------------------------------------------------------


def test_scan_of_the_seeds():
    ones = np.ones(16, F)

    def func11(arr, extra):
        def body(carry, aelems):
            ae1, ae2 = aelems
            return (carry + ae1 * ae2 + extra, carry)

        return lax.scan(body, 0.0, (arr, ones))

    assert str(jaxpr(func11, np.ones(16, F), 5.0)) == dedent("""\
        { lambda a:f32[16]; b:f32[16] c:~f32[]. let
            d:f32[] e:f32[16] = scan[
              jaxpr={ lambda ; a:~f32[] b:f32[] c:f32[] d:f32[]. let
                  e:f32[] = mul c d
                  f:f32[] = add b e
                  g:f32[] = add f a
                in (g, b) }
              length=16
              linear=(False, False, False, False)
              num_carry=1
              num_consts=1
              reverse=False
              unroll=1
            ] c 0.0:f32[] b a
          in (d, e) }""")
    last, before = func11(np.ones(16, F), 5.0)
    assert last == 96.0
    np.testing.assert_array_equal(before, 6.0 * np.arange(16))


# -- calling -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("wrap, unroll", [(lambda f: f, 1), *((corejax.jit, n) for n in (0, 1, 2, 3, 8, True))])
@pytest.mark.parametrize("length", [0, 1, 4, 5])
def test_against_a_python_loop(wrap, reverse, unroll, length):
    def f(c, x):
        return {"n": c["n"] + 1, "s": c["s"] * x["a"] + x["b"]}, (c["s"], x["b"] > 0, c["n"])

    init = {"n": np.int32(3), "s": F(0.5)}
    xs = {"a": np.linspace(-2, 1, length, dtype=F), "b": np.linspace(1, 2, length, dtype=F)}
    got = wrap(lambda i, x: lax.scan(f, i, x, reverse=reverse, unroll=unroll))(init, xs)
    if length:
        check(got, python_scan(f, init, xs, reverse=reverse))
    else:
        check(got[0], init)
    assert [(y.shape, y.dtype.name) for y in got[1]] == [((length,), d) for d in ("float32", "bool", "int32")]


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, ml_dtypes.bfloat16, np.complex64, np.float64])
def test_dtypes(dtype):
    xs = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    f = lambda c, x: (x, c)
    for wrap in (lambda g: g, corejax.jit):
        last, ys = wrap(lambda xs: lax.scan(f, xs[0] * 0 if dtype != np.bool_ else xs[0], xs))(xs)
        assert last.dtype == ys.dtype == dtype
        np.testing.assert_array_equal(np.asarray(last), xs[-1])
        np.testing.assert_array_equal(np.asarray(ys)[1:], xs[:-1])


def test_without_arrays():
    assert lax.scan(lambda c, x: (c * 2.0, x), 1.0, length=3) == (8.0, None)
    last, ys = lax.scan(lambda c, x: (c + 1, c), 0, None, 4)
    assert (last, ys.tolist()) == (4, [0, 1, 2, 3])
    assert lax.scan(lambda c, x: (c, None), (), None, length=2) == ((), None)
    assert lax.scan(lambda c, x: (c, x), None, np.arange(3))[1].tolist() == [0, 1, 2]
    assert lax.scan(lambda c, x: [c, x], 1.0, np.arange(2))[0] == 1.0  # any pair will do


def test_weakly_typed_carries_take_the_body_s_type():
    last, _ = lax.scan(lambda c, x: (c + x, None), 0, XS[:, 0])
    assert last.dtype == F and not last.weak_type
    last, _ = corejax.jit(lambda z: lax.scan(lambda c, x: (c + x, None), z, XS[:, 0]))(0)
    assert last.dtype == F and not last.weak_type
    (a, b, c), _ = lax.scan(lambda c, x: ((c[1], c[2], c[2] * x), None), (0, 0.0, 1), XS[:, 0])  # one after another
    assert {v.dtype.name for v in (a, b, c)} == {"float32"}
    last, _ = lax.scan(lambda c, x: (c + 1, None), 0, length=2)
    assert last.weak_type  # nothing makes it strong
    last, _ = lax.scan(lambda c, x: (1.0, None), F(0), length=2)
    assert last.dtype == F and not last.weak_type


def test_closures_over_arrays_and_tracers():
    w = corejax.device_put(XS[0])

    def f(scale, x):
        g = lax.exp(scale)
        return lax.scan(lambda c, a: (c * g + a * w, c), x, XS)

    closed = jaxpr(f, 0.3, XS[1])
    (eqn,) = equations(closed, "scan")
    assert eqn.params["num_consts"] == 2 and not eqn.params["jaxpr"].consts
    want = python_scan(lambda c, a: (c * np.exp(F(0.3)) + a * XS[0], c), XS[1], XS)
    check(f(0.3, XS[1]), want)
    check(corejax.jit(f)(0.3, XS[1]), want)
    eps = F(1e-2)
    loss = lambda s: f(s, XS[1])[0].sum()
    difference = (np.asarray(loss(0.3 + eps)) - np.asarray(loss(0.3 - eps))) / (2 * eps)
    np.testing.assert_allclose(corejax.grad(loss)(0.3), difference, rtol=1e-3)
    np.testing.assert_allclose(corejax.grad(corejax.jit(loss))(0.3), difference, rtol=1e-3)


def test_eager_scan_does_not_compile():
    calls = []
    lax.scan(lambda c, x: (calls.append(1) or c + x, None), F(0), np.ones(50, F))
    assert len(calls) == 1  # traced once


def test_size_of_the_program_does_not_depend_on_the_length():
    text = lambda n: corejax.jit(lambda x: lax.scan(lambda c, a: (c + a, c), F(0), x)).lower(np.ones(n, F)).as_text()
    assert len(text(1000).splitlines()) == len(text(10).splitlines())
    assert text(10).count("stablehlo.while") == 1


def test_unroll_is_honoured():
    def adds(n, unroll):
        f = lambda x: lax.scan(lambda c, a: (c * a, None), F(1), x, unroll=unroll)
        return corejax.jit(f).lower(np.ones(n, F)).as_text()

    assert adds(12, 4).count("stablehlo.multiply") == 4 and "stablehlo.while" in adds(12, 4)
    assert adds(10, 4).count("stablehlo.multiply") == 4 + 2  # the rest after the loop
    assert adds(3, True).count("stablehlo.multiply") == 3 and "stablehlo.while" not in adds(3, True)


@pytest.mark.parametrize("reverse, unroll", [(False, 1), (True, 1), (True, 3)])
def test_reference_interpreter_agrees(reverse, unroll):
    jl = pytest.importorskip("corejax_xla_backend._jaxlib")
    f = lambda c, xs: lax.scan(lambda c, x: (c * x + 1.0, (c, x > 0)), c, xs, reverse=reverse, unroll=unroll)
    text = corejax.jit(f).lower(XS[0], XS).as_text(pretty=False)
    check(list(jl.reference_eval(text, [XS[0], XS])), tree_leaves(f(XS[0], XS)))


# -- rules ---------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("init_axis", [None, 0, 1])
@pytest.mark.parametrize("xs_axis", [None, 0, 1, 2])
@pytest.mark.parametrize("w_axis", [None, 0, 1])
def test_batching(init_axis, xs_axis, w_axis):
    if init_axis is xs_axis is w_axis is None:
        return
    rng = np.random.default_rng(0)
    init, w = (rng.normal(size=(3, 3)[: 1 if axis is None else 2]).astype(F) for axis in (init_axis, w_axis))
    xs = rng.normal(size=(3, 3, 3)[: 2 if xs_axis is None else 3]).astype(F)
    axes = (init_axis, xs_axis, w_axis)
    f = lambda c, xs, w: lax.scan(lambda c, x: (c * w + x, (x * 2.0, c)), c, xs)
    pick = lambda x, axis, i: x if axis is None else np.take(x, i, axis)
    want = [f(*(pick(x, axis, i) for x, axis in zip((init, xs, w), axes, strict=True))) for i in range(3)]
    stacked = tree_map(lambda *rows: np.stack([np.asarray(r) for r in rows]), *want)
    check(corejax.vmap(f, in_axes=axes)(init, xs, w), stacked)
    closed = jaxpr(corejax.vmap(f, in_axes=axes), init, xs, w)
    (eqn,) = equations(closed, "scan")
    doubled = eqn.outvars[1].aval
    assert doubled.shape == ((3, 3) if xs_axis is None else (3, 3, 3))  # batched only where it must be


def test_batched_carries_are_found_by_iteration():
    f = lambda w: lax.scan(lambda c, _: ((c[1] * 1.0, c[2] * 1.0, w, c[3]), None), (F(0),) * 4, None, length=4)[0]
    got = corejax.vmap(f, out_axes=(0, 0, 0, None))(np.arange(3, dtype=F))
    check(list(got), [np.arange(3), np.arange(3), np.arange(3), 0.0])


def test_tangents_only_where_they_are():
    def f(x):
        step = lambda c, a: ((c[0] * x, c[1] + 1, c[2] * a), a)
        return lax.scan(step, (F(1), 0, F(2)), XS[:, 0])

    closed = jaxpr(lambda x: corejax.jvp(f, (x,), (F(1),))[1][0][0], F(0.5))
    (eqn,) = equations(closed, "scan")
    assert eqn.params["num_carry"] == 3 + 1  # one tangent beside three carries
    assert eqn.params["linear"] == (False, True, False, False, False, True, False)
    (carry_dot, n_dot, s_dot), ys_dot = corejax.jvp(f, (F(0.5),), (F(1),))[1]
    np.testing.assert_allclose(carry_dot, 5 * 0.5**4)
    assert n_dot.dtype == [("float0", np.void, 0)] and s_dot == 0.0 and not np.asarray(ys_dot).any()


def rnn(w, h, xs):
    def step(h, x):
        h = lax.tanh(lax.dot(w, h) + x * lax.sin(w[0]))
        return h, h

    return lax.scan(step, h, xs)


def test_residuals():
    """What differs between iterations is stacked once; nothing else is, nor what is there already."""
    w = np.array([[0.1, 0.2], [0.3, -0.4]], F)
    closed = jaxpr(corejax.grad(lambda w: rnn(w, XS[0], XS)[0].sum()), w)
    forward, backward = equations(closed, "scan")
    stacked = [v for v in forward.outvars if v.aval.shape == (5, 2)]
    # h (the scan's own output), the h before, and 1 - tanh^2: neither w, sin w, cos w nor the xs are stacked.
    assert len(stacked) == len(forward.outvars) - 1 == 3
    consts = [v.aval.shape for v in backward.invars[: backward.params["num_consts"]]]
    assert (2, 2) in consts
    assert backward.params["reverse"] and not forward.params["reverse"]


def test_what_the_body_computes_in_vain_leaves_no_residuals():
    def step(c, a):
        lax.sin(c) * c
        return c * a, None

    closed = jaxpr(corejax.grad(lambda x: lax.scan(step, x, XS[:, 0])[0]), F(2))
    forward, backward = equations(closed, "scan")
    assert len(forward.outvars) == 1
    assert not list(equations(backward.params["jaxpr"], "cos"))


def test_loop_invariant_residuals_are_computed_once():
    f = lambda w, x: lax.scan(lambda c, a: (c * lax.sin(w) + lax.exp(w * w) * a, None), x, XS[:, 0])[0]
    for g in (corejax.grad(f), corejax.grad(corejax.jit(f)), corejax.jit(corejax.grad(f))):
        closed = jaxpr(g, F(0.3), F(2.0))
        forward, backward = equations(closed, "scan")
        assert len(list(equations(backward.params["jaxpr"], "cos"))) == 0
        assert len([v for v in forward.outvars if v.aval.shape == (5,)]) == 1  # c before each iteration
        assert len(list(equations(closed, "cos"))) == 1
        np.testing.assert_allclose(g(F(0.3), F(2.0)), corejax.grad(f)(F(0.3), F(2.0)), rtol=1e-5)


def test_loop_invariant_residuals_that_need_a_constant():
    """A constant from a JVP rule has no binder in the program around: then residuals are stacked."""
    table = np.array([2.0, 3.0], F)
    weigh_p = Primitive(
        "tests.scan.weigh",
        impl=lambda x: x * x * table,
        abstract_eval=lambda x: x,
        jvp=lambda primals, tangents: (weigh_p.bind(*primals), tangents[0] * (2.0 * primals[0] * table)),
    )
    f = lambda w: lax.scan(lambda c, a: (c * weigh_p.bind(w) + a, None), XS[0], XS)[0].sum()
    want = corejax.grad(lambda w: lax.scan(lambda c, a: (c * (w * w * table) + a, None), XS[0], XS)[0].sum())(XS[1])
    np.testing.assert_allclose(corejax.grad(f)(XS[1]), want, rtol=1e-5)
    inner = jaxpr(f, XS[1])
    whole = lambda w: jaxpr_as_fun(inner)(w)[0]
    known, unknown, _, _ = partial_eval_jaxpr(jvp_jaxpr(inner, [True])[0], [False, True])
    assert not known.jaxpr.constvars or list(equations(known, "scan"))
    np.testing.assert_allclose(corejax.grad(whole)(XS[1]), want, rtol=1e-5)
    scans = list(equations(known, "scan"))
    assert any(e.params["jaxpr"].consts for e in scans) and list(equations(unknown, "scan"))


def test_known_results_stay_known():
    def f(x, y):
        step = lambda c, a: ((c[0] * a, c[1] * c[0]), (lax.sin(c[0]), c[1]))
        return lax.scan(step, (x, y), XS[:, 0])

    closed = jaxpr(f, F(1), F(2))
    known, unknown, unknowns_out, _ = partial_eval_jaxpr(closed, [False, True])
    assert unknowns_out == [False, True, False, True]
    check_jaxpr(known)
    check_jaxpr(unknown)
    assert not list(equations(unknown, "sin"))
    known, unknown, unknowns_out, _ = partial_eval_jaxpr(closed, [True, False])
    assert unknowns_out == [True] * 4  # the second carry becomes unknown in the second iteration


def test_transposition_of_a_scan_with_a_counter():
    def linear(x):
        step = lambda c, _: ((c[0] * lax.convert_element_type(c[1], F), c[1] + 1), c[0] * 2.0)
        (last, _), ys = lax.scan(step, (x, 1), None, length=4)
        return last + ys.sum()

    (ct,) = corejax.linear_transpose(linear, F(1))(F(1))
    assert ct == linear(F(1)) == corejax.grad(linear)(F(3))


def test_transposition_skips_zero_cotangents():
    f = lambda x, y: lax.scan(lambda c, a: ((c[0] * a, c[1] * a), c[1]), (x, y), XS[:, 0])
    closed = jaxpr(corejax.grad(lambda x: f(x, F(1))[0][0]), F(2))
    *_, backward = equations(closed, "scan")
    assert backward.params["num_carry"] == 1
    assert corejax.grad(lambda x: f(x, x)[1][2] * 3.0)(F(2)) == 3.0 * XS[0, 0] * XS[1, 0]


def test_dead_code():
    def f(x, y):
        step = lambda c, a: ((c[0] * a[0], c[1] + c[0], lax.exp(c[2]) * a[1]), (c[1], lax.cos(c[2])))
        return lax.scan(step, (x, y, x), (XS[:, 0], XS[:, 1]))

    closed = jaxpr(lambda x, y: f(x, y)[0][1], F(1), F(2))
    smaller = dce(closed.jaxpr)
    check_jaxpr(smaller)
    (eqn,) = equations(smaller, "scan")
    assert eqn.params["num_carry"] == 2 and len(eqn.invars) == len(eqn.params["linear"]) == 3
    assert not list(equations(smaller, "exp")) and not list(equations(smaller, "cos"))
    assert not dce(jaxpr(lambda x: (f(x, x), x)[1], F(1)).jaxpr).eqns


def test_jaxprs_parse_back():
    from corejax.ir import parse_jaxpr

    closed = jaxpr(corejax.grad(lambda w: rnn(w, XS[0], XS)[0].sum()), np.eye(2, dtype=F))
    assert str(parse_jaxpr(str(closed))) == str(closed)


def test_nested_scans_trace_in_linear_time():
    def nest(x, depth):
        return lax.sin(x) * x if not depth else lax.scan(lambda c, _: (nest(c, depth - 1), None), x, None, length=2)[0]

    def size(depth):
        return str(jaxpr(corejax.grad(lambda x: nest(x, depth)), 1.0)).count("\n")

    sizes = [size(d) for d in range(2, 7)]
    steps = np.diff(sizes)
    assert steps.max() <= steps.min() + 5


def test_second_derivatives_against_jax():
    jax = pytest.importorskip("jax")
    w = np.array([[0.1, 0.2], [0.3, -0.4]], F)

    def loss(lax):
        def f(w):
            step = lambda h, x: (lax.tanh(lax.dot(w, h) + x), h * h)
            h, ys = lax.scan(step, XS[0], XS)
            return (h * h).sum() + ys.sum()

        return f

    got = corejax.hessian(loss(lax))(w)
    np.testing.assert_allclose(got, jax.hessian(loss(jax.lax))(w), rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(corejax.jit(corejax.hessian(loss(lax)))(w), got, rtol=2e-4, atol=1e-5)


# -- bad input -----------------------------------------------------------------------------------------------


def message(error, fun, *args):
    with pytest.raises(error) as caught:
        fun(*args)
    return str(caught.value)


def test_carry_that_changes_type():
    def step(c, x):
        return {"a": c["a"], "b": lax.convert_element_type(c["b"], np.float16)}, None

    text = message(TypeError, lambda: lax.scan(step, {"a": F(1), "b": np.ones(3, F)}, None, length=3))
    assert "step at " in text and "test_scan.py" in text
    assert "carry['b'] is float32[3] when taken and float16[3] when returned" in text
    assert "return carry['b'].astype('float32'), or start from init['b'].astype('float16')" in text
    assert "carry['a']" not in text
    text = message(TypeError, lambda: lax.scan(lambda c, x: (c + 1.5, None), np.int32(0), None, length=3))
    assert "carry is int32[] when taken and float32[] when returned: return carry.astype('int32')" in text
    text = message(TypeError, lambda: lax.scan(lambda c, x: (x, None), F(1), XS))
    assert "carry is float32[] when taken and float32[2] when returned: the shapes must be equal" in text


def test_carry_that_changes_structure():
    text = message(TypeError, lambda: lax.scan(lambda c, x: ((c, c), None), {"h": F(1)}, None, length=3))
    assert "different structure" in text
    assert "takes   {'h': float32[]}" in text and "returns ({'h': float32[]}, {'h': float32[]})" in text


def test_body_that_returns_no_pair():
    for body in (lambda c, x: c, lambda c, x: (c, c, c), lambda c, x: None):
        text = message(TypeError, lambda body=body: lax.scan(body, F(1), length=2))
        assert "must return a pair (carry, y), got" in text
    assert "function (carry, x)" in message(TypeError, lambda: lax.scan(XS, F(1), XS))


def test_lengths():
    text = message(ValueError, lambda: lax.scan(lambda c, x: (c, x), 0.0, {"a": XS, "b": (XS[:4], XS)}))
    for line in (
        "xs['a']: float32[5,2] has 5",
        "xs['b'][0]: float32[4,2] has 4",
        "xs['b'][1]: float32[5,2] has 5",
    ):
        assert line in text
    text = message(ValueError, lambda: lax.scan(lambda c, x: (c, x), 0.0, XS, length=3))
    assert "xs: float32[5,2] has 5" in text and "length: 3" in text
    assert "got -2" in message(ValueError, lambda: lax.scan(lambda c, x: (c, x), 0.0, length=-2))
    assert "pass length" in message(ValueError, lambda: lax.scan(lambda c, x: (c, x), 0.0))
    assert "got 2.5" in message(TypeError, lambda: lax.scan(lambda c, x: (c, x), 0.0, length=2.5))
    assert "xs['k'] is a scalar" in message(ValueError, lambda: lax.scan(lambda c, x: (c, x), 0.0, {"k": 1.0}))
    assert "or 0 for all of them; got -1" in message(
        ValueError, lambda: lax.scan(lambda c, x: (c, x), 0.0, XS, unroll=-1)
    )
    text = message(TypeError, lambda: corejax.jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, length=n))(3))
    assert "length must be an integer known while tracing" in text and "the argument n" in text


def test_operands_that_are_not_arrays():
    keep = lambda c, x: (c, x)
    assert "argument init['k'] is 'a' of type str" in message(TypeError, lambda: lax.scan(keep, {"k": "a"}, XS))
    assert "argument xs[1] is 'a' of type str" in message(TypeError, lambda: lax.scan(keep, 0.0, (XS, "a")))
    assert "returns 'y' of type str ([1])" in message(TypeError, lambda: lax.scan(lambda c, x: (c, "y"), 0.0, XS))


def test_exceptions_in_the_body_leave_nothing_behind():
    for wrap in (lambda f: f, corejax.jit, corejax.grad, corejax.vmap):
        with pytest.raises(ZeroDivisionError):
            wrap(lambda x: lax.scan(lambda c, a: (1 // 0, None), x, XS)[0])(XS[0])
    assert corejax.grad(lambda x: lax.scan(lambda c, _: (c * x, None), x, length=2)[0])(2.0) == 12.0


def test_values_that_escape_are_refused():
    kept = []
    lax.scan(lambda c, x: (kept.append(c) or c, x), F(0), XS)
    with pytest.raises(corejax.errors.UnexpectedTracerError):
        kept[0] + 1


def test_ill_typed_equations_are_refused():
    from corejax_control_flow.loops.scan_rules import scan_p

    f, i, f3 = ShapedArray((), F), ShapedArray((), np.int32), ShapedArray((3,), F)
    body = stage_closed(lambda w, c, x: [c * w, x], [f, f, f])
    other = stage_closed(lambda w, c, x: [np.int32(1)], [f, f, f])
    params = {
        "jaxpr": body,
        "length": 3,
        "linear": (False,) * 3,
        "num_carry": 1,
        "num_consts": 1,
        "reverse": False,
        "unroll": 1,
    }
    assert scan_p.abstract((f, f, f3), params) == (f, f3)
    for text, avals, changed in (
        ("operand 0, a constant, is i32", (i, f, f3), {}),
        ("operand 1, an initial carry, is f32\\[3\\]", (f, f3, f3), {}),
        ("operand 2, a scanned array, is f32\\[\\], the body takes f32\\[3\\]", (f, f, f), {}),
        ("was given 2 operands", (f, f), {}),
        ("length must be at least 0", (f, f, f3), {"length": -1}),
        ("takes carry 0 as f32\\[\\] and returns it as i32", (f, f, f3), {"jaxpr": other}),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            scan_p.abstract(avals, {**params, **changed})


# -- carries that the body does not change ---------------------------------------------------------------------


def test_unchanged_carries_are_constants():
    """Neither carried nor stacked, whatever their tangents and batches are."""

    def f(w, h):
        def step(c, a):
            w, h = c
            return (w, lax.tanh(w * h + a)), h

        return lax.scan(step, (w, h), XS)

    closed = jaxpr(f, XS[0], XS[1])
    (eqn,) = equations(closed, "scan")
    assert (eqn.params["num_consts"], eqn.params["num_carry"]) == (1, 1)
    assert closed.jaxpr.outvars[0] is closed.jaxpr.invars[0]
    got = f(XS[0], XS[1])
    check(got[0][0], XS[0])
    assert type(got[0][0]) is type(got[0][1])  # an array, whatever the caller passed
    closed = jaxpr(corejax.grad(lambda w: f(w, XS[1])[0][1].sum()), XS[0])
    forward, backward = equations(closed, "scan")
    stacked = [v for v in forward.outvars if v.aval.shape == (5, 2)]
    assert len(stacked) == 2  # h before each iteration, and the derivative of tanh; w is there once
    assert XS[0].shape in [v.aval.shape for v in backward.invars[: backward.params["num_consts"]]]
    plain = lambda w, h: lax.scan(lambda h, a: (lax.tanh(w * h + a), h), h, XS)
    check(
        corejax.grad(lambda w: f(w, XS[1])[0][1].sum())(XS[0]), corejax.grad(lambda w: plain(w, XS[1])[0].sum())(XS[0])
    )
    axes = {"in_axes": (0, None), "out_axes": ((0, 0), 0)}
    check(corejax.vmap(f, **axes)(XS, XS[1])[1], corejax.vmap(plain, in_axes=(0, None))(XS, XS[1])[1])


def test_all_carries_unchanged():
    last, ys = lax.scan(lambda c, a: (c, c["n"] * a), {"n": 2, "w": XS[0]}, XS[:, 0])
    check(last, {"n": 2, "w": XS[0]})
    check(ys, 2 * XS[:, 0])
    assert lax.scan(lambda c, a: (c, None), F(3), None, length=0)[0] == 3.0
    assert corejax.grad(lambda x: lax.scan(lambda c, a: (c, c * a), x, XS[:, 0])[0])(F(2)) == 1.0


def test_the_pullback_keeps_xs_themselves():
    xs = as_array(XS[:, 0])
    _, pullback = corejax.vjp(lambda xs: lax.scan(lambda c, x: (c * x, c), F(1), xs), xs)
    assert any(leaf is xs for leaf in tree_leaves(pullback))
