"""Every program under every nesting of transformations: against plain Python control flow, and jax."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax import lax
from tests.control_flow.nestings import (
    BATCH,
    BATCHED,
    FORWARD,
    FORWARD_ONLY,
    JITTED,
    PROGRAMS,
    TRANSFORMS,
    PlainControlFlow,
    while_around_what_it_does_not_change,
)

pytestmark = pytest.mark.sampled
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


def check_equal(got, want):
    leaves, wanted = (corejax.tree_util.tree_leaves(tree) for tree in (got, want))
    assert len(leaves) == len(wanted)
    for a, b in zip(leaves, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-5)


def plainly(program, name, x):
    """What a transformation of the program gives where Python's `if` and `for` stand for cond and scan."""
    return TRANSFORMS[name](corejax, program(PlainControlFlow(lax), lambda f: f))(x)


@programs
@pytest.mark.parametrize("name", TRANSFORMS)
def test_eager(program, name):
    for x in BATCH[:2]:
        check_equal(TRANSFORMS[name](corejax, program(lax, corejax.jit))(x), plainly(program, name, x))


@programs
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "jit_grad")) for n in JITTED])
def test_jitted(program, name):
    transform, same = JITTED[name]
    transformed = transform(corejax, program(lax, corejax.jit))
    for x in BATCH[:2]:
        check_equal(transformed(x), plainly(program, same, x))


@programs
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * ("jit" in n and n != "jit_vmap_grad")) for n in BATCHED],
)
def test_batched(program, name):
    transform, same = BATCHED[name]
    got = transform(corejax, program(lax, corejax.jit))(BATCH)
    for i, x in enumerate(BATCH):
        check_equal(corejax.tree_util.tree_map(lambda a, i=i: a[i], got), plainly(program, same, x))


@pytest.mark.parametrize("program", FORWARD_ONLY, ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode(program, name):
    transform = TRANSFORMS[name]
    for x in BATCH:
        check_equal(transform(corejax, program(lax, corejax.jit))(x), plainly(program, name, x))
    jitted = corejax.jit(transform(corejax, program(lax, corejax.jit)))
    check_equal(jitted(BATCH[0]), plainly(program, name, BATCH[0]))
    inside = transform(corejax, corejax.jit(program(lax, corejax.jit)))
    check_equal(inside(BATCH[1]), plainly(program, name, BATCH[1]))


@pytest.mark.parametrize("program", FORWARD_ONLY, ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_batched(program, name):
    transform = TRANSFORMS[name]
    f = program(lax, corejax.jit)
    wrapped = [corejax.vmap(transform(corejax, f)), corejax.jit(corejax.vmap(transform(corejax, f)))]
    if name == "jvp":
        wrapped.append(BATCHED["jvp_vmap"][0](corejax, f))
    for g in wrapped:
        got = g(BATCH)
        for i, x in enumerate(BATCH):
            check_equal(corejax.tree_util.tree_map(lambda a, i=i: a[i], got), plainly(program, name, x))


def _check_against_jax(transform, program, x):
    jax = pytest.importorskip("jax")
    if program is while_around_what_it_does_not_change:
        pytest.skip("jax does not differentiate a while loop in reverse, whatever it does")
    got = transform(corejax, program(lax, corejax.jit))(x)
    want = jax.jit(transform(jax, program(jax.lax, jax.jit)))(x)
    check_equal(got, jax.tree_util.tree_leaves(want))


@programs
def test_gradient_against_jax(program):
    _check_against_jax(JITTED["jit_grad"][0], program, BATCH[0])


@pytest.mark.slow
@programs
@pytest.mark.parametrize("name", [*TRANSFORMS, *JITTED])
def test_against_jax(program, name):
    transform = TRANSFORMS[name] if name in TRANSFORMS else JITTED[name][0]
    for x in BATCH[:2]:
        _check_against_jax(transform, program, x)


@pytest.mark.slow
@programs
@pytest.mark.parametrize("name", BATCHED)
def test_batched_against_jax(program, name):
    _check_against_jax(BATCHED[name][0], program, BATCH)
