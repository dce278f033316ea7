"""Rules that give something else than they have to, met inside programs: told of the primitive whose rule it was."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Primitive, Var, partial_eval_rules
from corejax.extend.transforms import partial_eval_flat, trace_stack
from corejax_control_flow.programs.recomputation import RECOMPUTATION

X = np.array([0.5, 1.0, -2.0], np.float32)
XS = np.ones((4, 3), np.float32)
_numbers = itertools.count()


def name() -> str:
    """A new primitive's."""
    return f"acme.double{next(_numbers)}"


def double(**rules: Any) -> Primitive:
    given = {
        "impl": lambda x: 2 * x,
        "abstract_eval": lambda x: x.strip_weak_type(),
        "jvp": lambda primals, tangents: (2 * primals[0], 2 * tangents[0]),
        "vmap": lambda n, vals, dims: (p.bind(vals[0]), dims[0]),
        **rules,
    }
    p = Primitive(name(), **given)
    return p


def refused(call: Callable[[], Any], *words: str, error: type[BaseException] = TypeError) -> None:
    with pytest.raises(error) as info:
        call()
    text = "\n".join([str(info.value), *getattr(info.value, "__notes__", ())])
    for word in ("acme.double", "test_wrong_rules.py", *words):
        assert word in text, f"{word!r} is not in:\n{text}"
    for loop in ("'scan'", "'while'", "'cond'", "'remat'", "'checkpoint'"):
        assert loop not in text, text
    assert len(trace_stack()) == 1


def with_rule(f: Any) -> Any:
    f = corejax.custom_jvp(f)
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return f


# Where a program meets the primitive; each takes a function of a vector.
PLACES: dict[str, Callable[[Any], Any]] = {
    "stacked": lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, XS),
    "carried": lambda f: lax.scan(lambda c, x: (f(c), None), X, XS),
    "map": lambda f: lax.map(f, XS),
    "while": lambda f: lax.while_loop(lambda c: jnp.sum(c) < 5, f, np.ones(3, np.float32)),
    "condition": lambda f: lax.while_loop(lambda c: jnp.sum(f(c)) < 5, lambda c: c + 1, np.ones(3, np.float32)),
    "cond": lambda f: lax.cond(True, f, lambda x: x, X),
    "checkpoint": lambda f: corejax.checkpoint(f)(X),
    "vmapped scan": lambda f: corejax.vmap(lambda x: lax.scan(lambda c, y: (c, f(y)), 0.0, x))(np.stack([XS, XS])),
    "scan in scan": lambda f: lax.scan(lambda c, x: (c, lax.scan(lambda d, y: (f(d), y), x, XS)), 0.0, XS),
    "custom_jvp": lambda f: lax.map(with_rule(f), XS),
    "replayed": lambda f: corejax.extend.jaxpr_as_fun(corejax.make_jaxpr(f)(X))(X),
}
IMPLS = {
    "nothing": (lambda x: None, "None"),
    "another shape": (lambda x: x[..., :1], "float32["),
    "a scalar": (lambda x: np.float32(1), "float32[]"),
    "another dtype": (lambda x: x.astype(np.float64), "float64["),
    "integers": (lambda x: x.astype(np.int32), "int32["),
    "a number": (lambda x: 1.5, "1.5"),
    "a list": (lambda x: [x, x], "float32[2,"),
}


@pytest.mark.parametrize("given", IMPLS)
@pytest.mark.parametrize("place", PLACES)
def test_impl(place: str, given: str) -> None:
    impl, word = IMPLS[given]
    p = double(impl=impl)
    refused(lambda: PLACES[place](p.bind), "impl rule returned", word, "promises float32[")


def test_impl_of_several_results() -> None:
    for impl, word in [
        (lambda x: [x], "1 results"),
        (lambda x: x, "one value of type ndarray"),
        (lambda x: [x, None], "None"),
    ]:
        p = double(multiple_results=True, impl=impl, abstract_eval=lambda x: [x, x])
        refused(lambda p=p: lax.map(lambda x: p.bind(x)[0], XS), "impl rule returned", word)


