"""Derivatives where a rule has a guard or a case: at 0, at 1, at infinity, where operands tie.

Hessians are compared with one-sided differences of the gradient, at points where both sides agree, and derivatives at
corners with a table.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.nn
import corejax.numpy as jnp
import corejax.scipy.special as special
import corejax.scipy.stats as stats
from corejax import lax
from corejax.extend import jvp_rules, primitives

POINTS = [0.0, 1.0, -1.0, 0.5, 2.0]
STEP = 1e-5
EXAMPLE = np.float64(0.5)


def elementwise() -> dict[str, tuple[Callable[..., Any], int]]:
    """The primitives of one or two floating-point operands that have a derivative."""
    found = {}
    for primitive in primitives.values():
        if "elementwise" not in primitive.tags or jvp_rules.rule_of(primitive) is None:
            continue
        for count in (1, 2):
            try:
                out = primitive.bind(*[EXAMPLE] * count)
            except Exception:
                continue  # of other operands, or with params
            if not primitive.multiple_results and out.dtype == EXAMPLE.dtype:
                found[primitive.name] = (primitive.bind, count)
    return found


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "xlogy": (special.xlogy, 2),
    "xlog1py": (special.xlog1py, 2),
    "entr": (special.entr, 1),
    "gamma.logpdf": (stats.gamma.logpdf, 2),
    "chi2.logpdf": (stats.chi2.logpdf, 2),
    "beta.logpdf": (functools.partial(stats.beta.logpdf, np.float64(0.3)), 2),
    "hypot": (jnp.hypot, 2),
    "logaddexp": (jnp.logaddexp, 2),
    "sinc": (jnp.sinc, 1),
    "i0": (jnp.i0, 1),
    "softplus": (corejax.nn.softplus, 1),
    "gelu": (corejax.nn.gelu, 1),
    "log_sigmoid": (corejax.nn.log_sigmoid, 1),
    "prod": (lambda x, y: jnp.prod(jnp.stack([x, y, x])), 2),
    "cumprod": (lambda x, y: jnp.sum(jnp.cumprod(jnp.stack([x, y, x]))), 2),
    "norm": (lambda x, y: jnp.linalg.norm(jnp.stack([x, y])), 2),
    "logsumexp": (lambda x, y: special.logsumexp(jnp.stack([x, y])), 2),
    "reduce_window": (
        lambda x, y: jnp.sum(lax.reduce_window(jnp.stack([x, y, x]), 1.0, lambda a, b: a * b, (2,), (1,), "VALID")),
        2,
    ),
}
KINKS = {"bessel_i0e", "i0e", "hyp2f1"}  # the gradient jumps alike to both sides; by parameters there is no second one


def assert_hessian(f: Callable[..., Any], count: int) -> None:
    points = np.array(list(itertools.product(POINTS, repeat=count)))
    gradient = corejax.grad(lambda v: f(*(v[i] for i in range(count))))
    values = corejax.vmap(gradient)

    at, steps = np.asarray(values(points)), np.eye(count) * STEP
    with np.errstate(all="ignore"):
        above = np.stack([(np.asarray(values(points + s)) - at) / STEP for s in steps], -1)
        below = np.stack([(at - np.asarray(values(points - s))) / STEP for s in steps], -1)
        wanted = (above + below) / 2
        smooth = np.abs(above - below) < 2e-3 * np.maximum(1, np.abs(wanted))
    smooth = (smooth & (np.abs(wanted) < 1e3)).all((1, 2))  # nor a point with a kink
    for transform in (corejax.jacfwd, corejax.jacrev):
        found = np.asarray(corejax.vmap(transform(gradient))(points[smooth]))
        np.testing.assert_allclose(found, wanted[smooth], rtol=1e-3, atol=1e-3, err_msg=f"at {points[smooth]}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    assert_hessian(*FUNCTIONS[name])


@pytest.mark.slow
def test_every_elementwise_primitive() -> None:
    found = elementwise()
    assert {"pow", "abs", "max", "sign", "xlogy"} <= set(found)
    for name, (function, count) in found.items():
        if name not in KINKS:
            assert_hessian(function, count)


@pytest.mark.parametrize("q", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("function", [special.rel_entr, special.kl_div])
def test_divergences_of_nothing_have_mixed_derivatives(function: Callable[..., Any], q: float) -> None:
    """`-p log(q)` is linear in `p` at 0, where the derivative by `p` itself counts as 0."""
    for order in (corejax.jacfwd, corejax.jacrev):
        hessian = order(corejax.grad(lambda v: function(v[0], v[1])))(np.array([0.0, q]))
        np.testing.assert_allclose(hessian, [[0, -1 / q], [-1 / q, 0]], rtol=1e-12)


INF = np.inf
# Functions, points, and derivatives by each operand there; second derivatives by the first operand alone.
CORNERS: dict[str, tuple[Callable[..., Any], list[tuple[tuple[float, ...], tuple[float, ...], float]]]] = {
    "hypot": (
        jnp.hypot,
        [((INF, 1), (1, 0), 0), ((2, -INF), (0, -1), 0), ((-INF, 0), (-1, 0), 0), ((3, 4), (0.6, 0.8), 0.128)],
    ),
    "arctan2": (
        jnp.arctan2,
        [
            ((3e-30, 4e-30), (0.16e30, -0.12e30), -3.84e58),
            ((3e30, 4e30), (0.16e-30, -0.12e-30), 0),
            ((0, 2), (0.5, 0), 0),
            ((1, INF), (0, 0), 0),
            ((-INF, INF), (0, 0), 0),
        ],
    ),
    "cumlogsumexp": (
        lambda x, y: lax.cumlogsumexp(jnp.stack([x, y, jnp.zeros_like(x)]))[1],
        [((-INF, 2), (0, 1), 0), ((-INF, -INF), (1, 1), 0), ((INF, 2), (1, 0), 0)],
    ),
    "logaddexp": (jnp.logaddexp, [((-INF, 2), (0, 1), 0), ((-INF, -INF), (1, 1), 0), ((INF, 2), (1, 0), 0)]),
    "boxcox": (lambda y, x: special.boxcox(x, y), [((2, 0), (0.25, 0), -0.25), ((-1, INF), (1, 0), 2)]),
    "bernoulli.logpmf": (lambda p: stats.bernoulli.logpmf(2, p), [((1,), (0,), 0), ((0,), (0,), 0)]),
    "binom.logpmf": (lambda p: stats.binom.logpmf(-1, 3, p), [((1,), (0,), 0), ((0,), (0,), 0)]),
    "mod": (jnp.mod, [((1, 0), (1, -INF), 0), ((INF, 2), (1, -INF), 0), ((-7, 3), (1, 3), 0), ((1, INF), (1, 0), 0)]),
    "cbrt": (jnp.cbrt, [((0,), (INF,), -INF), ((8,), (1 / 12,), -1 / 144)]),
    "log1mexp": (corejax.nn.log1mexp, [((-800,), (-1,), 0), ((-INF,), (-1,), 0), ((800,), (0,), 0)]),
    "spacing": (jnp.spacing, [((1.5,), (0,), 0), ((0,), (0,), 0)]),
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CORNERS)
def test_at_corners(name: str, dtype: str) -> None:
    function, rows = CORNERS[name]
    points = [np.array(x, dtype) for x in zip(*[row[0] for row in rows], strict=True)]
    slopes = [corejax.vmap(corejax.grad(function, i)) for i in range(len(points))]
    second = corejax.vmap(corejax.grad(corejax.grad(function)))
    for transform in (lambda f: f, corejax.jit):
        found = np.stack([np.asarray(transform(slope)(*points)) for slope in slopes], -1)
        np.testing.assert_allclose(found, np.array([row[1] for row in rows], dtype), rtol=1e-5, atol=1e-37)
        found = np.asarray(transform(second)(*points))
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(found, np.array([row[2] for row in rows], dtype), rtol=1e-5, atol=1e-30)
