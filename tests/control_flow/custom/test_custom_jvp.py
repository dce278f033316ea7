"""`custom_jvp`: what the rule gets and gives, Python in it, programs, closures, bad input."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.custom_derivatives import ClosedOverError, SymbolicZero
from corejax.extend.programs import check_jaxpr
from corejax.extend.transforms import trace_stack

F = np.float32
XS = np.array([0.3, -0.7, 1.1], F)


@pytest.fixture(autouse=True)
def clean_stack():
    yield
    assert len(trace_stack()) == 1


def tripled():
    """sin(x) * y with three times its derivative in x, so that a rule that is not used shows."""

    @corejax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    @f.defjvp
    def f_jvp(primals, tangents):
        x, y = primals
        x_dot, y_dot = tangents
        return f(x, y), 3 * jnp.cos(x) * y * x_dot + jnp.sin(x) * y_dot

    return f


def near(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)


# -- use of the rule -----------------------------------------------------------------------------------------


def test_rule_is_used_by_every_transformation():
    f = tripled()
    near(f(1.0, 2.0), 2 * np.sin(1.0))
    near(corejax.grad(f)(1.0, 2.0), 6 * np.cos(1.0))
    near(corejax.grad(f, 1)(1.0, 2.0), np.sin(1.0))
    near(corejax.jvp(f, (1.0, 2.0), (1.0, 1.0))[1], 6 * np.cos(1.0) + np.sin(1.0))
    near(corejax.linearize(f, 1.0, 2.0)[1](1.0, 0.0), 6 * np.cos(1.0))
    near(corejax.vmap(corejax.grad(f), (0, None))(XS, 2.0), 6 * np.cos(XS))
    near(corejax.grad(lambda x: corejax.vmap(f, (0, None))(x, 2.0).sum())(XS), 6 * np.cos(XS))
    near(corejax.grad(lambda y: corejax.vmap(f, (0, None))(XS, y).sum())(2.0), np.sin(XS).sum())
    near(corejax.jit(corejax.grad(f))(1.0, 2.0), 6 * np.cos(1.0))
    near(corejax.grad(corejax.jit(f))(1.0, 2.0), 6 * np.cos(1.0))
    near(corejax.jit(corejax.vmap(corejax.grad(corejax.jit(f)), (0, None)))(XS, 2.0), 6 * np.cos(XS))


def test_second_derivative_is_that_of_the_rule():
    f = tripled()
    for nested in (
        corejax.grad(corejax.grad(f)),
        corejax.grad(corejax.grad(corejax.jit(f))),
        corejax.jit(corejax.grad(corejax.jit(corejax.grad(f)))),
        corejax.jacfwd(corejax.grad(f)),
        corejax.jacfwd(corejax.jacfwd(f)),
        corejax.hessian(f),
    ):
        near(nested(1.0, 2.0), -6 * np.sin(1.0))


def test_rule_runs_only_where_something_is_differentiated():
    ran = []

    @corejax.custom_jvp
    def f(x):
        return x * x

    @f.defjvp
    def f_jvp(primals, tangents):
        ran.append(1)
        return f(primals[0]), 2 * primals[0] * tangents[0]

    f(2.0), corejax.vmap(f)(XS), corejax.jit(f)(2.0), corejax.make_jaxpr(f)(2.0)
    corejax.grad(lambda x: x * f(3.0))(2.0)
    assert not ran
    corejax.grad(f)(2.0)
    assert ran == [1]


def test_eager_call_is_the_function_itself():
    f = corejax.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], t[0]))
    x = jnp.ones(3)
    assert f(x) is x
    with pytest.raises(TypeError, match=r"custom_jvp of function <lambda>: argument args\[0\] is 'text' of type str"):
        f("text")  # as where something is traced


def test_python_control_flow_in_function_and_rule():
    @corejax.custom_jvp
    def f(x, n):
        return x if x > 0 else -n * x

    @f.defjvp
    def f_jvp(primals, tangents):
        x, n = primals
        return f(x, n), (tangents[0] if x > 0 else -10.0 * tangents[0])

    assert corejax.grad(f)(2.0, 1.0) == 1.0
    assert corejax.grad(f)(-2.0, 1.0) == -10.0
    assert corejax.jvp(corejax.grad(lambda x: f(x, 2.0) * x), (-2.0,), (1.0,)) == (4 + 20.0, -10.0 - 10.0)
    with pytest.raises(corejax.errors.TracerBoolConversionError):
        corejax.jit(f)(2.0, 1.0)
    with pytest.raises(corejax.errors.TracerBoolConversionError):
        corejax.vmap(f, (0, None))(XS, 1.0)


def test_numpy_arguments_reach_the_rule_as_arrays():
    seen = []

    @corejax.custom_jvp
    def f(x, y):
        return (x * y).sum()

    @f.defjvp
    def f_jvp(primals, tangents):
        seen.extend(map(type, primals))
        return f(*primals), (tangents[0] * primals[1]).sum()

    corejax.grad(f)(XS, XS)
    assert all(not issubclass(kind, np.ndarray) for kind in seen)


# -- arguments -----------------------------------------------------------------------------------------------


def test_keywords_and_defaults_are_resolved_to_positions():
    @corejax.custom_jvp
    def f(x, y=2.0, *, _=None):
        return x * y

    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(TypeError, match=r"\['_'\] are keyword-only"):
        corejax.grad(f)(1.0, _=3)
    assert corejax.grad(f)(1.0) == 1.0

    @corejax.custom_jvp
    def g(x, y=2.0):
        return x * y

    @g.defjvp
    def g_jvp(primals, tangents):
        x, y = primals
        return x * y, 5 * y * tangents[0] + x * tangents[1]

    assert g(3.0) == 6.0
    assert corejax.grad(g)(3.0) == 10.0
    assert corejax.grad(lambda x: g(y=x, x=1.0))(3.0) == 1.0
    assert corejax.jit(corejax.grad(lambda x: g(1.0, y=x)))(3.0) == 1.0
    with pytest.raises(TypeError, match="g: missing a required argument"):
        corejax.grad(lambda x: g(y=x))(3.0)


def test_nondiff_arguments_come_first_in_the_rule():
    @corejax.custom_jvp
    def unused(x):
        return x

    def app(f, x, n):
        return f(x) ** n

    def app_jvp(f, n, primals, tangents):
        assert isinstance(n, int)
        (x,), (t,) = primals, tangents
        return app(f, x, n), 100.0 * t

    for made in (
        corejax.custom_jvp(app, nondiff_argnums=(0, 2)),
        corejax.custom_jvp(app, nondiff_argnums=(-1, 0)),
        corejax.custom_jvp(app, nondiff_argnames=("n", "f")),
        corejax.custom_jvp(app, nondiff_argnums=0, nondiff_argnames="n"),
    ):
        made.defjvp(app_jvp)
        near(made(jnp.sin, 1.0, 2), np.sin(1.0) ** 2)
        for fun in (made, lambda f, x, n, made=made: corejax.jit(lambda x: made(f, x, n))(x)):
            near(corejax.grad(fun, 1)(jnp.sin, 1.0, 2), 100.0)
        near(corejax.vmap(corejax.grad(lambda x, made=made: made(jnp.sin, x, 2)))(XS), [100.0] * 3)
    with pytest.raises(ValueError, match="no positional parameter 'm'"):
        corejax.custom_jvp(app, nondiff_argnames="m")
    with pytest.raises(ValueError, match="takes 3 positional"):
        corejax.custom_jvp(app, nondiff_argnums=3)


def test_traced_values_in_nondiff_arguments_are_constants():
    f = corejax.custom_jvp(lambda c, x: c["a"] * x, nondiff_argnums=0)
    f.defjvp(lambda c, p, t: (f(c, p[0]), 7 * c["a"] * t[0]))

    def g(y):
        return f({"a": y, "b": "text"}, y)

    for fun in (g, corejax.jit(g)):
        near(fun(2.0), 4.0)
        near(corejax.grad(fun)(2.0), 14.0)
        near(corejax.vmap(fun)(XS), XS * XS)
        near(corejax.vmap(corejax.grad(fun))(XS), 7 * XS)
        near(corejax.grad(lambda x, fun=fun: corejax.vmap(fun)(x).sum())(XS), 7 * XS)
    assert corejax.grad(lambda y: f({"a": y}, 1.0) + y)(2.0) == 1.0


def test_pytrees_integers_and_no_differentiable_result():
    @corejax.custom_jvp
    def f(p, n):
        return {"sum": p["a"] + p["b"][0] * n, "n": n + 1}

    seen = []

    @f.defjvp
    def f_jvp(primals, tangents):
        p, n = primals
        p_dot, n_dot = tangents
        seen.append(n_dot.dtype)
        return f(p, n), {"sum": 2 * p_dot["a"] + 4 * p_dot["b"][0] * n, "n": None}

    p = {"a": F(1), "b": (F(2),)}
    out, out_dot = corejax.jvp(f, (p, 3), (p, None))
    assert out["sum"] == 7 and out["n"] == 4
    assert out_dot["sum"] == 2 + 24 and out_dot["n"].dtype == corejax.float0
    for fun in (f, corejax.jit(f)):
        g = corejax.grad(lambda p, fun=fun: fun(p, 3)["sum"])(p)
        assert g["a"] == 2 and g["b"][0] == 12
    assert set(seen) == {corejax.float0}

    h = corejax.custom_jvp(lambda x: jnp.floor(x).astype(np.int32))
    h.defjvp(lambda p, t: (h(*p), None))
    assert corejax.grad(lambda x: x * h(x))(2.5) == 2.0
    assert corejax.jit(corejax.grad(lambda x: x * h(x)))(2.5) == 2.0


def test_no_arguments_that_move_and_no_arguments():
    f = corejax.custom_jvp(lambda: jnp.ones(3))
    f.defjvp(lambda p, t: (f(), jnp.zeros(3)))
    near(corejax.grad(lambda x: (x * f()).sum())(2.0), 3.0)
    near(corejax.jit(f)(), np.ones(3))


# -- zeros ---------------------------------------------------------------------------------------------------


def test_zero_tangents_are_arrays_unless_symbolic():
    seen = []

    @corejax.custom_jvp
    def f(x, y, n):
        return x * y, x + y

    def rule(primals, tangents):
        seen.append([type(t).__name__ for t in tangents])
        x, y, _ = primals
        return (x * y, x + y), (y * tangents[0], None)

    f.defjvp(rule)
    corejax.jvp(lambda x: f(x, 2.0, 3), (1.0,), (1.0,))
    f.defjvp(rule, symbolic_zeros=True)
    for jit in (lambda g: g, corejax.jit):
        _out, dot = corejax.jvp(jit(lambda x: f(x, 2.0, 3)), (1.0,), (1.0,))
        assert dot[0] == 2.0 and dot[1] == 0.0
    assert seen[0][:2] == ["Array", "Array"] and seen[0][2] == "ndarray"
    assert [each[1:] for each in seen[1:]] == [["SymbolicZero", "SymbolicZero"]] * 2


def test_symbolic_zeros_have_shape_and_dtype_and_may_be_returned():
    f = corejax.custom_jvp(lambda x, y, n: x * y)

    def rule(primals, tangents):
        _x_dot, y_dot, n_dot = tangents
        assert isinstance(y_dot, SymbolicZero) and y_dot.shape == (3,) and y_dot.dtype == F and y_dot.ndim == 1
        assert n_dot.dtype == corejax.float0
        near(y_dot.instantiate(), np.zeros(3))
        assert "float32[3]" in repr(y_dot)
        return f(*primals), y_dot

    f.defjvp(rule, symbolic_zeros=True)
    assert not np.any(np.asarray(corejax.grad(lambda x: f(x, XS, 2).sum())(XS)))


def test_defjvps():
    f = corejax.custom_jvp(lambda x, y, z: jnp.sin(x) * y + z)
    ran = []

    def in_y(t, out, x, y, z):
        ran.append(1)
        return jnp.sin(x) * t

    f.defjvps(lambda t, out, x, y, z: (out - z) * t, in_y, None)
    near(corejax.grad(f, (0, 1, 2))(1.0, 2.0, 3.0)[0], 2 * np.sin(1.0))
    assert corejax.grad(f, 2)(1.0, 2.0, 3.0) == 0.0
    ran.clear()
    near(corejax.jit(corejax.grad(f))(1.0, 2.0, 3.0), 2 * np.sin(1.0))
    assert not ran  # zero tangents ask for nothing
    near(corejax.vmap(corejax.grad(f, 1), (0, None, None))(XS, 2.0, 3.0), np.sin(XS))

    g = corejax.custom_jvp(lambda x: x, nondiff_argnums=0)
    with pytest.raises(TypeError, match="with nondiff_argnums, define one rule"):
        g.defjvps(None)
    f.defjvps(None, None)
    with pytest.raises(TypeError, match="defined 2 rules, the call has 3 arguments"):
        corejax.grad(f)(1.0, 2.0, 3.0)


# -- programs ------------------------------------------------------------------------------------------------


def test_program():
    f = tripled()
    closed = corejax.make_jaxpr(f)(F(1), F(2))
    check_jaxpr(closed)
    assert str(closed) == dedent("""\
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = custom_jvp_call[
              call_jaxpr={ lambda ; a:f32[] b:f32[]. let
                  c:f32[] = sin a
                  d:f32[] = mul c b
                in (d,) }
              jvp=<opaque f_jvp>
              name='f'
              num_consts=0
              symbolic_zeros=False
            ] a b
          in (c,) }""")


def test_program_of_the_gradient_is_the_rule_in_place():
    f = corejax.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * 2.0))
    assert str(corejax.make_jaxpr(corejax.grad(f))(F(1))) == dedent("""\
        { lambda ; a:f32[]. let
            _:f32[] = sin a
            b:f32[] = mul 1.0:f32[] 2.0:f32[]
          in (b,) }""")


def test_program_in_jax_has_the_same_equations():
    jax = pytest.importorskip("jax")

    def program(api, sin):
        @api.custom_jvp
        def f(x, y):
            return sin(x) * y

        f.defjvp(lambda p, t: (f(*p), t[0] * p[1]))
        return [api.make_jaxpr(g)(XS, XS) for g in (f, api.vmap(f), lambda x, y: api.jvp(f, (x, y), (x, y)))]

    def names(jaxpr):
        return [
            (e.primitive.name, names(e.params["call_jaxpr"].jaxpr) if "call_jaxpr" in e.params else None)
            for e in jaxpr.eqns
        ]

    ours, theirs = program(corejax, jnp.sin), program(jax, jax.numpy.sin)
    assert [names(p.jaxpr) for p in ours] == [names(p.jaxpr) for p in theirs]


def test_results_keep_their_weak_types_in_programs():
    f = corejax.custom_jvp(lambda x: x * 2.0)
    f.defjvp(lambda p, t: (jnp.asarray(2.0, F) * p[0], 2.0 * t[0]))
    near(corejax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])(1.0), 8.0)


def test_dead_calls_are_dropped_and_effects_are_none():
    from corejax.extend.programs import dce

    f = tripled()
    closed = corejax.make_jaxpr(lambda x: (f(x, x), x)[1])(1.0)
    assert len(closed.eqns) == 1 and not dce(closed.jaxpr).eqns


# -- closures ------------------------------------------------------------------------------------------------


def scaled_by(y):
    h = corejax.custom_jvp(lambda x: x * y)
    h.defjvp(lambda p, t: (h(*p), 3.0 * y * t[0]))
    return h


def test_closed_over_values_of_vmap_and_jit_work():
    near(corejax.vmap(lambda y: scaled_by(y)(2.0))(XS), 2 * XS)
    near(corejax.vmap(lambda y: corejax.grad(scaled_by(y))(2.0))(XS), 3 * XS)
    near(corejax.vmap(lambda y: scaled_by(y)(y))(XS), XS * XS)
    near(corejax.jit(lambda y: scaled_by(y)(2.0))(3.0), 6.0)
    near(corejax.jit(lambda y: corejax.grad(scaled_by(y))(2.0))(3.0), 9.0)
    near(corejax.jit(corejax.vmap(lambda y: scaled_by(y)(2.0)))(XS), 2 * XS)
    near(corejax.vmap(lambda y: lax.scan(lambda c, _: (scaled_by(y)(c), 0), 1.0, None, length=2)[0])(XS), XS**2)


@pytest.mark.parametrize("argument", [lambda y: 2.0, lambda y: y], ids=["constant", "same"])
@pytest.mark.parametrize("jit", [lambda g: g, lambda g: corejax.jit(g)], ids=["eager", "jit"])
def test_closed_over_differentiated_values_are_refused(argument, jit):
    fun = jit(lambda y: scaled_by(y)(argument(y)))
    for transformed, x in (
        (corejax.grad(fun), 1.0),
        (jit(corejax.grad(fun)), 1.0),
        (corejax.vmap(corejax.grad(fun)), XS),
    ):
        with pytest.raises(ClosedOverError, match=r"closes over a value.*Pass the value as an argument"):
            transformed(x)


@pytest.mark.parametrize(
    "program",
    [
        lambda y: corejax.vmap(scaled_by(y))(XS).sum(),
        lambda y: corejax.vmap(scaled_by(y))(XS * y).sum(),
        lambda y: corejax.vmap(lambda z: scaled_by(y * z)(2.0))(XS).sum(),
        lambda y: corejax.vmap(lambda z: scaled_by(y * z)(y * z))(XS).sum(),
        lambda y: corejax.vmap(lambda x: corejax.vmap(scaled_by(y))(XS * x))(XS).sum(),
    ],
)
def test_closed_over_differentiated_values_are_refused_inside_vmap(program):
    for fun in (program, corejax.jit(program)):
        with pytest.raises(ClosedOverError, match="closes over a value"):
            corejax.grad(fun)(2.0)


def test_closed_over_values_that_a_rule_returns_are_refused():
    def program(y, rule):
        h = corejax.custom_jvp(lambda x: x)
        h.defjvp(rule)
        return h(y)

    for rule in (lambda y: lambda p, t: (y, t[0]), lambda y: lambda p, t: (p[0], y)):
        for fun in (lambda y, rule=rule: program(y, rule(y)), corejax.jit(lambda y, rule=rule: program(y, rule(y)))):
            with pytest.raises(ClosedOverError):
                corejax.grad(fun)(2.0)
            with pytest.raises(ClosedOverError):
                corejax.grad(lambda ys, fun=fun: corejax.vmap(fun)(ys).sum())(XS)
            with pytest.raises(corejax.errors.UnexpectedTracerError):
                corejax.jit(corejax.grad(fun))(2.0)


def test_nested_customs():
    inner = tripled()

    @corejax.custom_jvp
    def outer(x):
        return inner(x, x)

    @outer.defjvp
    def outer_jvp(primals, tangents):
        out, dot = corejax.jvp(lambda x: inner(x, 1.0), primals, tangents)
        return out, 10.0 * dot

    for fun in (outer, corejax.jit(outer)):
        near(corejax.grad(fun)(1.0), 30 * np.cos(1.0))
        near(corejax.grad(corejax.grad(fun))(1.0), -30 * np.sin(1.0))
        near(corejax.vmap(corejax.grad(fun))(XS), 30 * np.cos(XS))
    assert "custom_jvp_call" in str(corejax.make_jaxpr(outer)(1.0)).split("custom_jvp_call", 1)[1]


# -- derivatives where something unknown is on the tape ------------------------------------------------------


def test_linear_custom_function_of_tangents():
    """A rule that uses a custom function on tangents: reverse mode transposes its program."""
    double = corejax.custom_jvp(lambda t: 2.0 * t)
    double.defjvp(lambda p, t: (double(*p), double(*t)))
    f = corejax.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda p, t: (f(*p), double(t[0]) * p[0]))
    batched = corejax.custom_jvp(lambda x: jnp.sin(x))
    batched.defjvp(lambda p, t: (batched(*p), corejax.vmap(double)(t[0]) * p[0]))
    for fun in (f, corejax.jit(f), batched, corejax.jit(batched)):
        near(corejax.grad(lambda x, fun=fun: fun(x).sum())(XS), 2 * XS)


def test_in_cond_and_scan():
    f = tripled()

    def program(x):
        y = lax.cond(x > 0, lambda a: f(a, 2.0), lambda a: a, x)
        return lax.scan(lambda c, a: (f(c, a), c), y, XS)[0]

    def plain(x):
        y = 2 * np.sin(x)
        d = 6 * np.cos(x)
        for a in XS:
            y, d = np.sin(y) * a, 3 * np.cos(y) * a * d
        return y, d

    want = plain(0.4)
    for jit in (lambda g: g, corejax.jit):
        near(jit(program)(0.4), want[0])
        near(jit(corejax.grad(program))(0.4), want[1])
        near(corejax.jvp(jit(program), (0.4,), (1.0,))[1], want[1])
        near(jit(corejax.vmap(corejax.grad(program)))(np.array([0.4, 0.4], F)), [want[1]] * 2)
        near(
            corejax.grad(lambda x, jit=jit: jit(corejax.vmap(program))(x).sum())(np.array([0.4, 0.4], F)), [want[1]] * 2
        )


def test_equations_keep_no_arguments_alive():
    import gc
    import weakref

    f = corejax.custom_jvp(lambda c, x: c * x, nondiff_argnums=0)
    f.defjvp(lambda c, p, t: (f(c, *p), c * t[0]))
    seen = []

    def program(y):
        seen.append(weakref.ref(y))
        return f(y, y)

    closed = corejax.make_jaxpr(program)(1.0)
    gc.collect()
    assert closed.eqns[0].primitive.name == "custom_jvp_call" and seen[0]() is None


def test_functions_of_an_equation():
    w = jnp.asarray(2.0)
    f = corejax.custom_jvp(lambda x: x * w)
    f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0]))
    closed = corejax.make_jaxpr(f)(1.5)
    [eqn] = closed.eqns
    operands = [*closed.consts, jnp.asarray(1.5)]
    params = eqn.primitive.get_bind_params(eqn.params)
    program, rule = params["subfuns"]
    near(program.call_wrapped(*operands), [3.0])
    near(rule.call_wrapped(*operands, *[jnp.zeros(())] * len(closed.consts), jnp.asarray(1.0)), [3.0, 3.0])

    def rebound(x):
        return eqn.primitive.bind(*closed.consts, x, **params)[0]

    near(corejax.grad(rebound)(1.5), 3.0)
    with pytest.raises(TypeError, match=r"subfuns.*get_bind_params.*custom_jvp"):
        eqn.primitive.bind(*operands, **{**params, "subfuns": (program, rule)})
