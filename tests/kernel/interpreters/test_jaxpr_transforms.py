"""Transformations from program to program: each result type-checks and computes what it should."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corejax as cj
from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    Primitive,
    ShapedArray,
    Var,
    batch_jaxpr,
    close_over_consts,
    dce_jaxpr,
    eval_jaxpr_on_host,
    inline_closed,
    inline_equations,
    jaxpr_as_fun,
    jvp_jaxpr,
    memoised,
    partial_eval_jaxpr,
    stage_closed,
    transpose_jaxpr,
)
from corejax.extend.plugins import isolated_plugins
from corejax.extend.programs import Literal, check_jaxpr
from corejax.settings.config import config
from tests.kernel.toys import (
    add,
    broadcast_p,
    call,
    cos,
    hessian,
    mul,
    print_p,
    printed,
    scale_p,
    sin,
    sincos_p,
    sum_,
    swap_p,
)

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
Y = np.array([1.0, -1.0, 3.0], np.float32)
Z = np.array([0.25, 2.0, -0.5], np.float32)
VEC = ShapedArray((3,), np.float32)
CONST = cj.Array(np.array([2.0, 3.0, 4.0], np.float32))


def several(x, y):
    s, c = sincos_p.bind(x)
    a, b = swap_p.bind(mul(c, y), s)
    return [add(mul(a, b), CONST), cos(y), CONST, 2.0, x]


def nested(x, y):
    inner = call(lambda x, y: (mul(sin(x), y), cos(y), mul(x, CONST)))
    a, b, c = call(lambda x, y: inner(mul(x, 2.0), y))(x, y)
    return [a, b, mul(b, c), y]


FUNCTIONS = {"several": several, "nested": nested}


def program(name):
    return stage_closed(lambda x, y: FUNCTIONS[name](x, y), [VEC, VEC])


def run(closed, *args):
    check_jaxpr(closed)
    outs = inline_closed(closed, args)
    on_host = eval_jaxpr_on_host(closed, [np.asarray(a, v.dtype) for a, v in zip(args, closed.in_avals, strict=True)])
    for a, b, aval in zip(outs, on_host, closed.out_avals, strict=True):
        assert type(b) is np.ndarray and (b.shape, b.dtype) == (aval.shape, aval.dtype)
        np.testing.assert_array_equal(a, b)
    return outs


def close(got, wanted):
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


each = pytest.mark.parametrize("name", FUNCTIONS)
flags = pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=2)))


@each
@flags
@pytest.mark.parametrize("instantiate", [False, True])
def test_jvp(name, flags, instantiate):
    closed = program(name)
    new, nonzeros_out = jvp_jaxpr(closed, flags, instantiate)
    tangents = [t for t, nonzero in zip((Y, Z), flags, strict=True) if nonzero]
    outs = run(new, X, Y, *tangents)
    primals_out, tangents_out = outs[: len(nonzeros_out)], iter(outs[len(nonzeros_out) :])
    full = [t if nonzero else np.zeros(3, np.float32) for t, nonzero in zip((Y, Z), flags, strict=True)]
    f = lambda x, y: [add(o, 0.0) for o in FUNCTIONS[name](x, y)]
    wanted, wanted_tangents = cj.jvp(f, (X, Y), tuple(full))
    close(primals_out, wanted)
    for nonzero, want in zip(nonzeros_out, wanted_tangents, strict=True):
        close([next(tangents_out) if nonzero else np.zeros_like(want)], [want])
    assert all(nonzeros_out) if instantiate else sum(nonzeros_out) < len(nonzeros_out) or name == "nested"
    assert jvp_jaxpr(closed, flags, instantiate)[0] is new  # memoised


@each
@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 1), (1, 0), (None, None)])
@pytest.mark.parametrize("instantiate", [False, True])
def test_batch(name, dims, instantiate):
    closed = program(name)
    new, dims_out = batch_jaxpr(closed, 2, dims, instantiate)
    batch = np.stack([X, Z])
    args = [{0: batch, 1: batch.T, None: Y}[d] for d in dims]
    outs = run(new, *args)
    assert all(d in (0, None) for d in dims_out) and (not instantiate or dims_out == [0] * len(dims_out))
    for i in range(2):
        element = [a if d is None else np.take(a, i, d) for a, d in zip(args, dims, strict=True)]
        close([o if d is None else o[i] for o, d in zip(outs, dims_out, strict=True)], FUNCTIONS[name](*element))
    assert batch_jaxpr(closed, 2, dims, instantiate)[0] is new
    assert batch_jaxpr(closed, 3, (None, None), instantiate)[0] is not new


@each
@flags
@pytest.mark.parametrize("instantiate", [False, True])
def test_partial_eval(name, flags, instantiate):
    closed = program(name)
    known, unknown, unknowns_out, num_res = partial_eval_jaxpr(closed, flags, instantiate)
    args = (X, Y)
    outs1 = run(known, *(a for a, u in zip(args, flags, strict=True) if not u))
    residuals = outs1[len(outs1) - num_res :]
    outs2 = iter(run(unknown, *residuals, *(a for a, u in zip(args, flags, strict=True) if u)))
    first = iter(outs1)
    close([next(outs2) if u else next(first) for u in unknowns_out], FUNCTIONS[name](X, Y))
    assert not instantiate or all(unknowns_out)
    if flags == (False, False) and not instantiate:
        assert unknown.eqns == [] and num_res == 0
    if name == "several" and flags == (True, False) and not instantiate:
        assert unknowns_out == [True, False, False, False, True]


def test_partial_eval_splits_equations_that_hold_programs():
    closed = program("nested")
    known, _unknown, unknowns_out, _ = partial_eval_jaxpr(closed, [False, True])
    assert unknowns_out == [True, True, True, True]
    assert [e.primitive.name for e in known.eqns] == ["toy.closed_call"]
    names = [e.primitive.name for e in known.eqns[0].params["jaxpr"].eqns]
    assert names == ["toy.mul", "toy.closed_call"]


def test_partial_eval_keeps_effects():
    def f(x, y):
        print_p.bind(x)
        print_p.bind(y)
        return [y]

    known, unknown, *_ = partial_eval_jaxpr(stage_closed(f, [VEC, VEC]), [False, True])
    assert known.effects == unknown.effects == {"print"}
    run(known, X)
    assert len(printed) == 2  # `run` runs twice


def linear_in_second(x, y):
    a, b = swap_p.bind(mul(sin(x), y), y)
    c, d = scale_p.bind(a, factor=3.0)
    return [sum_(c), mul(b, CONST), call(lambda x, y: mul(cos(x), add(y, y)))(x, d), CONST]


@pytest.mark.parametrize("nonzero", list(itertools.product([False, True], repeat=4)))
def test_transpose(nonzero):
    closed = stage_closed(linear_in_second, [VEC, VEC])
    new, nonzeros_out = transpose_jaxpr(closed, [False, True], nonzero)
    cts = [np.float32(2.0), X, Z, Y]
    outs = run(new, X, *(ct for ct, nz in zip(cts, nonzero, strict=True) if nz))
    full = [ct if nz else np.zeros_like(ct) for ct, nz in zip(cts, nonzero, strict=True)]
    wanted = full[0] * 3 + full[1] * np.sin(X) * CONST._host + full[2] * 2 * np.cos(X)
    assert nonzeros_out == [any(nonzero[:3])]
    close(outs or [np.zeros(3)], [wanted])
    assert transpose_jaxpr(closed, [False, True], nonzero)[0] is new


def test_transpose_undoes_itself():
    closed = stage_closed(lambda x: [mul(x, CONST), sum_(x)], [VEC])
    once, _ = transpose_jaxpr(closed, [True], [True, True])
    twice, _ = transpose_jaxpr(once, [True, True], [True])
    close(run(twice, X), run(closed, X))


@each
def test_dce(name):
    closed = program(name)
    count = len(closed.out_avals)
    for used in itertools.product([False, True], repeat=count):
        new, used_inputs = dce_jaxpr(closed, used)
        args = [a for a, u in zip((X, Y), used_inputs, strict=True) if u]
        close(run(new, *args), [o for o, u in zip(FUNCTIONS[name](X, Y), used, strict=True) if u])
        whole, all_inputs = dce_jaxpr(closed, used, instantiate=True)
        assert all_inputs == [True, True] and check_jaxpr(whole)[0] == closed.in_avals
    assert dce_jaxpr(closed, [False] * count)[0].eqns == []
    assert dce_jaxpr(closed, [False] * count)[0].consts == []


def test_dce_goes_into_programs():
    closed = program("nested")
    new, used_inputs = dce_jaxpr(closed, [False, True, False, False])
    assert used_inputs == [False, True]
    (outer,) = new.eqns
    (inner,) = outer.params["jaxpr"].eqns
    assert [e.primitive.name for e in inner.params["jaxpr"].eqns] == ["toy.cos"]


def test_memo_depends_on_settings_that_traces_depend_on():
    closed = program("several")
    new, _ = jvp_jaxpr(closed, (True, True))
    with config.override(default_dtype_bits=64):
        assert jvp_jaxpr(closed, (True, True))[0] is not new
    assert jvp_jaxpr(closed, (True, True))[0] is new


def test_memoised_by_program_key_and_settings():
    closed, made = program("several"), itertools.count()
    first = memoised(closed, ("mine", 1), lambda: next(made))
    assert memoised(closed, ("mine", 1), lambda: next(made)) == first
    assert memoised(closed, ("mine", 2), lambda: next(made)) != first
    assert memoised(program("nested"), ("mine", 1), lambda: next(made)) != first
    with config.override(default_dtype_bits=64):
        assert memoised(closed, ("mine", 1), lambda: next(made)) != first


def test_compositions():
    closed = program("nested")
    jvp, _ = jvp_jaxpr(closed, (True, True), True)
    known, unknown, _, num_res = partial_eval_jaxpr(jvp, [False, False, True, True])
    check_jaxpr(known)
    transposed, _ = transpose_jaxpr(unknown, [False] * num_res + [True, True], [True] * len(unknown.out_avals))
    batched, _ = batch_jaxpr(transposed, 4, [0] * len(transposed.in_avals))
    again, _ = jvp_jaxpr(batched, [True] * len(batched.in_avals))
    check_jaxpr(again)
    args = [np.zeros(a.shape, a.dtype) for a in again.in_avals]
    assert [o.shape for o in run(again, *args)] == [a.shape for a in again.out_avals]


@each
def test_programs_under_every_interpreter(name):
    """`eval_jaxpr` is itself traceable: a program is a function like another."""
    f = jaxpr_as_fun(program(name))
    ys = np.stack([Y, Z])
    total = lambda f: lambda x, y: sum_(add(f(x, y)[0], f(x, y)[-1]))
    g, wanted = total(f), total(lambda x, y: FUNCTIONS[name](x, y))
    close(cj.grad(g, (0, 1))(X, Y), cj.grad(wanted, (0, 1))(X, Y))
    close([cj.vmap(g, (None, 0))(X, ys)], [cj.vmap(wanted, (None, 0))(X, ys)])
    close([cj.vmap(cj.grad(g), (None, 0))(X, ys)], [cj.vmap(cj.grad(wanted), (None, 0))(X, ys)])
    close([hessian(lambda x: g(x, Y))(X)], [hessian(lambda x: wanted(x, Y))(X)])
    assert str(cj.make_jaxpr(f)(X, Y)) == str(program(name))
    assert str(cj.make_jaxpr(cj.grad(g))(X, Y)) == str(cj.make_jaxpr(cj.grad(wanted))(X, Y))


def test_close_over_consts():
    closed = program("several")
    opened = close_over_consts(closed.jaxpr)
    assert opened.consts == [] and opened.in_avals == [VEC, VEC, VEC]
    close(run(opened, CONST, X, Y), several(X, Y))
    plain = stage_closed(lambda x: [sin(x)], [VEC])
    assert close_over_consts(plain.jaxpr).jaxpr is plain.jaxpr


def test_numbers_of_values_are_checked():
    closed = program("several")
    with pytest.raises(TypeError, match="1 constvars and 2 arguments was given 1 constants and 1 arguments"):
        cj.eval_jaxpr(closed.jaxpr, closed.consts, [X])
    with pytest.raises(ValueError, match="1 constvars was given 0 constants"):
        ClosedJaxpr(closed.jaxpr, [])
    with pytest.raises(ValueError, match="used_outputs has one item for each of 5 outputs, got 1"):
        dce_jaxpr(closed, [True])


def test_programs_are_evaluated_on_numpy_from_end_to_end():
    seen = []
    many = lambda x: [broadcast_p.bind(sum_(sin(mul(cos(x), 2.0))), shape=(2,), axes=(0,)) for _ in range(10)][-1:]
    closed = stage_closed(many, [VEC])
    original = cj.Array.__init__
    try:
        cj.Array.__init__ = lambda self, *args: seen.append(1) or original(self, *args)
        cj.eval_jaxpr(closed.jaxpr, closed.consts, [X])
    finally:
        cj.Array.__init__ = original
    assert len(closed.eqns) == 50 and len(seen) <= 2  # the argument and the result


def test_equations_on_other_operands():
    closed = close_over_consts(program("nested").jaxpr)
    consts = program("nested").consts
    x, y, *rest = [Var(VEC), Var(VEC), *(Var(a) for a in closed.in_avals[: len(consts)])]
    eqns, outs = inline_equations(closed, [*rest, x, y])
    again, others = inline_equations(closed, [*rest, y, x])
    bound = [v for eqn in (*eqns, *again) for v in eqn.outvars]
    assert len(set(bound)) == len(bound), "variables of their own each time"
    both = ClosedJaxpr(Jaxpr([], [*rest, x, y], [*eqns, *again], [*outs, *others]), [])
    got = run(both, *consts, X, Y)
    wanted = [*run(closed, *consts, X, Y), *run(closed, *consts, Y, X)]
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    two = Literal(np.float32(2), ShapedArray((), np.float32))
    doubled = stage_closed(lambda a, s: [mul(a, s), s], [VEC, ShapedArray((), np.float32)])
    eqns, outs = inline_equations(doubled, [x, two])
    assert outs[1] is two and eqns[0].invars == (x, two)


def test_equations_of_what_does_not_fit():
    with pytest.raises(ValueError, match=r"takes a program without consts, this one has 1"):
        inline_equations(program("several"), [Var(VEC), Var(VEC)])
    with pytest.raises(ValueError, match="zip"):
        inline_equations(stage_closed(lambda x: [x], [VEC]), [])


WIDE = X.astype(np.float64)
GIVEN = [
    (lambda p: jvp_jaxpr(p, [True]), r"jvp_jaxpr: nonzeros has one item for each of 2 arguments, got 1: \[True\]"),
    (lambda p: batch_jaxpr(p, 3, [0]), r"batch_jaxpr: dims_in has one item for each of 2 arguments, got 1: \[0\]"),
    (lambda p: partial_eval_jaxpr(p, [True] * 3), "partial_eval_jaxpr: unknowns has one item for each of 2 argum"),
    (lambda p: transpose_jaxpr(p, [True], [True]), "transpose_jaxpr: linear has one item for each of 2 arguments"),
    (lambda p: transpose_jaxpr(p, [True, False], []), "nonzero_cts has one item for each of 1 outputs, got 0"),
    (lambda p: eval_jaxpr_on_host(p, [X]), "eval_jaxpr_on_host: a program of 2 arguments was given 1"),
    (lambda p: eval_jaxpr_on_host(p, [X, Y, Z]), "eval_jaxpr_on_host: a program of 2 arguments was given 3"),
    (lambda p: eval_jaxpr_on_host(p, [WIDE, Y]), r"that takes \(f32\[3\], f32\[3\]\) was given \(f64\[3\], f32\[3\]\)"),
    (lambda p: inline_closed(p, [X, Y[:2]]), r"that takes \(f32\[3\], f32\[3\]\) was given \(f32\[3\], f32\[2\]\)"),
]


@pytest.mark.parametrize(("use", "message"), GIVEN)
def test_what_does_not_fit_a_program_is_told_by_name(use, message):
    """And not by a primitive of the program, whose rules are right."""
    with pytest.raises((TypeError, ValueError), match=message):
        use(stage_closed(lambda x, y: [add(mul(x, y), CONST)], [VEC, VEC]))


def test_what_a_rule_raises_for_values_that_fit_stays_what_it_is():
    with isolated_plugins():
        fails_p = Primitive("acme.fails", impl=lambda x: 1 / 0, abstract_eval=lambda x: x)
        closed = stage_closed(lambda x: [fails_p.bind(x)], [VEC])
        for run_it in (eval_jaxpr_on_host, inline_closed):
            with pytest.raises(ZeroDivisionError):
                run_it(closed, [X])
