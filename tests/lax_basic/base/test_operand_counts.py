"""Every primitive refuses another number of operands than it has, staged as well as eager."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.extend import ShapedArray, primitives
from tests.integration.samples import names_of, samples

AT_LEAST = {
    **{"after_all": 0, "concatenate": 1, "sort": 1, "stack": 1},
    **{"polynomial": 2, "select_n": 2, "dynamic_slice": 1, "dynamic_update_slice": 2},
}
PAIRS = {"reduce", "reduce_window"}  # operands, and as many initial values


@functools.cache
def application(name: str) -> tuple[list[ShapedArray], dict[str, Any]]:
    """Types of operands and parameters of the first of the plugin's examples."""
    call = next(samples(name))
    return list(call.avals), call.params


WITHIN = {"pack", "rearranged", "unpack"}  # their examples are functions of arrays that apply them to values


@pytest.mark.parametrize("name", sorted({*names_of("lax_basic")} - WITHIN))
def test_number_of_operands(name: str) -> None:
    avals, params = application(name)
    count = len(avals)
    wrong = range(AT_LEAST[name]) if name in AT_LEAST else {max(count - 1, 0), count + 1, 0} - {count}
    least = f"at least {AT_LEAST[name]}" if name in AT_LEAST else count
    for number in wrong:
        values = [np.zeros(a.shape, a.dtype) for a in (*avals, ShapedArray((3,), np.float32))[:number]]
        bind = lambda *xs: primitives[name].bind(*xs, **params)
        for wrap in (lambda f: f, corejax.make_jaxpr):
            text = "operands and as many initial values" if name in PAIRS else f"{least} operands?"
            with pytest.raises(TypeError, match=rf"^{name}:? takes {text}, got {number}"):
                wrap(bind)(*values)


def test_one_operand_and_several() -> None:
    x = np.float32(1)
    with pytest.raises(TypeError, match=r"^mul takes 2 operands, got 1$"):
        corejax.make_jaxpr(lax.mul_p.bind)(x)
    with pytest.raises(TypeError, match=r"^sin takes 1 operand, got 2$"):
        lax.sin_p.bind(x, x)
