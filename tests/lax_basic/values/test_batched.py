"""A JVP rule of a primitive with a decomposition holds for batches as well: grad of vmap is vmap of grad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend import Primitive, jvp_rules, primitives, vmap_rules
from corejax.extend.programs import parse_jaxpr


@pytest.fixture
def scaled() -> Iterator[Primitive]:
    """Sine, scaled by a parameter, with a derivative that is another function on purpose."""
    p = Primitive(
        "test.scaled", multiple_results=True, decomposition=lambda x, y, *, by: [by * jnp.sin(x) * y, jnp.cos(y)]
    )

    @jvp_rules.register(p, symbolic_zeros=True)
    def jvp(primals: Any, tangents: Any, *, by: float) -> Any:
        x, y = primals
        t, _ = tangents
        return p.bind(x, y, by=by), [None if t is None else 5 * y * t, None]

    yield p
    del primitives[p.name]


X, Y = jnp.arange(6.0).reshape(2, 3), 1 + jnp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("wrap", [lambda g: g, corejax.jit], ids=["plain", "jit"])
def test_grad_of_vmap_is_vmap_of_grad(scaled: Primitive, wrap: Any) -> None:
    f = lambda x, y: scaled.bind(x, y, by=2.0)[0]
    assert vmap_rules.rule_of(scaled) is None
    nested = lambda x: corejax.vmap(corejax.vmap(f), (1, 1), 1)(x, Y)
    total = lambda x: wrap(nested)(x).sum()
    np.testing.assert_allclose(wrap(nested)(X), 2 * np.sin(X) * Y, rtol=1e-6)
    np.testing.assert_array_equal(wrap(corejax.vmap(corejax.vmap(corejax.grad(f))))(X, Y), 5 * Y)
    np.testing.assert_array_equal(wrap(corejax.grad(total))(X), 5 * Y)
    np.testing.assert_array_equal(wrap(lambda x: corejax.jvp(total, (x,), (x,))[1])(X), (5 * X * Y).sum())
    assert corejax.grad(lambda y: corejax.vmap(f, (0, None))(X[0], y).sum())(2.0) == 0.0  # the rule says so


def test_a_zero_tangent_stays_zero(scaled: Primitive) -> None:
    f = lambda x: corejax.vmap(lambda x, y: scaled.bind(x, y, by=1.0)[1])(x, Y[0])
    out, tangent = corejax.jvp(f, (X[0],), (X[0],))
    np.testing.assert_allclose(out, np.cos(Y[0]), rtol=1e-6)
    assert not tangent.any()


def test_second_derivatives(scaled: Primitive) -> None:
    f = lambda x: corejax.vmap(lambda x, y: scaled.bind(x**2, y, by=1.0)[0])(x, Y[0]).sum()
    np.testing.assert_allclose(corejax.hessian(f)(X[0]), np.diag(10 * Y[0]), rtol=1e-6)


def test_text(scaled: Primitive) -> None:
    program = corejax.make_jaxpr(corejax.vmap(lambda x, y: scaled.bind(x, y, by=2.0)))(X[0], Y[0])
    text = str(program)
    assert "primitive='test.scaled'" in text and "params=(('by', 2.0),)" in text.replace("[", "(").replace("]", ")")
    assert str(parse_jaxpr(text)) == text
