"""Random programs: at random points of a random box, what comes out is within the bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from boxes import box, check_inside, in_double, points
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.interval_bounds import propagate

N = 4
WEIGHTS = np.linspace(-1.5, 1.5, N * N, dtype=np.float32).reshape(N, N)


def looped(x: Any, y: Any) -> Any:
    """A scan with both in its carry."""
    (a, _), zs = lax.scan(lambda c, _: ((jnp.sin(c[1]), 0.5 * c[0]), c[0] - c[1]), (x, y), None, length=3)
    return a + zs.sum(0)


# Functions of two vectors, bounded enough that programs of ten of them stay finite.
STEPS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: jnp.tanh(x) * y,
    "square": lambda x, y: jnp.sin(x) ** 2,
    "div": lambda x, y: x / (1 + y * y),
    "exp": lambda x, y: jnp.exp(jnp.minimum(x, 1.0)),
    "log": lambda x, y: jnp.log(1.5 + jnp.cos(x)),
    "sqrt": lambda x, y: jnp.sqrt(abs(x)),
    "tanh": lambda x, y: jnp.tanh(x),
    "clip": lambda x, y: jnp.clip(x, -1.0, abs(y)),
    "where": lambda x, y: jnp.where(x > y, x, -0.5 * y),
    "matmul": lambda x, y: x @ WEIGHTS,
    "dot": lambda x, y: jnp.tanh(x)[:, None] @ jnp.tanh(y)[None, :] @ np.ones(N, np.float32),
    "sort_of": lambda x, y: jnp.concatenate([y[2:], x[::-1][:2]]),
    "reduce": lambda x, y: x - jnp.max(y) + jnp.sum(x) * 0.1,
    "cond": lambda x, y: lax.cond(x.sum() > 0, jnp.cos, lambda z: z + 1, y),
    "scan": looped,
    "jit": lambda x, y: corejax.jit(lambda a, b: jnp.maximum(a, jnp.sin(b)))(x, y),
    "vmap": lambda x, y: corejax.vmap(lambda a, b: lax.cond(a > b, jnp.sin, jnp.cos, a))(x, y),
    "grad": lambda x, y: corejax.grad(lambda z: (jnp.tanh(z) * y).sum())(x),
}

Program = list[tuple[str, int, int]]
programs = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8
)


def run(program: Program, x: Any, y: Any) -> Any:
    """Each step takes two of the values so far."""
    values = [x, y]
    for name, i, j in program:
        values.append(STEPS[name](values[i % len(values)], values[j % len(values)]))
    return values[-1]


# Bounds of products allow for rounding, not for what underflows: sizes are zero, or far from that.
SIZES = st.just(0.0) | st.floats(1e-3, 3.0)


@settings(max_examples=24, deadline=None)
@given(programs, st.integers(0, 2**32 - 1), SIZES)
def test_random_programs(program: Program, seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    x, y = box(rng, (N,), -size, size), box(rng, (N,), -size, size)
    bounds = propagate(lambda x, y: run(program, x, y))(x, y)
    for a, b in zip(points(rng, x, 4), points(rng, y, 4), strict=True):
        check_inside(bounds, run(program, a, b), str(program))
        check_inside(bounds, in_double(lambda a, b: run(program, a, b), [a, b]), str(program))


@settings(max_examples=8, deadline=None)
@given(programs, st.integers(0, 2**32 - 1))
def test_random_programs_compiled(program: Program, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def fun(x: Any, y: Any) -> Any:
        return run(program, x, y)

    compiled, bounded = corejax.jit(fun), corejax.jit(propagate(fun))
    x, y = box(rng, (N,), -2, 2), box(rng, (N,), -2, 2)
    for bounds in (propagate(fun)(x, y), bounded(x, y), propagate(compiled)(x, y)):
        for a, b in zip(points(rng, x, 2), points(rng, y, 2), strict=True):
            check_inside(bounds, compiled(a, b), str(program))
