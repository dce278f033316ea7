"""`cond` and `switch`: jaxprs, values, rules one by one, bad input. `test_nestings` has the combinations."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.extend import Primitive, ShapedArray, partial_eval_jaxpr
from corejax.extend.messages import DerivedRuleWarning
from corejax.extend.programs import check_jaxpr, dce, subjaxprs
from corejax.tree_util import tree_map

F = np.float32


def jaxpr(fun, *args):
    closed = corejax.make_jaxpr(fun)(*args)
    check_jaxpr(closed)
    return closed


def primitives_in(program):
    for eqn in program.eqns:
        yield eqn.primitive.name
        for sub in subjaxprs(eqn.params):
            yield from primitives_in(sub)


# -- the seeds' examples, in today's notation ----------------------------------------------------------------


def test_switch_of_the_seeds():
    def one_of_three(index, arg):
        return lax.switch(index, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], arg)

    assert str(jaxpr(one_of_three, 1, 5.0)) == dedent("""\
        { lambda ; a:~i32[] b:~f32[]. let
            c:i32[] = convert_element_type[
              new_dtype=int32
              weak_type=False
            ] a
            d:i32[] = clamp 0:i32[] c 2:i32[]
            e:~f32[] = cond[
              branches=(
                { lambda ; a:~f32[]. let
                    b:~f32[] = add a 1.0:~f32[]
                  in (b,) }
                { lambda ; a:~f32[]. let
                    b:~f32[] = sub a 2.0:~f32[]
                  in (b,) }
                { lambda ; a:~f32[]. let
                    b:~f32[] = add a 3.0:~f32[]
                  in (b,) }
              )
              linear=(False,)
            ] d b
          in (e,) }""")


def test_cond_of_five_arguments_of_the_seeds():
    def func7(arg):
        return lax.cond(arg >= 0.0, arg, lambda xtrue: xtrue + 3.0, arg, lambda xfalse: xfalse - 3.0)

    assert str(jaxpr(func7, 5.0)) == dedent("""\
        { lambda ; a:~f32[]. let
            b:bool[] = ge a 0.0:~f32[]
            c:i32[] = convert_element_type[
              new_dtype=int32
              weak_type=False
            ] b
            d:~f32[] = cond[
              branches=(
                { lambda ; a:~f32[] b:~f32[]. let
                    c:~f32[] = sub b 3.0:~f32[]
                  in (c,) }
                { lambda ; a:~f32[] b:~f32[]. let
                    c:~f32[] = add a 3.0:~f32[]
                  in (c,) }
              )
              linear=(False, False)
            ] c a a
          in (d,) }""")
    assert (func7(5.0), func7(-5.0)) == (8.0, -8.0)


def test_cond_with_a_constant_of_the_seeds():
    ones = np.ones(1, F)

    def func8(arg1, arg2):  # arg2 is a pair
        return lax.cond(arg1 >= 0.0, arg2, lambda xtrue: xtrue[0], arg2, lambda xfalse: ones + xfalse[1])

    closed = jaxpr(func8, 5.0, (np.zeros(1, F), 2.0))
    assert len(closed.consts) == 1
    cond = closed.eqns[-1]
    arg2, (const,) = closed.jaxpr.invars[1:], closed.jaxpr.constvars
    assert cond.invars[1:] == (const, *arg2, *arg2)  # the index, the constant, both functions' operands
    assert cond.params["linear"] == (False,) * 5
    assert "in (b,) }" in str(cond.params["branches"][1])
    assert func8(5.0, (np.zeros(1, F), 2.0)).tolist() == [0.0]
    assert func8(-5.0, (np.zeros(1, F), 2.0)).tolist() == [3.0]


# -- calling -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [True, 3, 0.5, np.bool_(True), np.float32("nan"), np.array(1)])
def test_true_predicates(pred):
    assert lax.cond(pred, lambda: 1, lambda: 2) == 1


@pytest.mark.parametrize("pred", [False, 0, -0.0, np.uint8(0), np.array(False)])
@pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit])
def test_false_predicates(pred, wrap):
    assert wrap(lambda p: lax.cond(p, lambda: 1, lambda: 2))(pred) == 2


@pytest.mark.parametrize("index, chosen", [(-7, 0), (0, 0), (1, 1), (2, 2), (9, 2), (np.uint8(1), 1)])
@pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit, lambda f: lambda i: corejax.vmap(f)(i[None])[0]])
def test_switch_clamps(index, chosen, wrap):
    branches = [lambda: 0, lambda: 1, lambda: 2]
    assert wrap(lambda i: lax.switch(i, branches))(np.asarray(index)) == chosen


def test_switch_clamps_before_it_narrows_the_index():
    for index, chosen in ((2**40, 1), (-(2**40), 0)):
        assert corejax.jit(lambda i: lax.switch(i, [lambda: 0, lambda: 1]))(np.int64(index)) == chosen
    assert corejax.jit(lambda i: lax.switch(i, [lambda: 0, lambda: 1]))(np.uint32(2**32 - 1)) == 1


def test_forms():
    assert lax.cond(False, lambda x: x, lambda x: x * 2, operand=3) == 6
    assert lax.cond(True, lambda x: 1.0 if x is None else 2.0, lambda x: 3.0, operand=None) == 1.0
    assert lax.cond(False, true_fun=lambda x: x, false_fun=lambda x: -x, operand=3) == -3
    assert lax.cond(False, true_operand=1, true_fun=lambda x: x, false_operand=5, false_fun=lambda x: x) == 5
    assert lax.cond(True, 1, lambda x: x + 1, (5, 6), lambda x: x[0] + x[1]) == 2
    assert lax.cond(False, lambda a, b, c: a + b + c, lambda a, b, c: a * b * c, 2, 3, 4) == 24
    assert lax.switch(1, [lambda x: x, lambda x: -x], operand=3) == -3
    for call in (lambda: lax.cond(True, abs, abs, 1, operand=2), lambda: lax.switch(0, [abs], 1, operand=2)):
        assert "by position or as `operand`, not both" in message(TypeError, call)


def test_a_function_that_is_several_branches_is_traced_once():
    traced = []

    def f(x):
        traced.append(x)
        return x * 2

    def g(x):
        return x + len(traced)

    out = corejax.jit(lambda i, x: lax.switch(i, [f, g, f, f], x) + lax.cond(i > 0, f, f, x))(2, 3.0)
    assert float(out) == 12.0 and len(traced) == 2


def test_one_branch_is_called():
    closed = jaxpr(lambda i, x: lax.switch(i, [lambda y: lax.sin(y)], x), 4, 1.0)
    assert list(primitives_in(closed))[-1] == "sin"


def test_predicate_known_to_python_is_not_specialised():
    closed = jaxpr(lambda x: lax.cond(True, lambda y: y + 1.0, lambda y: y - 1.0, x), 1.0)
    (eqn,) = closed.eqns
    assert eqn.primitive.name == "cond" and eqn.invars[0].val == 1


def test_only_the_chosen_branch_runs_eagerly():
    ran = []
    note_p = Primitive(
        "tests.cond.note", impl=lambda x, which: ran.append(which) or x, abstract_eval=lambda x, which: x
    )
    lax.cond(False, lambda x: note_p.bind(x, which="true"), lambda x: note_p.bind(x, which="false"), 1.0)
    assert ran == ["false"]


def test_pytrees_and_weak_types():
    out = lax.cond(
        True,
        lambda t: {"a": t["b"], "c": (1.0, None)},
        lambda t: {"a": t["b"] * 2, "c": (t["b"], None)},
        {"b": F(3)},
    )
    assert tree_map(float, out) == {"a": 3.0, "c": (1.0, None)}
    assert not out["c"][0].weak_type  # one branch gives a strong type
    assert lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type
    promoted = lax.cond(True, lambda: 1, lambda: F(2.5))  # a Python scalar takes the other branch's dtype
    assert promoted.dtype == F and not promoted.weak_type
    assert corejax.jit(lambda p: lax.cond(p, lambda: 1, lambda: F(2.5)))(True).dtype == F


def test_no_results():
    assert lax.cond(True, lambda x: None, lambda x: None, 1.0) is None
    assert corejax.jit(lambda x: (lax.cond(x > 0, lambda: (), lambda: ()), x))(2.0) == ((), 2.0)


def test_closures_over_arrays_and_tracers():
    table = corejax.device_put(np.arange(3, dtype=F))

    def f(x):
        y = lax.sin(x)
        return lax.cond(x > 0, lambda: y * table, lambda: table - y)

    closed = jaxpr(f, 1.0)
    assert len(closed.consts) == 1
    assert len(closed.eqns[-1].invars) == 3  # the index, sin x and the table, each once
    for x in (0.7, -0.7):
        want = np.sin(x) * np.arange(3) if x > 0 else np.arange(3) - np.sin(x)
        np.testing.assert_allclose(f(x), want, rtol=1e-6)
        np.testing.assert_allclose(corejax.jit(f)(x), want, rtol=1e-6)
        slope = np.cos(x) * (np.arange(3) if x > 0 else -np.ones(3))
        np.testing.assert_allclose(corejax.jacrev(f)(x), slope, rtol=1e-6)
        np.testing.assert_allclose(corejax.jacfwd(f)(x), slope, rtol=1e-6)


# -- rules ---------------------------------------------------------------------------------------------------


def two_ways(x, y):
    return lax.cond(x[0] > 0, lambda a, b: a * lax.sin(b), lambda a, b: a + b, x, y)


def test_batched_operands_keep_the_cond():
    f = lambda p, x: lax.cond(p, lambda a: (a * 2.0, a, 1.0), lambda a: (a + 1.0, a, 2.0), x)
    x = np.arange(6, dtype=F).reshape(3, 2)
    closed = jaxpr(corejax.vmap(f, in_axes=(None, 0)), True, x)
    assert {"cond"} <= set(primitives_in(closed)) and "select_n" not in set(primitives_in(closed))
    cond = next(e for e in closed.eqns if e.primitive.name == "cond")
    assert [v.aval.shape for v in cond.outvars] == [(3, 2), (3, 2), ()]
    for axis in (0, 1):
        out = corejax.vmap(f, in_axes=(None, axis), out_axes=(axis, axis, None))(False, x)
        np.testing.assert_array_equal(out[0], x + 1)


def test_batched_predicate_selects_only_where_branches_differ():
    f = lambda p, x: lax.cond(p, lambda a: (a * 2.0, a, 1.0), lambda a: (a + 1.0, a, 2.0), x)
    preds, x = np.array([True, False, True]), np.arange(2, dtype=F)
    closed = jaxpr(corejax.vmap(f, in_axes=(0, None), out_axes=(0, None, 0)), preds, x)
    names = list(primitives_in(closed))
    assert "cond" not in names and names.count("select_n") == 2
    doubled, same, number = corejax.vmap(f, in_axes=(0, None), out_axes=(0, None, 0))(preds, x)
    np.testing.assert_array_equal(doubled, np.where(preds[:, None], x * 2, x + 1))
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(number, np.where(preds, 1.0, 2.0))


@pytest.mark.parametrize("in_axes", [(0, 0), (0, 1), (0, None), (None, 1)])
@pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit])
def test_batched_switch(in_axes, wrap):
    f = lambda i, x: lax.switch(i, [lambda a: a * a, lambda a: -a, lambda a: a + a[0]], x)
    index = np.array([2, 0, 1]) if in_axes[0] == 0 else 1
    x = np.arange(9, dtype=F).reshape(3, 3)[: 3 if in_axes[1] is not None else 1]
    x = x if in_axes[1] is not None else x[0]
    got = wrap(corejax.vmap(f, in_axes=in_axes))(index, x)
    pick = lambda a, axis, i: a if axis is None else np.take(a, i, axis)
    want = [f(pick(index, in_axes[0], i), pick(x, in_axes[1], i)) for i in range(3)]
    np.testing.assert_array_equal(got, np.stack([np.asarray(w) for w in want]))


def test_effects_do_not_become_a_select():
    same = lambda x: x
    shout_p = Primitive(
        "tests.cond.shout",
        effects=("shout",),
        impl=same,
        abstract_eval=same,
        vmap=lambda size, vals, dims: (vals[0], dims[0]),
    )
    f = lambda p, x: lax.cond(p, lambda a: shout_p.bind(a), lambda a: a, x)
    assert corejax.vmap(f, in_axes=(None, 0))(True, np.ones(2, F)).tolist() == [1.0, 1.0]
    with pytest.raises(NotImplementedError, match=r"has effects \(shout\)"):
        corejax.vmap(f)(np.array([True, False]), np.ones(2, F))


def test_known_index_leaves_known_outputs_known():
    f = lambda p, x, y: lax.cond(p, lambda a, b: (lax.exp(a), a * b), lambda a, b: (a, lax.cos(a) * b), x, y)
    closed = jaxpr(f, True, F(1), F(2))
    known, unknown, unknowns_out, _ = partial_eval_jaxpr(closed, [False, False, True])
    assert unknowns_out == [False, True]
    assert "exp" in list(primitives_in(known)) and "exp" not in list(primitives_in(unknown))
    check_jaxpr(known)
    check_jaxpr(unknown)


def test_unknown_index_leaves_everything_unknown():
    f = lambda p, x: (lax.cond(p, lambda a: lax.exp(a), lambda a: a, x), x)
    closed = jaxpr(f, True, F(1))
    known, _, unknowns_out, _ = partial_eval_jaxpr(closed, [True, False])
    assert unknowns_out == [True, False] and not known.eqns


def test_unknown_index_while_tracing():
    from corejax.interpreters.partial_eval import partial_eval_flat

    f = lambda i, x: [lax.switch(i, [lambda: lax.exp(x), lambda: x]), x * 2.0]
    rest, residuals, known, unknowns_out = partial_eval_flat(f, [None, F(3)], [ShapedArray((), np.int32), None])
    assert unknowns_out == [True, False] and known[1] == 6.0
    assert len(residuals) == 0 and list(primitives_in(rest))[-2:] == ["cond", "exp"]


def test_transposition_where_no_branch_uses_the_operand():
    f = lambda x: x + lax.cond(True, lambda y: 0.0, lambda y: 0.0, x)
    assert corejax.linear_transpose(f, F(1))(F(2)) == (2.0,)


def test_residuals_of_branches_share_slots_and_operands_are_not_copied():
    f = lambda p, w, x: lax.cond(p, lambda: lax.sin(x) * w, lambda: lax.exp(x) * w)
    closed = jaxpr(f, True, np.ones(3, F), np.ones(3, F))
    known, *_ = partial_eval_jaxpr(closed, [False, True, False])
    (eqn,) = [e for e in known.eqns if e.primitive.name == "cond"]
    assert len(eqn.outvars) == 1  # sin x or exp x, in one slot
    f = lambda p, w, x: lax.cond(p, lambda: x * w, lambda: x + w)
    closed = jaxpr(f, True, np.ones(3, F), np.ones(3, F))
    known, *_ = partial_eval_jaxpr(closed, [False, True, False])
    assert "cond" not in list(primitives_in(known))  # x itself is the residual


def test_gradient_where_only_one_branch_depends_on_an_operand():
    f = lambda p, x, y: lax.cond(p, lambda: x * 3.0, lambda: y * y)
    assert [float(g) for g in corejax.grad(f, argnums=(1, 2))(True, 2.0, 5.0)] == [3.0, 0.0]
    assert [float(g) for g in corejax.grad(f, argnums=(1, 2))(False, 2.0, 5.0)] == [0.0, 10.0]


def test_integers_have_no_tangents():
    f = lambda n, x: lax.cond(x > 0, lambda: (n + 1, x * 2.0), lambda: (n, x))
    (n, y), (n_dot, y_dot) = corejax.jvp(lambda x: f(3, x), (1.5,), (1.0,))
    assert (n, y, y_dot) == (4, 3.0, 2.0) and n_dot.dtype == [("float0", np.void, 0)]


def test_dead_code():
    def f(x, y):
        return lax.cond(x > 0, lambda: (lax.sin(x), lax.exp(y)), lambda: (x, y))[0]

    smaller = dce(jaxpr(f, 1.0, 2.0).jaxpr)
    check_jaxpr(smaller)
    assert "exp" not in list(primitives_in(smaller)) and "sin" in list(primitives_in(smaller))
    cond = smaller.eqns[-1]
    assert len(cond.invars) == 2 and len(cond.outvars) == len(cond.params["linear"]) == 1
    assert "cond" not in list(primitives_in(dce(jaxpr(lambda x: (f(x, x), x)[1], 1.0).jaxpr)))


@pytest.mark.parametrize("x", [[0.5, 1.0], [-0.5, 1.0]])
def test_derivatives_against_differences(x):
    x, y = np.array(x, F), np.array([0.3, -0.8], F)
    f = lambda x: (two_ways(x, y) * y).sum()
    eps = 1e-2
    for i in range(2):
        step = np.zeros(2, F)
        step[i] = eps
        want = (np.asarray(f(x + step)) - np.asarray(f(x - step))) / (2 * eps)
        np.testing.assert_allclose(np.asarray(corejax.grad(f)(x))[i], want, rtol=1e-3, atol=1e-4)


def test_jaxprs_parse_back():
    from corejax.ir import parse_jaxpr

    closed = jaxpr(corejax.grad(lambda x: two_ways(x, x).sum()), np.ones(2, F))
    assert str(parse_jaxpr(str(closed))) == str(closed)


def test_reference_interpreter_agrees():
    jl = pytest.importorskip("corejax_xla_backend._jaxlib")
    f = lambda i, x: lax.switch(i, [lambda y: (y * 2.0, 1), lambda y: (lax.sin(y), 2), lambda y: (y, 3)], x)
    x = np.array([0.5, -2.0], F)
    text = corejax.jit(f).lower(np.int32(0), x).as_text(pretty=False)
    for i in (-1, 0, 1, 2, 5):
        got = jl.reference_eval(text, [np.int32(i), x])
        for a, b in zip(got, f(i, x), strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=1e-6)


# -- bad input -----------------------------------------------------------------------------------------------


def message(error, fun, *args):
    with pytest.raises(error) as caught:
        fun(*args)
    return str(caught.value)


def test_bad_predicates():
    text = message(TypeError, lambda: lax.cond(np.array([True, False]), lambda: 1, lambda: 2))
    assert "the predicate must be a scalar, got bool[2]" in text and "lax.select" in text
    assert "'yes' of type str" in message(TypeError, lambda: lax.cond("yes", lambda: 1, lambda: 2))
    assert "got complex64[]" in message(TypeError, lambda: lax.cond(1j, lambda: 1, lambda: 2))
    traced = lambda x: corejax.jit(lambda p: lax.cond(p, lambda: 1, lambda: 2))(x)
    assert "got bool[2]" in message(TypeError, traced, np.array([True, False]))


def test_bad_indices_and_branches():
    assert "an integer, got float32[]" in message(TypeError, lambda: lax.switch(1.0, [lambda: 1, lambda: 2]))
    assert "an integer, got bool[]" in message(TypeError, lambda: lax.switch(True, [lambda: 1, lambda: 2]))
    assert "scalar, got int64[1]" in message(TypeError, lambda: lax.switch(np.array([1]), [lambda: 1, lambda: 2]))
    assert "at least one branch" in message(ValueError, lambda: lax.switch(0, []))
    assert "branches[1] must be a function, got 5" in message(TypeError, lambda: lax.switch(0, [lambda: 1, 5]))
    assert "true_fun must be a function, got 1.0" in message(TypeError, lambda: lax.cond(True, 1.0, lambda: 2.0))
    assert "argument x is 'a' of type str" in message(TypeError, lambda: lax.cond(True, lambda x: 1, lambda x: 2, "a"))
    assert "returns 'a' of type str" in message(TypeError, lambda: lax.cond(True, lambda: "a", lambda: 2))


def test_branches_that_disagree_in_structure():
    def pair(x):
        return x, {"a": x}

    text = message(TypeError, lambda: lax.cond(True, pair, lambda x: x, F(1)))
    assert "the same pytree structure" in text
    assert "true_fun (pair at " in text and "returns (float32[], {'a': float32[]})" in text
    assert "false_fun (<lambda> at " in text and text.endswith("returns float32[]")


def test_branches_that_disagree_in_type():
    text = message(TypeError, lambda: lax.cond(True, lambda x: (x, {"a": x}), lambda x: (x, {"a": x[None]}), F(1)))
    assert "differ at [1]['a'], float32[] and float32[1]" in text
    text = message(TypeError, lambda: lax.switch(0, [lambda: F(1), lambda: 2, lambda: np.int32(3)]))
    assert "float32[] and int32[] (cast one of them: .astype('float32'))" in text
    assert "branches[0]" in text and "branches[2]" in text and "branches[1]" not in text


def test_errors_in_branches_pass_through():
    with pytest.raises(ZeroDivisionError):
        corejax.jit(lambda x: lax.cond(x > 0, lambda: 1 // 0, lambda: 2))(1.0)
    assert corejax.grad(lambda x: lax.cond(x > 0, lambda: x * x, lambda: x))(3.0) == 6.0


def test_ill_typed_equations_are_refused():
    from corejax.extend import stage_closed
    from corejax_control_flow.branches.cond_rules import cond_p

    i, f = ShapedArray((), np.int32), ShapedArray((), F)
    one, two = (stage_closed(lambda x, n=n: [x * 1.0] * n, [f]) for n in (1, 2))
    for error, index, operands, branches, linear in (
        ("the index must be int32", f, (f,), (one, one), (False,)),
        ("branch 0 takes operands", i, (i,), (one, one), (False,)),
        ("returns results of types", i, (f,), (one, two), (False,)),
        ("at least one branch", i, (f,), (), (False,)),
        ("`linear` has 2 flags for 1", i, (f,), (one, one), (False, False)),
    ):
        with pytest.raises(TypeError, match=error):
            cond_p.abstract((index, *operands), {"branches": branches, "linear": linear})


def test_branches_that_only_have_an_effect_run_when_compiled():
    seen = []
    note_p = Primitive(
        "tests.cond.note_without_results",
        multiple_results=True,
        effects=("tests.note",),
        impl=lambda x: seen.append(float(x)) or [],
        abstract_eval=lambda x: [],
    )

    @corejax.jit
    def f(p, x):
        lax.cond(p, lambda y: (note_p.bind(y), None)[1], lambda y: None, x)
        return x + 1.0

    with pytest.warns(DerivedRuleWarning):
        assert f(True, np.float32(2)) == 3.0
    assert f(False, np.float32(4)) == 5.0
    assert seen == [2.0]


def root(x, scale=1.0):
    return lax.cond(x < 0.5, lambda: x * 2.0, lambda: lax.sqrt(scale * (x - 1.0)) + 1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit])
def test_infinite_derivatives_of_a_branch_that_is_not_taken_do_not_count(wrap):
    xs, scale = np.array([0.0, 5.0], F), np.float32(1.0)
    batched = wrap(corejax.vmap(root, in_axes=(0, None)))
    total = lambda xs, scale: batched(xs, scale).sum()
    by_x, by_scale = wrap(corejax.grad(total, argnums=(0, 1)))(xs, scale)
    np.testing.assert_allclose(by_x, [2.0, 0.25])
    np.testing.assert_allclose(by_scale, 1.0)
    np.testing.assert_allclose(corejax.hessian(total)(xs, scale)[1], [0.0, -1 / 32])
    np.testing.assert_allclose(corejax.jvp(batched, (xs, scale), (xs, scale))[1], [0.0, 2.25])


def test_guards_of_branches_in_a_scan_and_in_nested_batches():
    xs = np.array([[0.0, 1.0], [5.0, 1.0]], F)

    def f(x):
        step = lambda y, _: (corejax.vmap(lambda y: lax.cond(y > 0.0, lax.sqrt, lambda y: y * 3.0, y))(y), None)
        return lax.scan(step, x, None, length=2)[0]

    got = corejax.grad(lambda xs: corejax.vmap(f)(xs).sum())(xs)
    np.testing.assert_allclose(got, [[9.0, 0.25], [0.25 * 5**-0.75, 0.25]], rtol=1e-6)


def test_a_guarded_branch_is_still_linear():
    preds = np.array([True, False])
    f = lambda t: corejax.vmap(lambda p, t: lax.cond(p, lambda t: 2.0 * t, lambda t: t * 3.0, t))(preds, t)
    np.testing.assert_array_equal(corejax.linear_transpose(f, np.ones(2, F))(np.ones(2, F))[0], [2.0, 3.0])


def test_arrays_that_all_elements_share_stay_one_operand():
    w, xs = np.ones((3, 3), F), np.ones((2, 3), F)
    f = corejax.vmap(lambda p, x: lax.cond(p, lambda: x @ w, lambda: x))
    shapes = [v.aval.shape for e in jaxpr(f, np.array([True, False]), xs).eqns for v in e.outvars]
    assert (2, 3, 3) not in shapes
