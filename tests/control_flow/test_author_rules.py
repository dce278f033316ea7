"""What authors may leave out or declare, inside programs: integer results, no derivative, what is derived."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.errors import MissingRuleError, NotDifferentiableError
from corejax.extend import Primitive, defjvp, nondifferentiable, vmap_rules

pytestmark = pytest.mark.filterwarnings("ignore::corejax.errors.DerivedRuleWarning")
X = np.array([0.5, 1.0, -2.0], np.float32)
M = np.stack([X, 2 * X])
_numbers = itertools.count()
LOOPS: dict[str, Any] = {
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), c), x, None, 2)[0],
    "stacked": lambda f: lambda x: lax.scan(lambda c, y: (c, f(y)), 0.0, jnp.stack([x, x]))[1][0],
    "while": lambda f: lambda x: lax.while_loop(lambda c: c[1] < 2, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0],
    "fori": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x),
    "cond": lambda f: lambda x: lax.cond(x[0] > 0, f, lambda y: y, x),
    "checkpoint": corejax.checkpoint,
    "jit": corejax.jit,
}


def made(**rules: Any) -> Primitive:
    return Primitive(f"author_rules.p{next(_numbers)}", **rules)


def signs() -> Primitive:
    """1 or -1 for each number, as integers."""
    return made(
        impl=lambda x: np.where(x < 0, -1, 1).astype(np.int32), abstract_eval=lambda x: x.update(dtype=np.int32)
    )


@pytest.mark.parametrize("loop", LOOPS)
def test_integer_results(loop: str) -> None:
    p = signs()
    f = LOOPS[loop](lambda x: x * p.bind(x))
    right = LOOPS[loop](lambda x: x * jnp.where(x < 0, np.int32(-1), np.int32(1)))
    for way in (
        lambda g: corejax.jvp(g, (X,), (M[1],)),
        lambda g: corejax.vmap(lambda x: corejax.jvp(g, (x,), (X,))[1])(M),
    ):
        for a, b in zip(way(f), way(right), strict=True):
            np.testing.assert_allclose(a, b)
    if loop != "while":
        wanted = corejax.grad(lambda x: jnp.sum(right(x) ** 2))(X)
        np.testing.assert_allclose(corejax.grad(lambda x: jnp.sum(f(x) ** 2))(X), wanted)
        _, linear = corejax.linearize(f, X)
        np.testing.assert_allclose(linear(X), corejax.jvp(right, (X,), (X,))[1])


def test_a_mix_needs_a_rule_in_programs_too() -> None:
    p = made(multiple_results=True, impl=np.frexp, abstract_eval=lambda x: [x, x.update(dtype=np.int32)])
    with pytest.raises(MissingRuleError, match=re.escape(p.name)):
        corejax.jvp(LOOPS["scan"](lambda x: p.bind(x)[0]), (X,), (X,))


@pytest.mark.parametrize("loop", LOOPS)
def test_nondifferentiable_operands(loop: str) -> None:
    p = made(impl=np.multiply, abstract_eval=lambda x, y: x.strip_weak_type())
    defjvp(p, lambda t, x, y: t * y, nondifferentiable("weights are data"))
    weights = np.array([1.0, 2.0, 3.0], np.float32)
    f = LOOPS[loop](lambda x: p.bind(x, weights))
    right = LOOPS[loop](lambda x: x * weights)
    np.testing.assert_allclose(corejax.jvp(f, (X,), (X,))[1], corejax.jvp(right, (X,), (X,))[1])
    with pytest.raises(NotDifferentiableError, match=re.escape(p.name) + ".*operand 1: weights are data") as info:
        corejax.jvp(LOOPS[loop](lambda x: p.bind(x, x)), (X,), (X,))
    assert "test_author_rules.py" in str(info.value)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_vmap_rule_that_hands_on(loop: str) -> None:
    p = made(impl=lambda x: np.cumsum(x, -1), abstract_eval=lambda x: x.strip_weak_type())

    @vmap_rules.register(p)
    def vmap(axis_size: int, vals: Any, dims: Any) -> Any:
        if dims[0] != 0:
            return vmap_rules.derived(p)(axis_size, vals, dims)
        return p.bind(*vals), 0

    f = LOOPS[loop](p.bind)
    right = LOOPS[loop](jnp.cumsum)
    for axis, x in ((0, M), (1, M.T)):
        np.testing.assert_allclose(corejax.vmap(f, in_axes=axis)(x), corejax.vmap(right)(M), rtol=1e-6)


@pytest.mark.parametrize("loop", LOOPS)
def test_in_defjvps(loop: str) -> None:
    @corejax.custom_jvp
    def scaled(x: Any, weights: Any) -> Any:
        return x * weights

    scaled.defjvps(lambda t, out, x, weights: t * weights, nondifferentiable("weights are data"))
    weights = np.array([1.0, 2.0, 3.0], np.float32)
    got = corejax.jvp(LOOPS[loop](lambda x: scaled(x, weights)), (X,), (X,))[1]
    np.testing.assert_allclose(got, corejax.jvp(LOOPS[loop](lambda x: x * weights), (X,), (X,))[1])
    with pytest.raises(NotDifferentiableError, match=r"custom_jvp function scaled .* argument 1: weights are data"):
        corejax.jvp(LOOPS[loop](lambda x: scaled(x, x)), (X,), (X,))