def test_what_an_impl_may_give_all_the_same() -> None:
    half = Primitive(name(), impl=lambda x: float(x.sum()) / 2, abstract_eval=lambda x: x.update(shape=()))
    np.testing.assert_array_equal(lax.map(half.bind, XS), [1.5] * 4)
    sums = Primitive(name(), impl=np.sum, abstract_eval=lambda x: x.update(shape=()))
    np.testing.assert_array_equal(lax.scan(lambda c, x: (c + sums.bind(x), c), 0.0, XS)[1], [0, 3, 6, 9])


@pytest.mark.parametrize("place", PLACES)
def test_exceptions_name_the_primitive_in_the_program(place: str) -> None:
    class Mine(Exception):
        pass

    def impl(x: Any) -> Any:
        raise Mine("no")

    refused(lambda: PLACES[place](double(impl=impl).bind), "impl rule of primitive", error=Mine)


LOOPS = {
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0],
    "while": lambda f: lambda x: lax.while_loop(lambda c: c[1] < 2, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0],
    "cond": lambda f: lambda x: lax.cond(True, f, lambda y: y, x),
    "checkpoint": lambda f: corejax.checkpoint(f),
    "jit": lambda f: corejax.jit(f),
    "none": lambda f: f,
}
JVPS = {
    "result of another shape": (lambda p, t: (jnp.sum(p[0]), jnp.sum(t[0])), "f32[], but", "promises f32[3]"),
    "result of another dtype": (lambda p, t: (np.ones(3, np.int32), None), "i32[3], but", "promises f32[3]"),
    "tangent of another shape": (lambda p, t: (p[0], jnp.sum(t[0])), "f32[] as tangent", "f32[3]"),
}
VMAPS = {
    "said to be the same": (lambda n, v, d: (v[0] * 2, None), "f32[2,3], the same for every element", "f32[3] for"),
    "another element shape": (
        lambda n, v, d: (jnp.sum(v[0], 1 - d[0]), 0),
        "f32[2], batched along axis 0",
        "f32[3] for",
    ),
    "another dtype": (lambda n, v, d: (v[0] > 0, d[0]), "bool[2,3], batched", "f32[3] for"),
}


@pytest.mark.parametrize("given", JVPS)
@pytest.mark.parametrize("loop", LOOPS)
def test_jvp(loop: str, given: str) -> None:
    rule, *words = JVPS[given]
    f = LOOPS[loop](double(jvp=rule).bind)
    refused(lambda: corejax.jvp(f, (X,), (X,)), "JVP rule", *words)
    if loop != "while":
        refused(lambda: corejax.grad(lambda x: jnp.sum(f(x)))(X), "JVP rule", *words)


@pytest.mark.parametrize("given", VMAPS)
@pytest.mark.parametrize("loop", LOOPS)
def test_vmap(loop: str, given: str) -> None:
    rule, *words = VMAPS[given]
    f = LOOPS[loop](double(vmap=rule).bind)
    refused(lambda: corejax.vmap(f)(XS[:2]), "vmap rule", *words)
    refused(lambda: corejax.make_jaxpr(corejax.vmap(f))(XS[:2]), "vmap rule", *words)


def test_vmap_of_several_results() -> None:
    def pair(vmap: Any) -> Primitive:
        return double(multiple_results=True, impl=lambda x: [x, x], abstract_eval=lambda x: [x, x], vmap=vmap)

    p = pair(lambda n, v, d: ([v[0], v[0]], [d[0], None]))
    refused(lambda: corejax.vmap(p.bind)(XS), "vmap rule", "f32[4,3], the same for every element", "f32[3]")
    p = pair(lambda n, v, d: ([v[0]], [d[0]]))
    refused(lambda: corejax.vmap(p.bind)(XS), "vmap rule", "1 results, but", "2")


