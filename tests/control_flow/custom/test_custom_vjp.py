"""`custom_vjp`: rules, residuals, programs, bad input; `test_closures_and_gradients.py` has closures."""

from __future__ import annotations

import functools
from textwrap import dedent

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from corejax.extend.programs import check_jaxpr, dce
from corejax.extend.transforms import trace_stack

F = np.float32
XS = np.array([0.3, -0.7, 1.1], F)


@pytest.fixture(autouse=True)
def clean_stack():
    yield
    assert len(trace_stack()) == 1


def near(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)


def tripled():
    """sin(x) * y with three times its derivative in x, so that a rule that is not used shows."""

    @corejax.custom_vjp
    def f(x, y):
        return jnp.sin(x) * y

    def f_fwd(x, y):
        return f(x, y), {"x": x, "rest": (y,)}

    def f_bwd(res, ct):
        x, (y,) = res["x"], res["rest"]
        return 3 * jnp.cos(x) * y * ct, jnp.sin(x) * ct

    f.defvjp(f_fwd, f_bwd)
    return f


# -- use of the rules ----------------------------------------------------------------------------------------


def test_rules_are_used_by_every_transformation():
    f = tripled()
    near(f(1.0, 2.0), 2 * np.sin(1.0))
    near(corejax.grad(f)(1.0, 2.0), 6 * np.cos(1.0))
    near(corejax.grad(f, 1)(1.0, 2.0), np.sin(1.0))
    near(corejax.vjp(f, 1.0, 2.0)[1](2.0), (12 * np.cos(1.0), 2 * np.sin(1.0)))
    near(corejax.vmap(f, (0, None))(XS, 2.0), 2 * np.sin(XS))
    near(corejax.vmap(corejax.grad(f), (0, None))(XS, 2.0), 6 * np.cos(XS))
    for jit in (lambda g: g, corejax.jit):
        near(corejax.grad(lambda x, jit=jit: jit(corejax.vmap(f, (0, None)))(x, 2.0).sum())(XS), 6 * np.cos(XS))
        near(corejax.grad(lambda y, jit=jit: jit(corejax.vmap(f, (0, None)))(XS, y).sum())(2.0), np.sin(XS).sum())
        near(
            corejax.grad(lambda y, jit=jit: jit(corejax.vmap(f, (None, 0)))(y, XS).sum())(2.0), 3 * np.cos(2) * XS.sum()
        )
    near(corejax.jit(corejax.grad(f))(1.0, 2.0), 6 * np.cos(1.0))
    near(corejax.grad(corejax.jit(f))(1.0, 2.0), 6 * np.cos(1.0))
    near(corejax.jit(corejax.vmap(corejax.grad(corejax.jit(f)), (0, None)))(XS, 2.0), 6 * np.cos(XS))
    near(corejax.jacrev(lambda x: corejax.vmap(f, (0, None))(x, 2.0))(XS), np.diag(6 * np.cos(XS)))


def test_second_derivative_is_that_of_the_rules():
    f = tripled()
    for nested in (
        corejax.grad(corejax.grad(f)),
        corejax.grad(corejax.grad(corejax.jit(f))),
        corejax.jit(corejax.grad(corejax.jit(corejax.grad(corejax.jit(f))))),
        corejax.jacrev(corejax.grad(f)),
    ):
        near(nested(1.0, 2.0), -6 * np.sin(1.0))
    near(corejax.grad(corejax.grad(corejax.grad(f)))(1.0, 2.0), -6 * np.cos(1.0))


def test_forward_over_reverse_works_where_the_forward_pass_is_plain():
    f = corejax.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3 * jnp.cos(x) * ct,))
    for fun in (f, corejax.jit(f)):
        near(corejax.jvp(corejax.grad(fun), (1.0,), (1.0,)), (3 * np.cos(1.0), -3 * np.sin(1.0)))
        near(corejax.hessian(fun)(1.0), -3 * np.sin(1.0))


