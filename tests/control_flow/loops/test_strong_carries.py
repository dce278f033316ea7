"""Loops that start from Python numbers: bodies are recorded once, and are what they are for arrays."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend.programs import check_jaxpr

XS = np.linspace(0.1, 0.9, 4, dtype=np.float32)
HALF = np.ones(3, np.float16)


@corejax.custom_jvp
def doubled(x):
    return 2.0 * x


@doubled.defjvp
def doubled_jvp(primals, tangents):
    return doubled(*primals), 2.0 * tangents[0]


BODIES = {
    "literals": lambda c, x: ((c * 2.0 + 1) * x, c),
    "chain": lambda c, x: (jnp.sin(jnp.cos(c)) + x, -c),
    "comparison": lambda c, x: (jnp.where(c < 3, c, 2.0 * c) + x, c > 0),
    "select": lambda c, x: (lax.select(x > 0.5, jnp.sin(c) + x, x), c),
    "shapes": lambda c, x: (jnp.sum(jnp.broadcast_to(c, (3,))) + x, jnp.reshape(c, (1,))),
    "cast to the same": lambda c, x: (c.astype("float32") + x, c),
    "cast to another": lambda c, x: (c + x, c.astype("float16")),
    "another's dtype": lambda c, x: (c + x, c * HALF),
    "an integer array": lambda c, x: (c + x, c * np.arange(3, dtype=np.int32)),
    "cond": lambda c, x: (lax.cond(c > 0, lambda c: c + x, lambda c: c - x, c), c),
    "cond that closes over it": lambda c, x: (lax.cond(x > 0, lambda: c + x, lambda: c * 1.0 + x), c),
    "scan from it": lambda c, x: (lax.scan(lambda d, y: (d * y, d), c, XS)[0] + x, c),
    "scan that closes over it": lambda c, x: (lax.scan(lambda d, y: (d * y + c, d), 0.0, XS)[0] + x, c),
    "scan that decides": lambda c, x: (c + x, lax.scan(lambda d, y: (d, c * HALF), 0, XS)[1]),
    "while": lambda c, x: (lax.while_loop(lambda d: d < 2.0, lambda d: d * 2 + x, c) + x, c),
    "fori": lambda c, x: (lax.fori_loop(0, 3, lambda i, d: d * x, c) + x, c),
    "jit": lambda c, x: (corejax.jit(lambda c: jnp.sin(c) * 2)(c) + x, c),
    "rule of its own": lambda c, x: (doubled(c) + x, c),
    "checkpoint": lambda c, x: (corejax.checkpoint(jnp.sin)(c) + x, c),
    "derivative": lambda c, x: (corejax.grad(lambda c: jnp.sin(c) * c)(c) + x, c),
    "vmap": lambda c, x: (corejax.vmap(lambda y: y * c)(XS).sum() + x, c),
    "nothing": lambda c, x: (c, x),
    "forwarded": lambda c, x: (x, c),
}


def types(out):
    return [(x.dtype, x.shape, x.weak_type) for x in corejax.tree_util.tree_leaves(out)]


@pytest.mark.parametrize("name", BODIES)
def test_as_from_an_array(name):
    """Value, types and derivative as if the loop had started from an array of the body's type."""
    body = BODIES[name]

    def run(start, xs):
        return lax.scan(body, start, xs)

    weak, strong = run(0.5, XS), run(np.float32(0.5), XS)
    assert name == "nothing" or types(weak) == types(strong)
    for a, b in zip(corejax.tree_util.tree_leaves(weak), corejax.tree_util.tree_leaves(strong), strict=True):
        np.testing.assert_array_equal(a, b)
    program = corejax.make_jaxpr(lambda xs: run(0.5, xs))(XS)
    check_jaxpr(program)
    for a, b in zip(corejax.jit(lambda xs: run(0.5, xs))(XS), strong, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3 if "another" in name else 1e-5)
    gradients = [
        corejax.grad(lambda xs, s=s: run(s, xs)[0])(XS) if name != "while" else 0 for s in (0.5, np.float32(0.5))
    ]
    np.testing.assert_allclose(*gradients, rtol=1e-6)


@pytest.mark.parametrize("name", ["literals", "chain", "comparison", "scan from it", "another's dtype", "fori"])
def test_the_program_is_the_one_for_an_array(name):
    texts = [str(corejax.make_jaxpr(lambda xs, s=s: lax.scan(BODIES[name], s, xs))(XS)) for s in (0.5, np.float32(0.5))]
    assert texts[0] == texts[1]


def nested(depth, calls, start):
    """Loops in loops' bodies, each from a Python number; nothing remembers functions that append to a list."""

    def f(x):
        return jnp.sin(x)

    for _ in range(depth):

        def f(x, inner=f):
            def body(c, _):
                calls.append(1)
                return c + inner(x), None

            return lax.scan(body, start, None, length=2)[0]

    return f


def test_bodies_are_recorded_once():
    """A nest of seven: seven recordings, not one for each path through the nest."""
    calls = []
    corejax.make_jaxpr(nested(7, calls, 0.0))(XS[0])
    assert len(calls) == 7


def test_lines_stay_the_user_s():
    """Equations of a body keep their places."""
    program = corejax.make_jaxpr(lambda xs: lax.scan(BODIES["chain"], 0.5, xs))(XS)
    body = program.jaxpr.eqns[-1].params["jaxpr"].jaxpr
    assert all(eqn.source_info is not None for eqn in body.eqns)
    text = corejax.jit(lambda xs: lax.scan(BODIES["chain"], 0.5, xs)).lower(XS).as_text(debug_info=True)
    assert "test_strong_carries.py" in text


def test_transformations_of_one_recording_are_kept():
    """A body that is remembered is one program, however often its loop is traced."""
    body = BODIES["chain"]
    programs = [corejax.make_jaxpr(lambda xs: lax.scan(body, 0.5, xs))(XS).jaxpr.eqns[-1].params["jaxpr"] for _ in "ab"]
    assert programs[0] is programs[1]
