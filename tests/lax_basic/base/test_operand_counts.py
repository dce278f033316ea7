"""Every primitive refuses another number of operands than it has, staged as well as eager."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.extend import JaxprEqn, ShapedArray, primitives
from tests.integration.samples import TABLE

AT_LEAST = {"concatenate": 1, "select_n": 2, "dynamic_slice": 1, "dynamic_update_slice": 2}
UNSAMPLED = ("floor", "ceil", "is_finite", "real", "imag", "conj", "complex")


@functools.cache
def equation(name: str) -> JaxprEqn:
    """An equation of a primitive, from its first sample that is not the identity."""
    programs = (corejax.make_jaxpr(fun)(*args).jaxpr for fun, args in TABLE[name](lax))
    return next(e for program in programs for e in program.eqns if e.primitive.name == name)


def names() -> list[str]:
    return sorted(name for name, p in primitives.items() if p.provenance.package == "corejax_lax_basic")


def test_all_primitives_are_looked_at() -> None:
    assert set(names()) == set(TABLE) | set(UNSAMPLED)


@pytest.mark.parametrize("name", names())
def test_number_of_operands(name: str) -> None:
    if name in UNSAMPLED:
        avals, params = [ShapedArray((3,), np.float32)] * (2 if name == "complex" else 1), {}
    else:
        avals, params = [v.aval for v in equation(name).invars], equation(name).params
    count = len(avals)
    wrong = range(AT_LEAST[name]) if name in AT_LEAST else {max(count - 1, 0), count + 1, 0} - {count}
    least = f"at least {AT_LEAST[name]}" if name in AT_LEAST else count
    for number in wrong:
        values = [np.zeros(a.shape, a.dtype) for a in (*avals, ShapedArray((3,), np.float32))[:number]]
        bind = lambda *xs: primitives[name].bind(*xs, **params)
        for wrap in (lambda f: f, corejax.make_jaxpr):
            with pytest.raises(TypeError, match=rf"^{name} takes {least} operands?, got {number}"):
                wrap(bind)(*values)


def test_one_operand_and_several() -> None:
    x = np.float32(1)
    with pytest.raises(TypeError, match=r"^mul takes 2 operands, got 1$"):
        corejax.make_jaxpr(lax.mul_p.bind)(x)
    with pytest.raises(TypeError, match=r"^sin takes 1 operand, got 2$"):
        lax.sin_p.bind(x, x)
