"""`while_loop`: jaxprs, values, rules one by one, bad input. `test_nestings` has the combinations."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Primitive, jaxpr_as_fun, jvp_jaxpr, partial_eval_jaxpr
from corejax.extend.programs import check_jaxpr, dce
from corejax.ir import parse_jaxpr
from tests.control_flow.checks import check, equations, jaxpr, message

F = np.float32
X = np.array([0.5, 1.0, 2.0], F)
both = pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit], ids=["eager", "compiled"])


def python_while(cond, body, val):
    while cond(val):
        val = body(val)
    return val


def doubling(lax):
    """Doubles a number until it is 10 or more: how often depends on the number."""

    def f(x):
        return lax.while_loop(lambda c: c["v"] < 10.0, lambda c: {"v": c["v"] * 2.0, "n": c["n"] + 1}, {"v": x, "n": 0})

    return f


def collatz(lax):
    """Two carries that move on, a constant that differs, integers and floats."""

    def f(x, w):
        def body(c):
            i, p, q = c
            return i + 1, q * w, p + lax.sin(q)

        return lax.while_loop(lambda c: c[0] < 5, body, (0, x, w))

    return f


# -- calling -------------------------------------------------------------------------------------------------


@both
def test_values(wrap):
    for x in X:
        want = python_while(lambda c: c["v"] < 10, lambda c: {"v": c["v"] * 2, "n": c["n"] + 1}, {"v": x, "n": 0})
        check(wrap(doubling(lax))(x), want)
    assert wrap(doubling(lax))(F(11))["n"] == 0  # not even once
    assert wrap(lambda x: lax.while_loop(lambda c: c[0] < 0, lambda c: c, (x, ())))(3) == (3, ())
    got = wrap(lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * x, x))(np.array([2, 3], np.int8))
    assert (
        got.dtype == np.int8
        and got.tolist()
        == python_while(
            lambda c: c.sum() < 100, lambda c: c * np.array([2, 3], np.int8), np.array([2, 3], np.int8)
        ).tolist()
    )


@both
def test_empty_and_no_carries(wrap):
    z = np.zeros((0, 3), F)
    got = wrap(lambda z: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * 2.0), (0, z)))(z)
    assert got[0] == 2 and got[1].shape == (0, 3)
    assert wrap(lambda: lax.while_loop(lambda c: False, lambda c: c, ()))() == ()
    assert wrap(lambda: lax.while_loop(lambda c: np.bool_(False), lambda c: c, {"a": None}))() == {"a": None}


def test_weakly_typed_carries_take_the_body_s_type():
    for wrap in (lambda f: f, corejax.jit):
        out = wrap(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + x, 0))(F(1))
        assert out.dtype == F and not out.weak_type
        a, b = wrap(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[0] * x), (0, 0)))(F(1))
        assert (a.dtype, b.dtype) == (np.int32, F) and a.weak_type
        out = wrap(lambda x: lax.while_loop(lambda c: c < 3, lambda c: 5.0, x))(F(1))
        assert out.dtype == F and not out.weak_type


def test_eager_loop_does_not_compile_and_traces_once():
    calls = []
    got = lax.while_loop(lambda c: c < 50, lambda c: calls.append(1) or c + 1, 0)
    assert got == 50 and len(calls) == 1


def test_closures_over_arrays_and_tracers():
    w = corejax.device_put(X)

    def f(s):
        g = lax.exp(s)
        return lax.while_loop(lambda c: c.sum() < g * w.sum(), lambda c: c * g + w, w)

    closed = jaxpr(f, F(0.3))
    (eqn,) = equations(closed, "while")
    assert (eqn.params["cond_nconsts"], eqn.params["body_nconsts"]) == (2, 2)
    g = np.exp(F(0.3))
    want = python_while(lambda c: c.sum() < g * X.sum(), lambda c: c * g + X, X)
    check(f(F(0.3)), want)
    check(corejax.jit(f)(F(0.3)), want)


# -- jaxprs --------------------------------------------------------------------------------------------------


def test_jaxpr():
    text = dedent("""\
        { lambda ; a:f32[] b:f32[3]. let
            c:~i32[] d:f32[3] = while[
              body_jaxpr={ lambda ; a:f32[] b:~i32[] c:f32[3]. let
                  d:~i32[] = add b 1:~i32[]
                  e:f32[3] = mul c a
                in (d, e) }
              body_nconsts=1
              cond_jaxpr={ lambda ; a:~i32[] b:f32[3]. let
                  c:bool[] = lt a 3:~i32[]
                in (c,) }
              cond_nconsts=0
            ] a 0:~i32[] b
          in (c, d) }""")
    f = lambda w, x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * w), (0, x))
    closed = jaxpr(f, F(2), X)
    assert str(closed) == text
    assert str(parse_jaxpr(text)) == text


@pytest.mark.parametrize(
    "program",
    [
        lambda lax: lambda x, w: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x)),
        lambda lax: lambda x, w: lax.while_loop(lambda c: c[0] < w[0], lambda c: (c[0] + x, c[1] * w), (x, w)),
        lambda lax: lambda x, w: lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1], c[1] * w), (0, x, w)),
        lambda lax: lambda x, w: lax.fori_loop(0, 5, lambda i, c: c * x + w, w),
        lambda lax: lambda x, w: lax.scan(lambda c, a: ((c[0], c[1] * c[0] * w * x), c[0]), (x, w), None, length=3),
    ],
)  # fmt: skip
def test_constants_and_carries_as_in_jax(program):
    """What is a constant and what is carried, in which order: hoisting unchanged carries included."""
    jax = pytest.importorskip("jax")
    mine = jaxpr(program(lax), F(2), X).jaxpr
    theirs = jax.make_jaxpr(program(jax.lax))(F(2), X).jaxpr
    for name in ("while", "scan"):
        for ours, other in zip(
            equations(mine, name), (e for e in theirs.eqns if e.primitive.name == name), strict=True
        ):
            counts = {k: v for k, v in ours.params.items() if isinstance(v, int)}
            assert counts == {k: other.params[k] for k in counts}
            shapes = lambda eqn: [tuple(v.aval.shape) for v in (*eqn.invars, *eqn.outvars)]
            assert shapes(ours) == shapes(other)
            for k, v in ours.params.items():
                if k.endswith("jaxpr"):
                    assert [e.primitive.name for e in v.eqns] == [
                        e.primitive.name for e in other.params[k].eqns if e.primitive.name != "convert_element_type"
                    ]


def test_stablehlo():
    text = corejax.jit(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x)).lower(F(1)).as_text()
    assert text.count("stablehlo.while") == 1 and "custom_call" not in text
    jl = pytest.importorskip("corejax_xla_backend._jaxlib")
    for f, args in ((doubling(lax), (X[0],)), (corejax.vmap(doubling(lax)), (X,)), (collatz(lax), (X[0], X[1]))):
        text = corejax.jit(f).lower(*args).as_text(pretty=False)
        check(list(jl.reference_eval(text, list(args))), corejax.tree_util.tree_leaves(f(*args)))


# -- forward mode ----------------------------------------------------------------------------------------------


@both
def test_tangents(wrap):
    for x in X:
        n, dot = wrap(
            lambda x: [
                f(d)
                for f, d in zip(
                    (lambda o: o["n"], lambda t: t["v"]), corejax.jvp(doubling(lax), (x,), (F(1),)), strict=True
                )
            ]
        )(x)
        check(dot, F(2) ** np.asarray(n))
    dot = wrap(lambda x, w: (0, *corejax.jvp(collatz(lax), (x, w), (F(1), F(0.5)))[1][1:]))(X[0], X[2])
    eps = 1e-3
    ahead, behind = (collatz(lax)(X[0] + s * eps, X[2] + s * eps / 2) for s in (1, -1))
    for i in (1, 2):
        np.testing.assert_allclose(dot[i], (ahead[i] - behind[i]) / (2 * eps), rtol=1e-2)


def test_a_carry_has_a_tangent_if_any_iteration_gives_it_one():
    f = lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[2], c[3], c[1] * x), (0, 1.0, 2.0, 3.0))
    closed = jaxpr(lambda x: corejax.jvp(f, (x,), (F(1),))[1][1:], F(2))
    (eqn,) = equations(closed, "while")
    assert len(eqn.outvars) == 4 + 3
    got = corejax.jvp(f, (F(2),), (F(1),))[1]
    want = python_while(
        lambda c: c[0] < 4,
        lambda c: (c[0] + 1, *np.stack([c[2], c[3], [c[1][0] * 2, c[1][1] * 2 + c[1][0]]])[:]),
        (0, np.array([1, 0.0]), np.array([2, 0.0]), np.array([3, 0.0])),
    )
    np.testing.assert_allclose(got[1:], [w[1] for w in want[1:]])


def test_linearize_and_second_order():
    f = lambda x: doubling(lax)(x * x)["v"] * lax.sin(x)
    out, push = corejax.linearize(f, F(1.5))
    check(push(F(2)), 2 * np.asarray(corejax.jvp(f, (F(1.5),), (F(1),))[1]))
    check(out, f(F(1.5)))
    g = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]  # x ** 4
    first = lambda x: corejax.jvp(g, (x,), (F(1),))[1]
    check(corejax.jvp(first, (F(2),), (F(1),))[1], F(48))
    check(corejax.jit(corejax.jacfwd(corejax.jacfwd(g)))(F(2)), F(48))


# -- reverse mode ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap", [corejax.grad, lambda f: corejax.grad(corejax.jit(f)), lambda f: corejax.jit(corejax.grad(f))]
)
def test_reverse_mode_where_nothing_has_to_be_undone(wrap):
    unchanged = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x))[1] * 2.0
    assert wrap(unchanged)(F(3)) == 2.0
    added = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + 1.0), (0, x))[1] ** 2
    assert wrap(added)(F(3)) == 12.0
    read_by_the_condition = lambda x: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1.0, c[1]), (F(0), x))[1]
    assert wrap(read_by_the_condition)(F(3)) == 1.0
    unused = lambda x: (
        lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x, c[2] * 2.0), (0, x, F(1)))[2] * x
    )
    assert wrap(unused)(F(1.5)) == 8.0
    bound = lambda x: lax.while_loop(lambda c: c < lax.stop_gradient(x), lambda c: c + 1.0, F(0)) * x
    if hasattr(lax, "stop_gradient"):
        assert wrap(bound)(F(2.5)) == 3.0


@pytest.mark.parametrize(
    "wrap", [corejax.grad, lambda f: corejax.grad(corejax.jit(f)), lambda f: corejax.jit(corejax.grad(f))]
)
def test_reverse_mode_says_what_to_do(wrap):
    text = message(ValueError, wrap(lambda x: doubling(lax)(x)["v"]), F(1))
    assert "Reverse-mode differentiation" in text
    assert "lax.scan" in text and "lax.fori_loop with static bounds" in text and "jvp" in text
    assert corejax.jit(lambda x: x + 1)(F(1)) == 2.0  # the traces are off the stack
    power = lambda n: lambda x: lax.fori_loop(0, n, lambda i, c: c * x, x)
    text = message(ValueError, corejax.jit(lambda x, n: wrap(power(n))(x)), F(1), 3)
    assert "fori_loop" in text


# -- batches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x_axis", [None, 0])
@pytest.mark.parametrize("w_axis", [None, 0])
def test_batching(x_axis, w_axis):
    if x_axis is w_axis is None:
        return
    pick = lambda v, axis, i: v if axis is None else v[i]
    x, w = (X if axis == 0 else X[1] for axis in (x_axis, w_axis))
    got = corejax.vmap(collatz(lax), in_axes=(x_axis, w_axis), out_axes=(None, 0, 0))(x, w)
    for i in range(3):
        check(tuple(v[i] if v.ndim else v for v in got), collatz(lax)(pick(x, x_axis, i), pick(w, w_axis, i)))
    closed = jaxpr(corejax.vmap(collatz(lax), in_axes=(x_axis, w_axis), out_axes=(None, 0, 0)), x, w)
    (eqn,) = equations(closed, "while")
    assert eqn.outvars[0].aval.shape == ()  # a scalar loop: the condition is the same for all
    assert not list(equations(eqn.params["body_jaxpr"], "select_n"))


@both
def test_condition_that_differs(wrap):
    got = wrap(corejax.vmap(doubling(lax)))(X)
    want = [doubling(lax)(x) for x in X]
    check(got, {k: np.stack([np.asarray(w[k]) for w in want]) for k in ("v", "n")})
    # a value that nobody changes stays one value; a counter that all share does not
    f = lambda limit: lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1, c[1], c[2] * c[1]), (0, 2.0, F(1)))
    n, two, power = wrap(corejax.vmap(f, out_axes=(0, None, 0)))(np.array([3, 0, 5]))
    assert (n.tolist(), float(two), power.tolist()) == ([3, 0, 5], 2.0, [8.0, 1.0, 32.0])
    nested = corejax.vmap(
        corejax.vmap(lambda x, w: lax.while_loop(lambda c: c < w, lambda c: c * 2.0, x), (0, None)), (None, 0)
    )
    want = [[python_while(lambda c, w=w: c < w, lambda c: c * 2, x) for x in X] for w in (3.0, 9.0)]
    check(wrap(nested)(X, np.array([3, 9], F)), np.array(want, F))


def test_elements_that_ended_are_not_spoiled():
    f = lambda x: lax.while_loop(lambda c: c > 0.0, lambda c: lax.log(c) - 1.0, x)  # NaN if it went on
    got = corejax.vmap(f)(np.array([-3.0, 1.0, 50.0], F))
    assert np.isfinite(got).all() and got[0] == -3.0
    tangent = corejax.jvp(corejax.vmap(f), (np.array([-3.0, 1.0, 50.0], F),), (np.ones(3, F),))[1]
    assert np.isfinite(tangent).all() and tangent[0] == 1.0


def test_batch_of_none_and_other_axes():
    assert corejax.vmap(doubling(lax))(np.zeros(0, F))["v"].shape == (0,)
    x = np.array([[1.0, 5.0, 2.0], [3.0, 1.0, 1.0]], F)
    f = lambda v: lax.while_loop(lambda c: c.sum() < 20, lambda c: c * 2.0, v)
    check(corejax.vmap(f, in_axes=1, out_axes=1)(x), np.stack([np.asarray(f(v)) for v in x.T], 1))


def test_batched_against_jax():
    jax = pytest.importorskip("jax")
    for transform in (
        lambda api, f: api.vmap(f),
        lambda api, f: lambda x: api.jvp(api.vmap(f), (x,), (x,)),
        lambda api, f: api.vmap(lambda x: api.jvp(f, (x,), (x,))),
    ):
        got = transform(corejax, doubling(lax))(X)
        check(corejax.tree_util.tree_leaves(got)[:2], jax.tree.leaves(transform(jax, doubling(jax.lax))(X))[:2])


# -- partial evaluation and dead code --------------------------------------------------------------------------


def test_known_carries_stay_known():
    def f(x, y):
        return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, lax.sin(c[1]), c[2] * c[1]), (0, x, y))

    closed = jaxpr(f, F(1), F(2))
    known, unknown, unknowns_out, _ = partial_eval_jaxpr(closed, [False, True])
    assert unknowns_out == [False, False, True]
    check_jaxpr(known)
    check_jaxpr(unknown)
    assert not list(equations(next(equations(known, "while")).params["body_jaxpr"], "mul"))
    known_outs = jaxpr_as_fun(known)(F(1))
    outs = jaxpr_as_fun(unknown)(*known_outs[2:], F(2))
    check([*known_outs[:2], *outs], list(f(F(1), F(2))))
    # what becomes unknown in a later iteration, and a condition that is unknown
    g = lambda x, y: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[2], c[1]), (0, x, y))
    assert partial_eval_jaxpr(jaxpr(g, F(1), F(2)), [False, True])[2] == [False, True, True]
    h = lambda x, y: lax.while_loop(lambda c: c[0] < y, lambda c: (c[0] + 1.0, c[1] * 2.0), (F(0), x))
    assert partial_eval_jaxpr(jaxpr(h, F(1), F(2)), [False, True])[2] == [True, True]


def test_dead_code():
    def f(x, y):
        body = lambda c: (c[0] + 1, c[1] * 2.0, lax.exp(c[2]) * y, c[3] + c[1])
        return lax.while_loop(lambda c: c[0] < 4, body, (0, x, y, x))

    closed = jaxpr(lambda x, y: f(x, y)[3], F(1), F(2))
    smaller = dce(closed.jaxpr)
    check_jaxpr(smaller)
    (eqn,) = equations(smaller, "while")
    assert len(eqn.outvars) == 3 and not list(equations(smaller, "exp"))
    assert not dce(jaxpr(lambda x: (f(x, x), x)[1], F(1)).jaxpr).eqns


def test_effects():
    seen = []
    note_p = Primitive(
        "tests.while.note",
        multiple_results=True,
        effects=("tests.note",),
        impl=lambda x: seen.append(float(x)) or [],
        abstract_eval=lambda x: [],
        vmap=lambda n, vals, dims: (note_p.bind(vals[0]), []),
        jvp=lambda primals, tangents: (note_p.bind(*primals), []),
    )

    def f(x):
        def body(c):
            note_p.bind(c[1])
            return c[0] + 1, c[1] + 1.0, c[2] * x

        return lax.while_loop(lambda c: c[0] < 3, body, (0, F(0), x))

    closed = jaxpr(lambda x: (f(x), x)[1], F(2))
    assert dce(closed.jaxpr).eqns and closed.effects == {"tests.note"}
    f(F(2))
    assert seen == [0.0, 1.0, 2.0]
    seen.clear()
    assert corejax.linearize(lambda x: f(x)[2], F(2))[1](F(1)) == 32.0
    assert seen == [0.0, 1.0, 2.0]  # not a second time when the tangents are computed
    text = message(
        NotImplementedError,
        corejax.vmap(lambda n: lax.while_loop(lambda c: c < n, lambda c: note_p.bind(c) or c + 1, 0)),
        np.arange(3),
    )
    assert "tests.note" in text and "mapped condition" in text


def test_checked_by_the_type_checker():
    closed = jaxpr(lambda x: doubling(lax)(x)["v"], F(1))
    (eqn,) = equations(closed, "while")
    for params, text in (
        ({"body_nconsts": 1}, "the body takes carries .* but it returns"),
        ({"cond_jaxpr": eqn.params["body_jaxpr"]}, "must return one bool"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            eqn.primitive.abstract(tuple(v.aval for v in eqn.invars), {**eqn.params, **params})
    check_jaxpr(jvp_jaxpr(closed, [True])[0])


# -- bad input -------------------------------------------------------------------------------------------------


def test_carry_that_changes():
    def step(c):
        return {"a": c["a"], "b": lax.convert_element_type(c["b"], np.float16)}

    text = message(TypeError, lambda: lax.while_loop(lambda c: True, step, {"a": F(1), "b": np.ones(3, F)}))
    assert "while_loop: step at " in text and "test_while_loop.py" in text
    assert "carry['b'] is float32[3] when taken and float16[3] when returned" in text
    assert "return carry['b'].astype('float32'), or start from init['b'].astype('float16')" in text
    text = message(TypeError, lambda: lax.while_loop(lambda c: True, lambda c: (c, c), {"h": F(1)}))
    assert "different structure" in text
    assert "takes   {'h': float32[]}" in text and "returns ({'h': float32[]}, {'h': float32[]})" in text
    text = message(TypeError, lambda: lax.while_loop(lambda c: True, lambda c: jnp.stack([c, c]), F(1)))
    assert "the shapes must be equal" in text


def test_conditions_that_are_none():
    text = message(TypeError, lambda: lax.while_loop(lambda c: c < 3, lambda c: c, np.ones(2, F)))
    assert "must return a boolean scalar, got bool[2]" in text and ".all() or .any()" in text
    assert "must return a boolean scalar, got int32[]" in message(
        TypeError, lambda: lax.while_loop(lambda c: c, lambda c: c, np.int32(3))
    )
    assert "got (bool[], bool[])" in message(
        TypeError, lambda: lax.while_loop(lambda c: (c < 1, c < 2), lambda c: c, 1)
    )
    assert "got None" in message(TypeError, lambda: lax.while_loop(lambda c: None, lambda c: c, 1))


def test_what_is_no_function_or_no_array():
    assert "while_loop: cond_fun must be a function val -> bool, got True" in message(
        TypeError, lambda: lax.while_loop(True, lambda c: c, 1)
    )
    assert "while_loop: body_fun must be a function val -> val, got 3" in message(
        TypeError, lambda: lax.while_loop(lambda c: True, 3, 1)
    )
    assert "init_val['a'] is 'x' of type str" in message(
        TypeError, lambda: lax.while_loop(lambda c: True, lambda c: c, {"a": "x"})
    )
