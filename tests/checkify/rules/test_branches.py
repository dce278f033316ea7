"""`cond` and `switch`: what failed in the branch that ran."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax
from tests.checkify.oracle import OURS, Make, Pair, message


def cond(m: Any) -> Any:
    return lambda p, x: m.lax.cond(p > 0, lambda x: m.np.log(x), lambda x: 1 / x, x)


def switch(m: Any) -> Any:
    """Branches with nothing to fail, with a payload, with two payloads of other types."""

    def large(x: Any) -> Any:
        m.checkify.check(x > 1, "{x} is small", x=x)
        return x

    def both(x: Any) -> Any:
        m.checkify.check(x > 0, "{} is not positive", m.np.stack([x, x]))
        m.checkify.check(x > 1, "{x} is small here", x=x)
        return x * 2

    return lambda i, x: m.lax.switch(i.astype("int32"), [lambda x: x, large, both], x)


CHOICES: dict[str, Make] = {"cond": cond, "switch": switch}


def test_the_branch_that_runs() -> None:
    pair = Pair(CHOICES)
    said = {pair.agree(np.float32(i), np.float32(x))[name] for i in range(3) for x in (-1, 0, 3) for name in CHOICES}
    assert len(said) == 7, said  # one of them is None


def test_each_of_a_batch() -> None:
    pair = Pair(CHOICES, transform=lambda library, f: library.vmap(f))
    found = pair.agree(np.arange(3, dtype=np.float32), np.array([0, 0, -1], np.float32))
    assert str(found["switch"]).count("at mapped index") == 2


def test_code_that_cannot_fail_is_left_alone() -> None:
    plain = lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: x, x)
    checked = checkify.checkify(plain, checkify.div_checks | checkify.user_checks)
    assert str(corejax.make_jaxpr(checked)(True, 1.0)) == str(corejax.make_jaxpr(plain)(True, 1.0))


def test_branches_share_arrays_for_messages() -> None:
    def fun(p: Any, x: Any) -> Any:
        def first(x: Any) -> Any:
            checkify.check(x > 0, "first {}", x)
            return x

        def second(x: Any) -> Any:
            checkify.check(x > 1, "second {}", x)
            return x

        return lax.cond(p, first, second, x)

    program = corejax.make_jaxpr(checkify.checkify(fun))(True, 1.0)
    assert len(program.jaxpr.outvars) == 4  # predicate, code, one payload; and the result
    assert str(message(fun, jnp.array(True), jnp.array(-1.0))).startswith("first -1.0")
    assert str(message(fun, jnp.array(False), jnp.array(0.5))).startswith("second 0.5")


def test_a_batch_of_conditions_inside_is_refused_for_checks_of_the_users() -> None:
    """Both branches would run for all elements; jax says that the branch not taken failed."""
    with pytest.raises(NotImplementedError, match="vmap of cond over a mapped predicate"):
        checkify.checkify(corejax.vmap(switch(OURS)))(jnp.arange(3.0), jnp.zeros(3))
