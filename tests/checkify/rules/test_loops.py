"""`scan` and `while`: the failure of the first iteration that fails, and the first one in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax
from tests.checkify.oracle import OURS, Make, Pair, message


def scan(m: Any) -> Any:
    def body(carry: Any, x: Any) -> Any:
        m.checkify.check(x < 3, "x is {x}, the carry {carry}", x=x, carry=carry)
        return carry + x, m.np.sqrt(x)

    return lambda xs: m.lax.scan(body, m.np.float32(0), xs)


def reverse(m: Any) -> Any:
    return lambda xs: m.lax.scan(lambda c, x: (c + x, m.np.log(x)), m.np.float32(0), xs, reverse=True)


def nested(m: Any) -> Any:
    """A loop in a loop, what fails in it being a constant of the inner one."""

    def outer(total: Any, x: Any) -> Any:
        def inner(i: Any, c: Any) -> Any:
            m.checkify.check(c < 10, "c is {}", c)
            return c + x

        return m.lax.fori_loop(0, 3, inner, total), x

    return lambda xs: m.lax.scan(outer, m.np.float32(0), xs)


SCANS: dict[str, Make] = {"scan": scan, "reverse": reverse, "nested": nested}


def while_loop(condition: bool, body: bool) -> Make:
    def make(m: Any) -> Any:
        def going(state: Any) -> Any:
            if condition:
                m.checkify.check(state[1] < 100, "the condition is given {}", state[1])
            return state[0] < 5

        def step(state: Any) -> Any:
            if body:
                m.checkify.check(state[1] != 8, "the body is given {}", state[1])
            return state[0] + 1, state[1] * 2

        return lambda x: m.lax.while_loop(going, step, (0, x))

    return make


WHILES = {f"condition {c}, body {b}": while_loop(c, b) for c in (False, True) for b in (False, True)}


def test_scans() -> None:
    pair = Pair(SCANS)
    said = [
        pair.agree(np.array(xs, np.float32))
        for xs in ([1, 2, 1, 2], [1, 5, 7, -1], [2, 1, 1, -1], [0, 1, 2, 5], [9, 5, 5, 5], [-5, -6, 1, -7])
    ]
    for name in SCANS:
        assert len({found[name] for found in said}) >= 2, name
    assert "x is 5.0, the carry 1.0" in str(said[1]["scan"])


def test_the_first_iteration_that_fails_counts_whatever_fails_in_it() -> None:
    """jax takes what stands first in the body."""
    for run in (checkify.checkify, lambda f, errors: corejax.jit(checkify.checkify(f, errors))):
        checked = run(scan(OURS), checkify.all_checks)
        assert "primitive: sqrt" in checked(jnp.array([0.0, 1.0, -1.0, 5.0]))[0].get()
        assert "x is 5.0, the carry 1.0" in checked(jnp.array([0.0, 1.0, 5.0, -1.0]))[0].get()


@pytest.mark.parametrize("transform", [corejax.jit, lambda f: f])
def test_no_iteration_no_failure(transform: Any) -> None:
    for make in SCANS.values():
        assert transform(checkify.checkify(make(OURS), checkify.all_checks))(jnp.zeros(0))[0].get() is None


def test_whiles() -> None:
    pair = Pair(WHILES)
    said = [pair.agree(np.float32(x)) for x in (1, 1.5, 100, 10, 8, 4)]
    for name in WHILES:
        assert len({found[name] for found in said}) >= (1 if name.count("False") == 2 else 2), name
    assert "body is given 8.0" in str(said[0]["condition True, body True"])
    assert "condition is given 160.0" in str(said[3]["condition True, body True"])


def test_whiles_over_a_batch() -> None:
    """Elements that have ended are not checked any more."""

    def make(m: Any) -> Any:
        def step(x: Any) -> Any:
            m.checkify.check(x != 4, "x is {}", x)
            return x * 2

        return lambda x: m.lax.while_loop(lambda x: x < 8, step, x)

    checked = corejax.jit(corejax.vmap(checkify.checkify(make(OURS))))  # (jax fails here)
    assert checked(jnp.array([3.0, 5.0, 8.0, 12.0]))[0].get() is None
    found = checked(jnp.array([3.0, 1.0, 8.0, 4.0]))[0].get()
    assert [line.partition(" (")[0] for line in found.splitlines()] == [f"at mapped index {i}: x is 4.0" for i in "13"]


def test_a_condition_is_computed_once_in_each_iteration() -> None:
    program = corejax.make_jaxpr(checkify.checkify(while_loop(True, True)(OURS)))(jnp.float32(1))
    (loop,) = (eqn for eqn in program.eqns if eqn.primitive.name == "while")
    assert not loop.params["cond_jaxpr"].eqns
    assert loop.params["cond_nconsts"] == 0


def test_loops_that_cannot_fail_are_left_alone() -> None:
    plain = lambda xs: (scan_of(xs), lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0.0))
    scan_of = lambda xs: lax.scan(lambda c, x: (c + x, c), 0.0, xs)
    checked = checkify.checkify(plain, checkify.index_checks | checkify.user_checks)
    assert str(corejax.make_jaxpr(checked)(jnp.ones(3))) == str(corejax.make_jaxpr(plain)(jnp.ones(3)))


def test_what_the_loop_closes_over() -> None:
    def fun(limit: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            checkify.check(x < limit, "{x} >= {limit}", x=x, limit=limit)
            return c, None

        return lax.scan(body, 0, xs)[0]

    assert str(message(fun, jnp.array(3.0), jnp.arange(5.0))).startswith("3.0 >= 3.0 ")
    assert message(fun, jnp.array(5.0), jnp.arange(5.0)) is None


def test_fori_loop_and_map() -> None:
    assert "index 3 " in str(message(lambda x: lax.fori_loop(0, 4, lambda i, s: s + x[i], 0.0), jnp.arange(3.0)))
    assert "primitive: log" in str(message(lambda x: lax.map(jnp.log, x), jnp.array([1.0, -1.0])))