def test_rules_run_only_where_something_is_differentiated():
    ran = []
    f = corejax.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (ran.append("fwd"), (x * x, x))[1], lambda x, ct: (ran.append("bwd"), (2 * x * ct,))[1])
    f(2.0), corejax.vmap(f)(XS), corejax.jit(f)(2.0), corejax.make_jaxpr(f)(2.0)
    corejax.grad(lambda x: x * f(3.0))(2.0)
    assert not ran
    corejax.vjp(f, 2.0)
    assert ran == ["fwd"]
    corejax.grad(f)(2.0)
    assert ran == ["fwd", "fwd", "bwd"]


def test_forward_mode_is_refused_by_name():
    f = tripled()
    for use in (
        lambda: corejax.jvp(f, (1.0, 2.0), (1.0, 0.0)),
        lambda: corejax.jvp(corejax.jit(f), (1.0, 2.0), (1.0, 0.0)),
        lambda: corejax.jit(lambda x: corejax.jvp(f, (x, 2.0), (1.0, 0.0)))(1.0),
        lambda: corejax.jacfwd(f)(1.0, 2.0),
        lambda: corejax.linearize(f, 1.0, 2.0)[1](1.0, 0.0),
        lambda: corejax.jvp(lambda x: lax.scan(lambda c, a: (f(c, a), 0), x, XS)[0], (1.0,), (1.0,)),
    ):
        with pytest.raises(TypeError, match=r"custom_vjp function: f has a rule for reverse mode only.*custom_jvp"):
            use()


def test_forward_mode_of_programs_that_do_not_use_the_tangent():
    f = tripled()

    def chosen(x):
        return jnp.where(f(x, 2.0) > 0, 3 * x, x)

    def loop(x):
        return lax.fori_loop(0, 3, lambda i, c: c.at[i].set(chosen(c[i])) + f(c, 2.0).astype("int32"), x)

    def written(x):
        ref = corejax.new_ref(x.astype("int32"))
        lax.fori_loop(0, 3, lambda i, c: [ref.__setitem__(i, f(x[i], 2.0).astype("int32")), c][1], 0)
        return x * ref[...]

    for program in (
        corejax.jit(chosen),
        corejax.jit(corejax.jit(chosen)),
        loop,
        written,
        lambda x: lax.cond(x[0] > 0, chosen, jnp.sin, x),
        lambda x: lax.scan(lambda c, _: (3 * c, f(c, 2.0) > 0), x, length=2)[0],
    ):
        for fun in (program, corejax.jit(program)):
            tangent = corejax.jvp(fun, (XS,), (jnp.ones_like(XS),))[1]
            near(tangent, corejax.vjp(fun, XS)[1](jnp.ones_like(XS))[0])


def test_linearize_and_its_transpose():
    f = tripled()
    for fun in (f, corejax.jit(f)):
        out, linear = corejax.linearize(fun, 1.0, 2.0)
        near(out, 2 * np.sin(1.0))
        near(corejax.linear_transpose(linear, 1.0, 1.0)(1.0), (6 * np.cos(1.0), np.sin(1.0)))
        pulled = corejax.linear_transpose(corejax.vmap(linear, (0, None)), XS, 1.0)(XS)
        near(pulled[0], 6 * np.cos(1.0) * XS)
        near(pulled[1], np.sin(1.0) * XS.sum())


def test_gradient_clipping_is_not_linear_and_works():
    clip = corejax.custom_vjp(lambda lo, hi, x: x, nondiff_argnums=(0, 1))
    clip.defvjp(lambda lo, hi, x: (x, None), lambda lo, hi, _, ct: (jnp.clip(ct, lo, hi),))
    for jit in (lambda g: g, corejax.jit):
        near(corejax.grad(jit(lambda x: (clip(-0.5, 0.5, x) ** 2).sum()))(XS), np.clip(2 * XS, -0.5, 0.5))
        near(corejax.vmap(corejax.grad(jit(lambda x: clip(-0.5, 0.5, x) ** 2)))(XS), np.clip(2 * XS, -0.5, 0.5))
    near(corejax.vmap(lambda b: corejax.grad(lambda x: clip(-b, b, x) ** 2)(4.0))(np.array([1.0, 2.0], F)), [1.0, 2.0])


