"""Jitted and checkpointed functions stay what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax
from tests.checkify.oracle import Make, Pair, message

CALLS: dict[str, Make] = {
    "jit": lambda m: m.jax.jit(lambda x: m.np.log(x) * 2),
    "checkpoint": lambda m: m.jax.checkpoint(lambda x: m.np.log(x) * 2),
    "jit of checkpoint": lambda m: m.jax.jit(m.jax.checkpoint(lambda x: 1 / x)),
    "grad of checkpoint": lambda m: m.jax.grad(m.jax.checkpoint(lambda x: m.np.sqrt(x) * 2)),
    "two": lambda m: lambda x: m.jax.jit(lambda x: 1 / x)(x) + m.jax.jit(m.np.log)(x),
}


def test_against_jax() -> None:
    pair = Pair(CALLS)
    said = [pair.agree(np.float32(x)) for x in (1, 0, -1)]
    for name in CALLS:
        assert len({found[name] for found in said}) >= 2, name


@pytest.mark.parametrize("transform", [corejax.jit, corejax.checkpoint])
def test_one_equation_stays_one(transform: Any) -> None:
    program = corejax.make_jaxpr(checkify.checkify(transform(jnp.log), checkify.all_checks))(1.0)
    (eqn,) = program.eqns
    assert eqn.primitive.name == ("xla_call" if transform is corejax.jit else "remat2")
    assert len(eqn.outvars) == 3


def test_a_program_that_cannot_fail_is_the_program() -> None:
    f = corejax.jit(lambda x: jnp.sin(x) * 2)
    (before,) = corejax.make_jaxpr(f)(1.0).eqns
    (after,) = corejax.make_jaxpr(checkify.checkify(f, checkify.index_checks))(1.0).eqns
    assert after.params["call_jaxpr"] is before.params["call_jaxpr"]


def test_a_jitted_function_is_compiled_once() -> None:
    checked = checkify.checkify(corejax.jit(lambda x: jnp.log(x)), checkify.all_checks)
    checked(1.0)
    again = corejax.explain(checked)(2.0)
    assert not [event for event in again.jit if event.kind == "compile"]


def test_a_composite_is_its_meaning_where_it_may_fail() -> None:
    f = lax.composite(lambda x: jnp.log(x), "acme.log")
    names = lambda errors: [e.primitive.name for e in corejax.make_jaxpr(checkify.checkify(f, errors))(1.0).eqns]
    assert names(checkify.user_checks) == ["composite"] and "log" in names(checkify.nan_checks)
    assert "primitive: log" in str(message(f, -1.0))


def test_checks_that_are_not_asked_for_are_left_out_of_jitted_functions() -> None:
    @corejax.jit
    def f(x: Any) -> Any:
        checkify.check(x > 0, "not positive")
        return x

    error, out = corejax.jit(checkify.checkify(f, checkify.nan_checks))(-1.0)
    assert error.get() is None and out == -1.0


def test_the_line_is_the_one_inside_the_jitted_function() -> None:
    f = corejax.jit(lambda x: jnp.log(x))
    line = test_the_line_is_the_one_inside_the_jitted_function.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}:" in str(message(f, -1.0))
