"""Rules of others, rules that nobody wrote, and what is held against them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax
from corejax.checkify import CheckedError, Checks, checked_jaxpr, checkify_rules
from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    close_over_consts,
    defcall,
    defvectorized,
    find_primitive,
    get_aval,
    inlining,
    load_everything,
    primitives,
    stage,
    vmap_rules,
)
from tests.checkify.oracle import message


def primitive(name: str, **given: Any) -> Primitive:
    return find_primitive(f"checkify_tests.{name}") or Primitive(f"checkify_tests.{name}", **given)


half_p = primitive("half", impl=lambda x: x / 2, abstract_eval=lambda x: x.strip_weak_type())
if half_p not in vmap_rules:
    defvectorized(half_p)
slope_p = primitive("slope", decomposition=lambda x, y: jnp.log(x) / y)


@contextlib.contextmanager
def rule(p: Primitive, given: Any) -> Iterator[None]:
    checkify_rules.register(p, given)
    try:
        yield
    finally:
        checkify_rules.unregister(p)


class Negative(CheckedError):
    """A kind of another plugin."""

    @staticmethod
    def message(name: str, least: Any) -> str:
        return f"{name} of {least}, which is negative"


def half_checkify(checks: Checks, x: Any) -> Any:
    if checks.on(Negative):
        least = jnp.min(x)
        checks.add(least < 0, Negative, "half", payload=[least])
    return half_p.bind(x)


def test_a_rule_of_another_plugin() -> None:
    with rule(half_p, half_checkify):
        f = lambda x: lax.scan(lambda c, y: (c, half_p.bind(y)), 0, x)[1]
        found = message(f, jnp.array([[1.0, 2.0], [3.0, -4.0]]), errors={Negative})
        line = test_a_rule_of_another_plugin.__code__.co_firstlineno + 2
        assert str(found).startswith(f"half of -4.0, which is negative at {__file__}:{line}:")
        found = message(lambda x: half_p.bind(x), -jnp.ones(2), errors={Negative})
        assert f" at {__file__}:{line + 4}:" in str(found)  # the user's line, not the rule's
        error = corejax.vmap(checkify.checkify(half_p.bind, {Negative}))(jnp.array([[1.0], [-2.0]]))[0]
        assert isinstance(error.get_exception().error_mapping[1,], Negative)
        assert message(f, -jnp.ones((2, 2))) is None  # it is not among jax's sets
        assert checkify_rules.rule_of(half_p).derived is None


def test_without_a_rule_nan_that_it_makes_is_found() -> None:
    nan_p = primitive("nan_of_two", impl=lambda x: np.where(x == 2, np.nan, x), abstract_eval=lambda x: x)
    assert checkify_rules.can_derive(nan_p) == "NaN in results"
    assert "primitive: checkify_tests.nan_of_two" in str(message(nan_p.bind, jnp.array([1.0, 2.0])))
    assert message(nan_p.bind, jnp.array([1.0, 3.0])) is None
    assert message(nan_p.bind, jnp.array([1.0, np.nan])) is None  # it came in
    assert message(nan_p.bind, jnp.array([2.0]), errors=checkify.div_checks) is None


def test_several_results() -> None:
    both_p = primitive(
        "both", multiple_results=True, impl=lambda x: [np.log(x), np.int32(3)],
        abstract_eval=lambda x: [x.strip_weak_type(), get_aval(np.int32(0))],
    )  # fmt: skip
    assert "primitive: checkify_tests.both" in str(message(lambda x: both_p.bind(x), jnp.float32(-1)))
    assert message(lambda x: both_p.bind(x), jnp.float32(1)) is None


def test_a_decomposition_is_looked_into() -> None:
    assert "primitive: log" in str(message(slope_p.bind, jnp.float32(-1), jnp.float32(1)))
    assert "division by zero" in str(message(slope_p.bind, jnp.float32(2), jnp.float32(0)))
    program = corejax.make_jaxpr(checkify.checkify(slope_p.bind))(jnp.float32(2), jnp.float32(0))
    assert [eqn.primitive for eqn in program.eqns] == [slope_p]  # where nothing in it can fail, it stays


@pytest.mark.parametrize("decomposition", [None, inlining("jaxpr")])
def test_a_call_of_another_plugin_stays_a_call(decomposition: Any) -> None:
    name = f"checkify_tests.call{'' if decomposition is None else '_inlined'}"
    call_p = find_primitive(name)
    if call_p is None:
        call_p = Primitive(name, multiple_results=True, tags=("higher_order",), decomposition=decomposition)
        defcall(call_p, "jaxpr")

    def checked_log(x: Any) -> Any:
        checkify.check(x > 1, "{} is small", x)
        return jnp.log(x)

    f = calling(call_p, checked_log)
    assert checkify_rules.can_derive(call_p) == "call"
    program = corejax.make_jaxpr(checkify.checkify(f))(jnp.float32(0.5))
    assert [eqn.primitive for eqn in program.eqns] == [call_p]
    assert str(message(f, jnp.float32(0.5))).startswith("0.5 is small ")
    assert "primitive: log" in str(message(f, jnp.float32(-1), errors=checkify.nan_checks))
    errors = corejax.jit(corejax.vmap(checkify.checkify(f)))(jnp.array([2.0, 0.5]))[0]
    assert str(errors.get()).startswith("at mapped index 1: 0.5 is small ")


def calling(call_p: Primitive, fun: Any) -> Any:
    """The function, called by a primitive."""

    def call(x: Any) -> Any:
        jaxpr, consts = stage(lambda x: [fun(x)], [get_aval(x)])
        return call_p.bind(*consts, x, jaxpr=close_over_consts(jaxpr))[0]

    return call


def test_a_call_with_rules_of_its_own_is_checked_through_its_decomposition() -> None:
    call_p = find_primitive("checkify_tests.own_call")
    if call_p is None:
        call_p = Primitive("checkify_tests.own_call", multiple_results=True, tags=("higher_order",),
                           decomposition=inlining("jaxpr"))  # fmt: skip
        defcall(call_p, "jaxpr", without=("impl",))
    assert checkify_rules.can_derive(call_p) == "decomposition"
    assert "primitive: log" in str(message(calling(call_p, jnp.log), jnp.float32(-1)))


def test_a_program_that_nobody_looks_into() -> None:
    """NaN in its results is found; a check inside would be lost, and is refused."""
    twice_p = find_primitive("checkify_tests.twice") or Primitive(
        "checkify_tests.twice", multiple_results=True, tags=("higher_order",),
        abstract_eval=lambda x, *, jaxpr: [x],
        impl=lambda x, *, jaxpr: corejax.extend.eval_jaxpr_on_host(
            jaxpr, corejax.extend.eval_jaxpr_on_host(jaxpr, [x])
        ),
    )  # fmt: skip

    def twice(f: Any) -> Any:
        def run(x: Any) -> Any:
            jaxpr, _ = stage(lambda x: [f(x)], [get_aval(x).strip_weak_type()])
            return twice_p.bind(x, jaxpr=ClosedJaxpr(jaxpr, []))[0]

        return run

    assert "primitive: checkify_tests.twice" in str(message(twice(jnp.log), jnp.float32(0.5)))
    with pytest.raises(NotImplementedError, match=r"checkify_tests\.twice.* has no checkify rule"):
        message(twice(lambda x: (checkify.check(x > 0, "x"), x)[1]), jnp.float32(0.5))


def test_programs_are_transformed_once() -> None:
    f = corejax.jit(lambda x: jnp.log(x))
    (eqn,) = corejax.make_jaxpr(f)(1.0).eqns
    closed = eqn.params["call_jaxpr"]
    program, error_type = checked_jaxpr(closed, checkify.all_checks)
    assert checked_jaxpr(closed, checkify.all_checks)[0] is program
    assert program is not closed and len(program.out_avals) == 1 + len(error_type.avals())
    assert checked_jaxpr(closed, checkify.index_checks)[0] is closed


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda checks, x: half_p.bind(x)[None],
            r"returned f32\[1,2\] as result 0, but the primitive returns f32\[2\]",
        ),
        (lambda checks, x: None, r"\) returned None as result 0, but the primitive returns f32\[2\]"),
        (lambda checks, x: (checks.add(x < 0, Negative, "half", 1.0), x)[1], "takes a boolean scalar"),
        (lambda checks, x: jnp.float16(1) * half_p.bind(x).astype("float16"), r"returned f16\[2\] as result 0"),
    ],
)
def test_wrong_rules_are_told(wrong: Any, said: str) -> None:
    with rule(half_p, wrong), pytest.raises(TypeError, match=said):
        message(half_p.bind, jnp.ones(2), errors={Negative})
    assert message(half_p.bind, jnp.ones(2)) is None


def test_strict_rules_refuse_derived_ones_and_need_none_of_the_first_party() -> None:
    with corejax.config.override(strict_rules=True):
        f = lambda x: lax.scan(lambda c, y: (c, jnp.where(y > 0, jnp.sin(y), y[::-1])), 0, x)[1].sum()
        assert checkify.checkify(corejax.jit(f), checkify.all_checks)(jnp.ones((2, 2)))[0].get() is None


def test_array_primitives_and_control_flow_have_written_rules() -> None:
    load_everything()
    missing = [
        p.name
        for p in primitives.values()
        if p.provenance.plugin in ("lax_basic", "control_flow") and not checkify_rules.is_written(p)
    ]
    assert not missing, f"put these into the tables of corejax_checkify/rules/floats.py, or write a rule: {missing}"


def test_explained() -> None:
    explained = corejax.explain(checkify.checkify(lambda x: jnp.sin(x) + 1, checkify.all_checks))(1.0)
    assert {use.name for use in explained.primitives if use.rule("checkify") is not None} >= {"sin", "add"}
