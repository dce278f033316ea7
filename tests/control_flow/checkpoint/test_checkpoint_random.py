"""Random nests of checkpoint, jit, scan and cond with random policies: derivatives are those without checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import corejax
import corejax.numpy as jnp
from corejax import checkpoint_policies as policies
from corejax import lax
from corejax.ad_checkpoint import checkpoint_name
from corejax.extend import config

F = np.float32
W = np.array([[0.5, -0.3, 0.2], [0.1, 0.4, -0.6], [-0.2, 0.3, 0.7]], F)
X = np.array([0.4, -0.9, 0.7], F)
DOT = np.array([1.0, 0.5, -0.25], F)

STEPS = {
    "sin": jnp.sin,
    "tanh": jnp.tanh,
    "square": lambda x: x * x,
    "matvec": lambda x: W @ x,
    "name_a": lambda x: checkpoint_name(jnp.cos(x), "a"),
    "name_b": lambda x: checkpoint_name(x * 0.5, "b"),
    "swap": lambda x: lax.optimization_barrier((x, x * x))[1],
}
POLICIES = [
    None,
    policies.nothing_saveable,
    policies.everything_saveable,
    policies.dots_saveable,
    policies.save_only_these_names("a"),
    policies.save_any_names_but_these("a"),
    policies.save_anything_except_these_names("b"),
    policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("b")),
]

steps = st.sampled_from(sorted(STEPS))
programs = st.recursive(
    st.lists(steps, min_size=1, max_size=3).map(lambda names: ("chain", names)),
    lambda inner: st.one_of(
        st.tuples(st.just("seq"), inner, inner),
        st.tuples(st.just("checkpoint"), inner, st.integers(0, len(POLICIES) - 1)),
        st.tuples(st.just("jit"), inner),
        st.tuples(st.just("scan"), inner),
        st.tuples(st.just("cond"), inner, inner),
    ),
    max_leaves=6,
)


def built(program, *, plain):
    """A function f32[3] -> f32[3]; `plain`: without checkpoint."""
    kind, *parts = program
    if kind == "chain":

        def chain(x):
            for name in parts[0]:
                x = STEPS[name](x)
            return x

        return chain
    if kind == "seq":
        f, g = (built(p, plain=plain) for p in parts)
        return lambda x: g(f(x)) + x
    f = built(parts[0], plain=plain)
    if kind == "checkpoint":
        return f if plain else corejax.checkpoint(f, policy=POLICIES[parts[1]])
    if kind == "jit":
        return corejax.jit(f)
    if kind == "scan":
        return lambda x: lax.scan(lambda c, a: (f(c) * a, c), x, np.ones((2, 3), F) * x)[0]
    g = built(parts[1], plain=plain)
    return lambda x: lax.cond(x[0] > 0.1, f, lambda y: g(y) - y, x)


def loss(f):
    return lambda x: jnp.sum(f(x) * DOT)


TRANSFORMS = [
    lambda f: corejax.grad(loss(f)),
    lambda f: lambda x: corejax.jvp(corejax.grad(loss(f)), (x,), (DOT,))[1],
    lambda f: corejax.grad(lambda x: jnp.sum(corejax.grad(loss(f))(x) * DOT)),
    lambda f: lambda x: corejax.vmap(corejax.grad(loss(f)))(jnp.stack([x, -x])),
    lambda f: lambda x: corejax.linearize(corejax.checkpoint(f), x)[1](DOT),
]


def check(program):
    ours, plain = built(program, plain=False), built(program, plain=True)
    with config.override(check_jaxprs=True):
        for transform in TRANSFORMS:
            got, want = np.asarray(transform(ours)(X)), np.asarray(transform(plain)(X))
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-4 * max(1.0, float(np.abs(want).max())))


quiet = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


@settings(quiet, max_examples=8)
@given(st.tuples(st.just("checkpoint"), programs, st.integers(0, len(POLICIES) - 1)))
def test_random_nests(program):
    check(program)


@pytest.mark.slow
@settings(quiet, max_examples=60)
@given(programs)
def test_many_random_nests(program):
    check(program)
