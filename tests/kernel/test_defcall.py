"""`defcall`: a primitive that calls a program, declared in ten lines, against the function itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax.errors import DuplicateRegistrationError
from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    batch_jaxpr,
    close_over_consts,
    dce_jaxpr,
    defcall,
    fixpoint,
    flat_decomposition,
    get_aval,
    inline_closed,
    inlining,
    jvp_jaxpr,
    jvp_rules,
    partial_eval_jaxpr,
    primitives,
    registries,
    spread_list,
    stage,
    stage_closed,
    transpose_jaxpr,
)
from corejax.extend.programs import CallChange, check_jaxpr, dce_rules, recompute_rules, select_list
from tests.kernel.toys import add, cos, mul, print_p, printed, sin, sum_

F = np.float32
X = np.array([0.5, 1.0, -2.0], F)
Y = np.array([1.0, -1.0, 3.0], F)
M = np.stack([X, Y])
VEC = ShapedArray((3,), F)

# -- an author's ten lines -------------------------------------------------------------------------------------------

call_p = Primitive("defcall.call", multiple_results=True, tags=("higher_order",), decomposition=inlining("jaxpr"))
defcall(call_p)


def call(fun: Any, primitive: Primitive = call_p, **params: Any) -> Any:
    def called(*args: Any) -> Any:
        jaxpr, consts = stage(lambda *values: list(fun(*values)), [get_aval(x) for x in args])
        return primitive.bind(*consts, *args, jaxpr=close_over_consts(jaxpr), **params)

    return called


@pytest.fixture
def made() -> Iterator[Any]:
    """Makes primitives that are gone after the test."""
    names: list[str] = []

    def make(**more: Any) -> Primitive:
        names.append(f"defcall.made{len(names)}")
        return Primitive(names[-1], multiple_results=True, tags=("higher_order",), **more)

    yield make
    for name in names:
        p = primitives.pop(name)
        for registry in registries.values():
            if registry.rule_of(p) is not None:
                registry.unregister(p)
        dce_rules.pop(p, None)
        recompute_rules.pop(p, None)


def body(x: Any, y: Any) -> Any:
    return mul(sin(x), y), x, cos(y), 2.0


def same(got: Any, wanted: Any) -> None:
    leaves = cj.tree_util.tree_leaves
    for a, b in zip(leaves(got), leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


def names(closed: Any) -> list[str]:
    return [e.primitive.name.removeprefix("toy.") for e in closed.eqns]


# -- every transformation --------------------------------------------------------------------------------------------


def loss(fun: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        a, b, c, d = fun(x, y)
        return sum_(mul(add(a, mul(b, c)), d), (0,))

    return f


WAYS: dict[str, Any] = {
    "eager": lambda f: f(X, Y),
    "jvp": lambda f: cj.jvp(f, (X, Y), (Y, X)),
    "jvp in one": lambda f: cj.jvp(lambda x: f(x, Y), (X,), (Y,)),
    "vmap": lambda f: cj.vmap(f)(M, M),
    "vmap of one": lambda f: cj.vmap(f, (None, 0))(X, M),
    "linearize": lambda f: cj.linearize(f, X, Y)[1](Y, X),
    "grad": lambda f: cj.grad(loss(f), (0, 1))(X, Y),
    "grad of vmap": lambda f: cj.grad(lambda x, y: sum_(cj.vmap(loss(f))(x, y), (0,)), (0, 1))(M, M),
    "vmap of grad": lambda f: cj.vmap(cj.grad(loss(f), 1), (0, None))(M, Y),
    "jvp of grad": lambda f: cj.jvp(cj.grad(loss(f)), (X, Y), (Y, X)),
    "grad of jvp": lambda f: cj.grad(lambda x: cj.jvp(loss(f), (x, Y), (Y, X))[1])(X),
    "in a program": lambda f: inline_closed(stage_closed(lambda x, y: list(f(x, y)), [VEC, VEC]), [X, Y]),
}
NESTS: dict[str, Any] = {
    "once": lambda: call(body),
    "in itself": lambda: call(lambda x, y: call(body)(mul(x, y), y)),
    "over a value": lambda: lambda x, y: call(lambda z: body(z, y))(x),
}
PLAIN: dict[str, Any] = {
    "once": body,
    "in itself": lambda x, y: body(mul(x, y), y),
    "over a value": body,
}


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("way", WAYS)
def test_against_the_function_itself(way: str, nest: str) -> None:
    called, plain = NESTS[nest](), PLAIN[nest]
    same(WAYS[way](called), WAYS[way](lambda x, y: [add(o, 0.0) for o in plain(x, y)]))


@pytest.mark.usefixtures("toys")
def test_programs_of_programs() -> None:
    closed = stage_closed(lambda x, y: list(call(lambda x, y: call(body)(x, mul(y, y)))(x, y)), [VEC, VEC])
    pushed, _ = jvp_jaxpr(closed, [True, False])
    batched, _ = batch_jaxpr(pushed, 2, [0, None, 0])
    known, unknown, unknowns_out, count = partial_eval_jaxpr(pushed, [False, False, True])
    for program in (closed, pushed, batched, known, unknown):
        check_jaxpr(program)
        assert set(names(program)) == {"defcall.call"}  # a call stays a call
    first = inline_closed(known, [X, Y])
    second = inline_closed(unknown, [*first[len(first) - count :], Y])
    whole = inline_closed(pushed, [X, Y, Y])
    same([*first[: len(first) - count]], [o for o, u in zip(whole, unknowns_out, strict=True) if not u])
    same(second, [o for o, u in zip(whole, unknowns_out, strict=True) if u])
    pulled, nonzeros = transpose_jaxpr(unknown, [False] * count + [True], [True] * len(second))
    assert nonzeros == [True] and set(names(pulled)) <= {"defcall.call", "add", "add_any", "broadcast"}
    smaller, used = dce_jaxpr(closed, [False, False, True, False])
    assert used == [False, True] and names(smaller) == ["defcall.call"]
    assert smaller.eqns[0].params["jaxpr"].in_avals == [VEC]


@pytest.mark.usefixtures("toys")
def test_zero_tangents_stay_out_of_the_program() -> None:
    jvp = cj.make_jaxpr(lambda x, y, t: cj.jvp(lambda x: call(body)(x, y), (x,), (t,)))(X, Y, Y)
    (eqn,) = [e for e in jvp.eqns if e.primitive is call_p]
    assert (len(eqn.invars), len(eqn.outvars)) == (3, 6)  # tangents of sin(x) * y and of x alone


@pytest.mark.usefixtures("toys")
def test_residuals_that_are_operands_do_not_go_through_the_call() -> None:
    closed = stage_closed(lambda x, y: call(lambda x, y: [mul(x, y)])(x, y), [VEC, VEC])
    known, unknown, _, count = partial_eval_jaxpr(closed, [False, True])
    assert names(known) == [] and names(unknown) == ["defcall.call"] and count == 1
    closed = stage_closed(lambda x, y: call(lambda x, y: [a := sin(x), mul(a, y), mul(cos(x), y)])(x, y), [VEC, VEC])
    known, unknown, _, count = partial_eval_jaxpr(closed, [False, True])
    assert count == 2 and len(known.eqns[0].outvars) == 2  # sin(x) is a result and a residual


@pytest.mark.usefixtures("toys")
def test_effects_happen_once_and_are_kept() -> None:
    def loud(x: Any, y: Any) -> Any:
        print_p.bind(x)
        return [mul(sin(x), y)]

    printed.clear()
    same(cj.grad(lambda x: sum_(call(loud)(x, Y)[0], (0,)))(X), np.cos(X) * Y)
    assert len(printed) == 1
    printed.clear()
    cj.linearize(lambda y: call(loud)(X, y)[0], Y)  # its known half has nothing else to do
    assert len(printed) == 1
    closed = stage_closed(lambda x: call(lambda x: (print_p.bind(x), [])[1])(x), [VEC])
    smaller, _ = dce_jaxpr(closed, [])
    known, unknown, _, _ = partial_eval_jaxpr(closed, [False])
    assert [len(p.eqns) for p in (smaller, known, unknown)] == [1, 1, 0]


@pytest.mark.usefixtures("toys")
def test_no_results_and_no_operands() -> None:
    assert call(lambda x: [])(X) == []
    assert cj.vmap(call(lambda x: []))(M) == []
    assert cj.jvp(call(lambda x: []), (X,), (X,)) == ([], [])
    same(call(lambda: [sin(X)])(), [np.sin(X)])


def test_in_loops_and_compiled() -> None:
    pytest.importorskip("corejax_xla_backend")
    import corejax.numpy as jnp
    from corejax import lax

    def inner(c: Any, x: Any) -> Any:
        return jnp.sin(c) * x, c * x

    def looped(fun: Any) -> Any:
        return lambda c, xs: lax.scan(lambda c, x: tuple(fun(c, x)), c, xs)

    def total(fun: Any) -> Any:
        return lambda c, xs: jnp.sum(looped(fun)(c, xs)[0]) + jnp.sum(looped(fun)(c, xs)[1])

    xs = np.stack([X, Y, X * Y])

    def slopes(fun: Any) -> Any:
        return cj.grad(lambda c: jnp.sum(cj.vmap(total(fun), (0, None))(c, xs)))

    wanted = slopes(inner)(M)
    for around in (lambda f: f, cj.checkpoint, cj.jit):
        same(cj.jit(slopes(around(call(inner))))(M), wanted)
    text = cj.jit(call(inner)).lower(X, Y).as_text()
    assert "call @defcall_call(" in text and "func.func private @defcall_call(" in text


def test_policies_of_checkpoint_reach_into_it() -> None:
    pytest.importorskip("corejax_control_flow")
    import corejax.numpy as jnp

    def inner(x: Any) -> Any:
        return [jnp.sin(jnp.sin(x) @ x)]

    policy = cj.checkpoint_policies.dots_saveable
    f = cj.checkpoint(lambda x: call(inner)(x)[0] * 2, policy=policy)
    same(cj.grad(f)(X), cj.grad(lambda x: inner(x)[0] * 2)(X))
    _, saved = cj.vjp(f, X)[0], cj.make_jaxpr(lambda x: cj.linearize(f, x)[1](x))(X)
    assert str(saved).count("dot_general") == 3, saved  # one forward, two for the derivatives: none again


def test_transposed_where_it_is_linear() -> None:
    pytest.importorskip("corejax_lax_basic")
    import corejax.numpy as jnp

    f = lambda x: call(lambda x: [jnp.cumsum(x) * 2.0, x[:2]])(x)
    got = cj.linear_transpose(f, X)([Y, Y[:2]])
    same(got, cj.linear_transpose(lambda x: [jnp.cumsum(x) * 2.0, x[:2]], X)([Y, Y[:2]]))


# -- where declarations differ ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("toys")
def test_update_follows_the_operands(made: Any) -> None:
    kinds: list[str] = []

    def update(change: CallChange, params: dict[str, Any]) -> dict[str, Any]:
        assert isinstance(change.program, ClosedJaxpr) and len(change.operands) == len(change.program.in_avals)
        kinds.append(change.kind)
        kept = tuple(i is not None and params["kept"][i] for i in change.operands)
        return {"kept": kept}

    p = made()
    defcall(p, update=update)
    f = call(lambda x, y: [mul(sin(x), y), cos(y)], p, kept=(True, False))

    def kept(fun: Any, *args: Any) -> list[Any]:
        return [e.params["kept"] for e in cj.make_jaxpr(fun)(*args).eqns if e.primitive is p]

    assert kept(lambda x, y, t: cj.jvp(lambda x: f(x, y), (x,), (t,)), X, Y, X) == [(True, False, True)]
    assert kept(cj.vmap(f), M, M) == [(True, False)]
    assert kept(cj.grad(lambda x, y: sum_(f(x, y)[0], (0,))), X, Y) == [(True, False), (False, False, False)]
    assert kinds == ["jvp", "vmap", "jvp", "known", "unknown", "transpose"]
    closed = stage_closed(lambda x, y: f(x, y), [VEC, VEC])
    assert dce_jaxpr(closed, [False, True])[0].eqns[0].params["kept"] == (False,)
    assert partial_eval_jaxpr(closed, [False, True])[1].eqns[0].params["kept"] == (False, False)


@pytest.mark.usefixtures("toys")
def test_inline_binds_the_equations(made: Any) -> None:
    p, q = made(), made()
    defcall(p, inline=True)
    defcall(q, inline=("known",))
    f = lambda x: sum_(call(lambda x: [sin(mul(x, x))], p)(x)[0], (0,))
    assert "defcall" not in str(cj.make_jaxpr(cj.grad(f))(X))
    g = lambda x: sum_(call(lambda x: [sin(mul(x, x))], q)(x)[0], (0,))
    found = names(cj.make_jaxpr(lambda x, t: cj.linearize(g, x)[1](t))(X, Y))
    assert q.name in found and "sin" in found
    same(cj.grad(f)(X), 2 * X * np.cos(X * X))
    same(cj.grad(g)(X), 2 * X * np.cos(X * X))


@pytest.mark.usefixtures("toys")
def test_rules_of_ones_own(made: Any) -> None:
    p = made()
    defcall(p, without=("jvp", "dce", "recompute"))
    assert p not in dce_rules and p not in recompute_rules
    with pytest.raises(cj.errors.MissingRuleError):
        cj.jvp(call(lambda x: [x], p), (X,), (X,))

    @jvp_rules.register(p)
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        return p.bind(*primals, **params), [mul(tangents[0], 2.0)]

    same(cj.jvp(call(lambda x: [x], p), (X,), (X,)), ([X], [X * 2]))
    with pytest.raises(DuplicateRegistrationError, match=r"has a vmap rule from .*test_defcall.py"):
        defcall(p, rules="vmap")


def test_provenance_is_the_authors_line(made: Any) -> None:
    p = made()
    defcall(p)
    rules = [r.rule_of(p) for r in registries.values() if r.rule_of(p) is not None and r.kind != "host_callback"]
    places = {(rule.provenance.module, rule.provenance.file) for rule in rules if rule.derived is None}
    assert places == {(__name__, __file__)} and len(rules) >= 8
    from click.testing import CliRunner

    show = pytest.importorskip("corejax_explain.show").show
    text = CliRunner().invoke(show, [p.name]).output
    assert re.search(r"jvp +own +module .*test_defcall.py:\d+ \(by defcall, symbolic_zeros=True\)", text), text
    assert "*operands, *, jaxpr" in text or "*operands, jaxpr" in text


# -- mistakes --------------------------------------------------------------------------------------------------------


def test_a_primitive_that_cannot_be_one(made: Any) -> None:
    with pytest.raises(TypeError, match=r"defcall of 'toy.sin': .* multiple_results=True and tags="):
        defcall(primitives["toy.sin"])
    p = made()
    for wrong in (3, "", "the jaxpr"):
        with pytest.raises(TypeError, match=r"defcall of .*: param is the name of the parameter with the program"):
            defcall(p, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"rules has 'jpv'; there are impl, abstract_eval, jvp"):
        defcall(p, rules=("jpv",))
    with pytest.raises(ValueError, match=r"inline has 'impl'; there are jvp"):
        defcall(p, inline=("impl",))
    assert jvp_rules.rule_of(p) is None


@pytest.mark.usefixtures("toys")
def test_a_program_that_is_not_there(made: Any) -> None:
    p = made()
    defcall(p, "program")
    closed = stage_closed(lambda x: [sin(x)], [VEC])
    missing = (
        r"its defcall, in .*test_defcall.py:\d+\), declares that the parameter 'program' holds a program "
        r"\(a ClosedJaxpr\): there is no such parameter, only 'jaxpr'"
    )
    for run in (
        lambda: p.bind(X, jaxpr=closed),
        lambda: cj.make_jaxpr(lambda x: p.bind(x, jaxpr=closed))(X),
        lambda: cj.vmap(lambda x: p.bind(x, jaxpr=closed))(M),
        lambda: cj.jvp(lambda x: p.bind(x, jaxpr=closed), (X,), (X,)),
    ):
        with pytest.raises(TypeError, match=missing):
            run()
    with pytest.raises(TypeError, match="it is of type Jaxpr"):
        p.bind(X, program=closed.jaxpr)


@pytest.mark.usefixtures("toys")
def test_operands_that_do_not_fit() -> None:
    closed = stage_closed(lambda x: [sin(x)], [VEC])
    with pytest.raises(TypeError, match=r"defcall.call takes 1 operands, got 2"):
        cj.make_jaxpr(lambda x: call_p.bind(x, x, jaxpr=closed))(X)
    with pytest.raises(TypeError, match=r"of 'f': operand 0 has type f32\[2,3\], the program takes f32\[3\]"):
        cj.make_jaxpr(lambda x: call_p.bind(x, jaxpr=closed, name="f"))(M)


# -- decomposition, fixpoint, lists ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("toys")
def test_inlining_is_for_other_interpreters() -> None:
    body = flat_decomposition(call_p)
    assert body is not None
    same(body(X, jaxpr=stage_closed(lambda x: [sin(x), x], [VEC])), [np.sin(X), X])


def test_fixpoint() -> None:
    seen = []

    def step(flags: list[bool]) -> Any:
        seen.append(flags)
        return [flags[-1], *flags[:-1]], len(seen)

    assert fixpoint(step, [False, True, False]) == ([True, True, True], 3)
    assert seen == [[False, True, False], [False, True, True], [True, True, True]]
    assert fixpoint(lambda flags: ([False] * 2, "made"), [True, False]) == ([True, False], "made")  # none is taken back
    assert fixpoint(lambda flags: ([], None), []) == ([], None)
    with pytest.raises(ValueError, match="zip"):
        fixpoint(lambda flags: ([True], None), [True, False])
    with pytest.raises(ValueError, match="after 2 rounds for 1 items they still change, to"):
        fixpoint(lambda n: (n, None), [1], lambda a, b: a + b)
    assert fixpoint(lambda xs: (["b", "b"], None), ["a", "b"], max) == (["b", "b"], None)


def test_select_and_spread() -> None:
    flags = [True, False, True]
    assert select_list(flags, "abc") == ["a", "c"]
    assert spread_list(flags, ["a", "c"]) == ["a", None, "c"]
    with pytest.raises(ValueError, match="3 flags, 2 of them set"):
        spread_list(flags, ["a"])
    with pytest.raises(ValueError, match="zip"):
        select_list(flags, "ab")