def test_python_control_flow_in_rules():
    f = corejax.custom_vjp(lambda x: x if x > 0 else -x)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (5 * ct if x > 0 else -7 * ct,))
    assert corejax.grad(f)(2.0) == 5.0 and corejax.grad(f)(-2.0) == -7.0
    assert corejax.grad(corejax.grad(lambda x: f(x) * x))(-2.0) == -14.0


# -- arguments, zeros ----------------------------------------------------------------------------------------


def test_keywords_nondiff_by_name_pytrees_and_integers():
    f = corejax.custom_vjp(lambda f, x, k=3: (f(x["a"]) * k, x["n"] + k), nondiff_argnames="f")
    seen = []

    def bwd(f, res, cts):
        ct, n_ct = cts
        seen.append(n_ct.dtype)
        return {"a": 10 * ct, "n": None}, None

    f.defvjp(lambda f, x, k: (f_plain(f, x, k), None), bwd)
    f_plain = f.fun
    for jit in (lambda g: g, corejax.jit):
        for call in (lambda x: f(jnp.sin, x)[0], lambda x: f(x=x, f=jnp.sin, k=2)[0]):
            got = corejax.grad(jit(call), allow_int=True)({"a": 1.0, "n": 2})
            assert got["a"] == 10.0 and got["n"].dtype == corejax.float0
    assert set(seen) == {corejax.float0}


def test_none_for_arguments_and_leaves():
    f = corejax.custom_vjp(lambda x, p: x * p["a"] * p["b"])
    f.defvjp(lambda x, p: (f(x, p), p), lambda p, ct: (None, {"a": ct, "b": None}))
    got = corejax.grad(f, (0, 1))(1.0, {"a": 2.0, "b": 3.0})
    assert got == (0.0, {"a": 1.0, "b": 0.0})
    f.defvjp(lambda x, p: (f(x, p), p), lambda p, ct: [ct, None])
    assert corejax.grad(f, (0, 1))(1.0, {"a": 2.0, "b": 3.0}) == (1.0, {"a": 0.0, "b": 0.0})


def test_symbolic_zeros():
    f = corejax.custom_vjp(lambda x, y: (x * y, x + y))
    seen = []

    def fwd(x, y):
        assert isinstance(x, CustomVJPPrimal) and isinstance(y, CustomVJPPrimal)
        seen.append((x.perturbed, y.perturbed))
        return f(x.value, y.value), (x.value, y.value)

    def bwd(res, cts):
        seen.append([isinstance(ct, SymbolicZero) for ct in cts])
        return cts[0] * res[1], cts[1]

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    for jit in (lambda g: g, corejax.jit):
        assert corejax.grad(jit(lambda x: f(x, 3.0)[0]))(2.0) == 3.0
        near(corejax.vmap(corejax.grad(jit(lambda x: f(x, 3.0)[0])))(XS), [3.0] * 3)
    assert seen == [(True, False), [False, True]] * 4
    with pytest.raises(NotImplementedError, match="not both"):
        f.defvjp(fwd, bwd, symbolic_zeros=True, optimize_remat=True)


def test_zeros_of_values():
    f = corejax.custom_jvp(lambda x: (jnp.sin(x), {"count": jnp.arange(2), "norm": jnp.sum(x * x)}))
    seen = []

    @functools.partial(f.defjvp, symbolic_zeros=True)
    def f_jvp(primals, tangents):
        out = f(*primals)
        seen.append(zero_from_primal(out[1], symbolic_zeros=True))
        return out, (3 * tangents[0], seen[-1])

    for jit in (lambda g: g, corejax.jit):
        near(corejax.grad(jit(lambda x: f(x)[0].sum() + f(x)[1]["norm"]))(XS), [3.0] * 3)
    assert all(type(x) is SymbolicZero for x in seen[0].values()) and seen[0]["count"].dtype == corejax.dtypes.float0
    real = zero_from_primal({"x": jnp.ones(2), "n": 3})
    assert real["x"].tolist() == [0.0, 0.0] and real["n"].dtype == corejax.dtypes.float0
    assert custom_vjp_primal_tree_values([CustomVJPPrimal(1, True), {"a": CustomVJPPrimal(2, False)}]) == [1, {"a": 2}]
    with pytest.raises(TypeError, match="takes a pytree of CustomVJPPrimals, got a int"):
        custom_vjp_primal_tree_values([1])


