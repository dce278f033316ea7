"""Special functions one after the other are compiled to about as much code as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.scipy.special as sp

FUNCTIONS = {
    "gammaln": sp.gammaln,
    "digamma": sp.digamma,
    "gamma": sp.gamma,
    "exp1": sp.exp1,
    "log_ndtr": sp.log_ndtr,
    "boxcox1p": lambda x: sp.boxcox1p(x, x + 1),
    "kl_div": lambda x: sp.kl_div(x, x + 1),
}


def length(f: Any, count: int) -> int:
    """How many operations XLA has left of `count` calls."""

    def chain(x: Any) -> Any:
        for _ in range(count):
            x = f(x)
        return x

    compiled = corejax.jit(chain).lower(np.ones(100, np.float32)).compile()
    return str(compiled.as_text()).count(" = ")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_is_repeated_for_each_of_several_fusions(name: str) -> None:
    one, two, four = (length(FUNCTIONS[name], count) for count in (1, 2, 4))
    assert four - two < 2.3 * (two - one) and two < 2.3 * one
