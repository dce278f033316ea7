"""Programs as data: copies with some fields replaced."""

from __future__ import annotations

import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend import jaxpr_as_fun


def test_copies_with_other_fields() -> None:
    program = corejax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    first = program.eqns[0]
    shorter = program.replace(jaxpr=program.jaxpr.replace(eqns=[first], outvars=first.outvars))
    assert [eqn.primitive.name for eqn in shorter.eqns] == ["sin"] and len(program.eqns) == 2
    assert shorter.jaxpr.invars == program.jaxpr.invars and shorter.jaxpr.debug_info is program.jaxpr.debug_info
    assert jaxpr_as_fun(shorter)(1.0) == [jnp.sin(1.0)]
    assert first.replace(params={"accuracy": None}).primitive is first.primitive and not first.params


def test_constants_are_replaced_too() -> None:
    kept = jnp.arange(3.0)
    program = corejax.make_jaxpr(lambda x: x + kept)(jnp.ones(3))
    assert jaxpr_as_fun(program.replace(consts=[jnp.zeros(3)]))(jnp.ones(3))[0].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="1 constvars was given 0 constants"):
        program.replace(consts=[])


@pytest.mark.parametrize("part", ["closed", "jaxpr", "eqn"])
def test_fields_that_there_are_not(part: str) -> None:
    program = corejax.make_jaxpr(jnp.sin)(1.0)
    holder = {"closed": program, "jaxpr": program.jaxpr, "eqn": program.eqns[0]}[part]
    with pytest.raises(TypeError, match="'equations'"):
        holder.replace(equations=[])