def test_numbers_among_residuals_stay_numbers():
    @corejax.custom_vjp
    def f(x, y):
        return jnp.sin(x) * y

    def f_fwd(x, y):
        return f(x.value, y.value), {
            "perturbed": (x.perturbed, y.perturbed),
            "k": 2,
            "half": 0.5,
            "xy": (x.value, y.value),
        }

    def f_bwd(res, ct):
        assert [type(res[name]) for name in ("k", "half")] == [int, float]
        by_x, by_y = res["perturbed"]  # decides what is computed
        x, y = res["xy"]
        return (
            res["k"] * res["half"] * jnp.cos(x) * y * ct if by_x is True else None,
            ct * x if by_y is True else None,
        )

    f.defvjp(f_fwd, f_bwd, symbolic_zeros=True)
    for jit in (lambda g: g, corejax.jit):
        near(jit(corejax.grad(f))(0.5, 2.0), 2 * np.cos(0.5))
        near(jit(corejax.grad(corejax.grad(f)))(0.5, 2.0), -2 * np.sin(0.5))
        near(corejax.grad(jit(f), 1)(0.5, 2.0), 0.5)
        near(corejax.grad(corejax.grad(jit(f)))(0.5, 2.0), -2 * np.sin(0.5))
        near(jit(corejax.vmap(corejax.grad(f), (0, None)))(XS, 2.0), 2 * np.cos(XS))
        near(corejax.grad(lambda x, jit=jit: jit(corejax.vmap(f, (0, None)))(x, 2.0).sum())(XS), 2 * np.cos(XS))


def test_zero_cotangents_are_arrays_otherwise():
    f = corejax.custom_vjp(lambda x: (x, 2 * x))
    f.defvjp(lambda x: (f(x), None), lambda _, cts: (cts[0] + 10 * cts[1],))
    assert corejax.grad(lambda x: f(x)[0])(1.0) == 1.0
    assert corejax.grad(lambda x: f(x)[1])(1.0) == 10.0


def test_result_that_is_the_same_for_all_elements_of_a_batch():
    f = corejax.custom_vjp(lambda x: jnp.ones(()))
    f.defvjp(lambda x: (jnp.ones(()), x), lambda x, ct: (x * ct,))
    for jit in (lambda g: g, corejax.jit):
        near(corejax.grad(lambda x, jit=jit: (jit(corejax.vmap(f))(x) * XS).sum())(XS), XS * XS)
        near(corejax.vmap(corejax.grad(jit(f)))(XS), XS)


# -- programs ------------------------------------------------------------------------------------------------


def test_program():
    f = tripled()
    closed = corejax.make_jaxpr(f)(F(1), F(2))
    check_jaxpr(closed)
    assert str(closed) == dedent("""\
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = custom_vjp_call[
              call_jaxpr={ lambda ; a:f32[] b:f32[]. let
                  c:f32[] = sin a
                  d:f32[] = mul c b
                in (d,) }
              name='f'
              num_consts=0
              symbolic_zeros=False
              vjp=<opaque f_fwd, f_bwd>
            ] a b
          in (c,) }""")


def test_program_of_the_gradient_is_the_rules_in_place():
    f = corejax.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda res, ct: (res * ct,))
    assert str(corejax.make_jaxpr(corejax.grad(f))(F(1))) == dedent("""\
        { lambda ; a:f32[]. let
            _:f32[] = sin a
            b:f32[] = cos a
            c:f32[] = mul b 1.0:f32[]
          in (c,) }""")