def test_a_result_that_is_the_same_for_every_element() -> None:
    size = Primitive(
        name(),
        impl=lambda x: np.int32(x.size),
        abstract_eval=lambda x: x.update(shape=(), dtype=np.int32),
        vmap=lambda n, vals, dims: (size.bind(jnp.sum(vals[0], dims[0])), None),
    )
    out = corejax.vmap(size.bind)(XS)
    np.testing.assert_array_equal(out, [3, 3, 3, 3])


@pytest.mark.parametrize("loop", LOOPS)
def test_tangents_of_integers(loop: str) -> None:
    rounded = double(
        impl=lambda x: x.astype(np.int32),
        abstract_eval=lambda x: x.update(dtype=np.int32),
        jvp=lambda p, t: (p[0].astype("int32"), t[0].astype("int32")),
    )
    f = LOOPS[loop](lambda x: rounded.bind(x) * 1.5)
    refused(lambda: corejax.jvp(f, (X,), (X,)), "JVP rule", "i32[3] as tangent", "return None")


# -- transposition -------------------------------------------------------------------------------------------


def scaled(**rules: Any) -> Primitive:
    """x * y, declared linear in x."""
    given = {
        "impl": lambda x, y: x * y,
        "abstract_eval": lambda x, y: x.strip_weak_type(),
        "linear_in": (0,),
        "transpose": lambda ct, x, y: [ct * y, None],
        **rules,
    }
    return Primitive(name(), **given)


def test_linear_in_is_enforced() -> None:
    p = scaled(jvp=lambda p_, t: (p.bind(*p_), p.bind(t[0], p_[1]) + p.bind(p_[0], t[1])))
    f = lambda y: jnp.sum(p.bind(X, y))
    np.testing.assert_array_equal(corejax.jvp(f, (X,), (X,))[1], np.sum(X * X))
    for call in (
        lambda: corejax.grad(f)(X),
        lambda: corejax.make_jaxpr(corejax.grad(f))(X),
        lambda: corejax.grad(lambda y: jnp.sum(LOOPS["scan"](lambda c: p.bind(X, c))(y)))(X),
        lambda: corejax.linear_transpose(lambda y: p.bind(X, y), X)(X),
    ):
        refused(call, "has to be linear is not", "operand 1", "linear in [0]", "linear_in")
    np.testing.assert_array_equal(corejax.linear_transpose(lambda x: p.bind(x, X), X)(X)[0], X * X)


def test_linear_in_of_a_decomposition_is_not_in_the_way() -> None:
    p = Primitive(name(), linear_in=(0,), decomposition=lambda x, y: x * y)
    np.testing.assert_array_equal(corejax.linear_transpose(lambda y: p.bind(X, y), X)(X)[0], X * X)


# -- rules of programs -----------------------------------------------------------------------------------------


def call_primitive() -> Primitive:
    """Calls a program."""
    from corejax.extend import inline_closed

    return Primitive(
        name(),
        multiple_results=True,
        tags=("higher_order",),
        decomposition=lambda *args, program: inline_closed(program, args),
    )


PARTIAL_EVALS = {
    "one value": (lambda x: x, "f32[3] instead of a list of 1 results"),
    "nothing": (lambda x: [], "a list of 0"),
    "another shape": (lambda x: [np.float32(1)], "f32[], but"),
}


@pytest.mark.parametrize("given", PARTIAL_EVALS)
def test_partial_eval(given: str) -> None:
    outs, word = PARTIAL_EVALS[given]
    p = call_primitive()
    partial_eval_rules.register(p, lambda trace, args, program: outs(args[0]))
    program = corejax.make_jaxpr(lambda x: x * 2)(X)
    refused(
        lambda: partial_eval_flat(lambda x: p.bind(x, program=program), [None], [corejax.extend.get_aval(X)]),
        "partial-eval rule",
        word,
    )