def test_program_in_jax_has_the_same_equations():
    jax = pytest.importorskip("jax")

    def program(api, sin, cos):
        f = api.custom_vjp(lambda x, y: sin(x) * y)
        f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (cos(r[0]) * r[1] * ct, sin(r[0]) * ct))
        grad = api.grad(lambda x, y: f(x, y).sum())
        return [api.make_jaxpr(g)(XS, XS) for g in (f, api.vmap(f), grad, api.vmap(api.grad(f)))]

    def names(jaxpr):
        got = [
            (e.primitive.name, names(e.params["call_jaxpr"].jaxpr) if "call_jaxpr" in e.params else None)
            for e in jaxpr.eqns
        ]
        return sorted(got, key=str)

    ours, theirs = program(corejax, jnp.sin, jnp.cos), program(jax, jax.numpy.sin, jax.numpy.cos)
    assert [names(p.jaxpr) for p in ours[:2]] == [names(p.jaxpr) for p in theirs[:2]]
    for a, b in zip(ours[2:], theirs[2:], strict=True):
        wanted = {name for name, _ in names(b.jaxpr)} - {"broadcast_in_dim", "convert_element_type", "reduce_sum"}
        assert wanted <= {name for name, _ in names(a.jaxpr)}


def test_optimize_remat_runs_the_function_where_residuals_are_not_used():
    def make(optimize):
        f = corejax.custom_vjp(lambda x: jnp.sin(x))
        f.defvjp(lambda x: (jnp.tanh(x), jnp.exp(x)), lambda res, ct: (res * ct,), optimize_remat=optimize)
        return f

    def names(jaxpr):
        return [
            n
            for e in jaxpr.eqns
            for n in (names(e.params["fwd_jaxpr"].jaxpr) if "fwd_jaxpr" in e.params else [e.primitive.name])
        ]

    for optimize, wanted in ((True, ["sin"]), (False, ["tanh"])):
        f = make(optimize)
        closed = corejax.make_jaxpr(lambda x, f=f: corejax.vjp(f, x)[0])(1.0)
        check_jaxpr(closed)
        small = dce(closed.jaxpr)
        check_jaxpr(small)
        assert names(small) == wanted
        for g in (corejax.grad(f), corejax.jit(corejax.grad(f)), corejax.grad(corejax.jit(f))):
            near(g(1.0), np.exp(1.0))
        near(corejax.jit(corejax.vmap(corejax.grad(f)))(XS), np.exp(XS))
        near(corejax.grad(lambda x, f=f: corejax.jit(corejax.vmap(f))(x).sum())(XS), np.exp(XS))
        near(corejax.jit(corejax.grad(corejax.grad(f)))(1.0), np.exp(1.0))
        near(corejax.jit(f)(1.0), np.sin(1.0))


def test_in_cond_and_scan():
    f = tripled()

    def program(x):
        y = lax.cond(x > 0, lambda a: f(a, 2.0), lambda a: a, x)
        return lax.scan(lambda c, a: (f(c, a), c), y, XS)[0]

    y, d = 2 * np.sin(0.4), 6 * np.cos(0.4)
    for a in XS:
        y, d = np.sin(y) * a, 3 * np.cos(y) * a * d
    for jit in (lambda g: g, corejax.jit):
        near(jit(program)(0.4), y)
        near(jit(corejax.grad(program))(0.4), d)
        near(corejax.grad(jit(program))(0.4), d)
        near(jit(corejax.vmap(corejax.grad(program)))(np.array([0.4, 0.4], F)), [d] * 2)
        near(corejax.grad(lambda x, jit=jit: jit(corejax.vmap(program))(x).sum())(np.array([0.4, 0.4], F)), [d] * 2)


# -- bad input -----------------------------------------------------------------------------------------------


def test_without_rules():
    @corejax.custom_vjp
    def lonely(x):
        return x

    with pytest.raises(AttributeError, match=r"custom_vjp function lonely.*lonely\.defvjp\(fwd, bwd\)"):
        lonely(1.0)
    with pytest.raises(TypeError, match="custom_vjp takes a function, got 3"):
        corejax.custom_vjp(3)
    with pytest.raises(TypeError, match="defvjp of lonely: bwd must be a function, got None"):
        lonely.defvjp(lambda x: x, None)
    assert repr(lonely) == "<custom_vjp lonely>"


BAD_BWD = {
    "not a tuple": (lambda r, ct: ct, r"for each of the 1 arguments that are differentiated, \(ct0,\), got Array"),
    "too many": (
        lambda r, ct: (ct, ct),
        r"for each of the 1 arguments that are differentiated, \(ct0,\), got 2 entries",
    ),
    "structure": (
        lambda r, ct: (ct["a"],),
        r"the cotangent of args\[0\] has the structure\n  float32\[3\]\nthe argument has\n"
        r"  {'a': float32\[3\], 'b': float32\[3\]}",
    ),
    "shape": (
        lambda r, ct: ({"a": ct["a"], "b": ct["b"][:2]},),
        r"the cotangent has type float32\[2\] for args\[0\]\['b'\], which is float32\[3\]",
    ),
    "dtype": (
        lambda r, ct: ({"a": ct["a"].astype(np.float16), "b": None},),
        r"the cotangent has type float16\[3\] for args\[0\]\['a'\], which is float32\[3\]",
    ),
}


@pytest.mark.parametrize("name", BAD_BWD)
@pytest.mark.parametrize("jit", [lambda g: g, corejax.jit], ids=["eager", "jit"])
def test_bad_backward_rules(name, jit):
    rule, message = BAD_BWD[name]

    @corejax.custom_vjp
    def f(x):
        return x

    def bwd(res, ct):
        return rule(res, ct)

    f.defvjp(lambda x: (x, None), bwd)
    message = message.replace("got Array", "got (Array|dict)")
    with pytest.raises(TypeError, match="(?s)the backward rule bwd at .* of custom_vjp function f.*" + message):
        corejax.grad(jit(lambda x: f(x)["a"].sum()))({"a": XS, "b": XS})


def test_bad_forward_rules():
    @corejax.custom_vjp
    def f(x):
        return x

    def fwd(x):
        return x

    f.defvjp(fwd, lambda r, ct: (ct,))
    with pytest.raises(
        TypeError, match=r"the forward rule fwd at \S+ of custom_vjp function f must return a pair \(out, residuals\)"
    ):
        corejax.grad(f)(1.0)
    f.defvjp(lambda x: (x, "text"), lambda r, ct: (ct,))
    with pytest.raises(TypeError, match="returns 'text' of type str"):
        corejax.grad(f)(1.0)
    f.defvjp(lambda x: ((x, x), None), lambda r, ct: (ct,))
    with pytest.raises(TypeError, match="another structure than the function"):
        corejax.grad(corejax.jit(f))(1.0)
    f.defvjp(lambda x: (x[:1], None), lambda r, ct: (ct,))
    with pytest.raises(TypeError, match=r"returns result of type float32\[1\], the function of type float32\[3\]"):
        corejax.vjp(corejax.jit(f), XS)


@pytest.mark.parametrize("ct", [{"a": XS, "b": 2 * XS}, {"a": (XS,), "b": 2 * XS}, {"a": XS, "b": [{"x": 2 * XS}]}])
def test_a_cotangent_may_be_a_leaf_for_a_part_that_has_one(ct):
    f = corejax.custom_vjp(lambda p: jnp.sum(p["a"][0]) + jnp.sum(p["b"][0]["x"]))
    f.defvjp(lambda p: (f(p), None), lambda _, g: (ct | {"none": None},))
    grads = corejax.grad(f)({"a": (XS,), "b": [{"x": XS}], "none": None})
    corejax.tree.map(np.testing.assert_array_equal, grads, {"a": (XS,), "b": [{"x": 2 * XS}], "none": None})


def test_a_leaf_of_a_cotangent_is_not_for_several():
    f = corejax.custom_vjp(lambda p: jnp.sum(p["a"][0]))
    f.defvjp(lambda p: (f(p), None), lambda _, g: ({"a": XS, "b": XS},))
    with pytest.raises(TypeError, match="has the structure"):
        corejax.grad(f)({"a": (XS, XS), "b": ()})