def calling(f: Callable[[Any], Any], **rules: Any) -> Callable[[Any], Any]:
    """A call of f's program, through a primitive with rules for programs."""
    p = call_primitive()
    for table, rule in rules.items():
        where = corejax.extend if table in corejax.extend.__all__ else corejax.extend.programs
        getattr(where, table)[p] = rule
    program = corejax.make_jaxpr(f)(X)
    return lambda x: p.bind(x, program=program)


def halves(x: Any) -> list[Any]:
    return [x * 2, jnp.sum(x)]


DCE = {
    "nothing": (lambda used, eqn: None, "None instead of"),
    "no equation": (lambda used, eqn: ([False], None), "no equation that binds a result of type f32[3]"),
    "flags of another number": (lambda used, eqn: ([], eqn), "as used_inputs, for 1 operands"),
    "too few results": (lambda used, eqn: ([True], eqn.replace(outvars=eqn.outvars[:1])), "that binds (f32[3])"),
    "another program": (
        lambda used, eqn: ([True], eqn.replace(outvars=eqn.outvars[::-1])),
        "that binds (f32[], f32[3])",
    ),
    "a stranger": (lambda used, eqn: ([True], eqn.replace(invars=[Var(eqn.invars[0].aval)])), "not available"),
}


@pytest.mark.parametrize("given", DCE)
def test_dce(given: str) -> None:
    rule, word = DCE[given]
    f = calling(halves, dce_rules=rule)
    program = corejax.make_jaxpr(f)(X)
    refused(lambda: corejax.extend.dce_jaxpr(program, [True, False]), "dce rule (from module tests", word)


RECOMPUTE = {
    "nothing much": (lambda policy, eqn: (eqn,), "where it has to return (eqn, copy, saved)"),
    "unsaved": (lambda policy, eqn: (eqn, eqn, [Var(eqn.invars[0].aval)]), "no equation that binds"),
    "no results": (lambda policy, eqn: (eqn, eqn.replace(outvars=[]), []), "that binds ()"),
}


@pytest.mark.parametrize("given", RECOMPUTE)
def test_recompute(given: str) -> None:
    rule, word = RECOMPUTE[given]
    f = calling(jnp.sin, recompute_rules=rule)
    program = corejax.make_jaxpr(lambda x: f(x)[0])(X)
    refused(
        lambda: RECOMPUTATION.programs(program, lambda p, *a, **k: False),
        "recompute rule (from module",
        word,
    )


SPLITS = {
    "nothing": (lambda unknowns, eqn: None, "None instead of (eqn_known"),
    "too few flags": (lambda unknowns, eqn: (None, eqn, [], []), "as unknowns_out, for 2 results"),
    "known of unknown": (lambda unknowns, eqn: (eqn, None, [False, False], []), "eqn_known that uses an unknown"),
    "unbound": (lambda unknowns, eqn: (None, None, [True, True], []), "no eqn_unknown that binds result 0"),
    "known and unbound": (lambda unknowns, eqn: (None, eqn, [True, False], []), "no eqn_known that binds result 1"),
    "a stranger": (
        lambda unknowns, eqn: (None, eqn.replace(invars=[Var(eqn.invars[0].aval)]), [True, True], []),
        "not available",
    ),
    "another type": (lambda unknowns, eqn: (None, eqn.replace(outvars=eqn.outvars[::-1]), [True, True], []), "binds"),
}


@pytest.mark.parametrize("given", SPLITS)
def test_partial_eval_of_equations(given: str) -> None:
    rule, word = SPLITS[given]
    f = calling(halves, partial_eval_jaxpr_rules=rule)
    program = corejax.make_jaxpr(f)(X)
    refused(
        lambda: corejax.extend.partial_eval_jaxpr(program, [True]), "partial-eval rule for equations (from module", word
    )
