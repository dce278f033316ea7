"""A higher-order primitive written with `corejax.extend` alone, as an author would write it: x = f(a, x).

Its derivatives come from the implicit function theorem, so its rules are no copies of a call's. Evaluation and types
are its own; compiled code is derived from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    add_tangents,
    batch_jaxpr,
    close_over_consts,
    dce_jaxpr,
    eval_jaxpr_on_host,
    get_aval,
    inline_closed,
    is_undef_primal,
    jvp_jaxpr,
    jvp_rules,
    merge_lists,
    move_batch_axis,
    partition_list,
    split_list,
    stage,
    stage_closed,
    transpose_jaxpr,
    transpose_rules,
    vmap_rules,
    zeros_like,
)
from corejax.extend.transforms import zero_cotangent

F = np.float32


def fixed_point(f: Callable[[Any], Any], x: Any) -> Any:
    """An array x = f(x), found by applying f to a first guess; f may close over arrays."""
    jaxpr, consts = stage(lambda x: [f(x)], [get_aval(x)])
    program = close_over_consts(jaxpr)
    return fixed_point_p.bind(*consts, x, jaxpr=program, num_consts=len(consts))[0]


def _impl(*args: Any, jaxpr: ClosedJaxpr, num_consts: int) -> list[Any]:
    consts, xs = split_list(args, [num_consts])
    for _ in range(200):
        new = eval_jaxpr_on_host(jaxpr, [*consts, *xs])
        change = max((float(np.max(np.abs(a - b), initial=0.0)) for a, b in zip(new, xs, strict=True)), default=0.0)
        xs = new
        if change < 1e-7:
            break
    return xs


def _abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr, num_consts: int) -> list[ShapedArray]:
    return [a.strip_weak_type() for a in avals[num_consts:]]


fixed_point_p = Primitive(
    "test.fixed_point", multiple_results=True, tags=("higher_order",), impl=_impl, abstract_eval=_abstract_eval
)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, num_consts: int) -> Any:
    """dx = (df/da) da + (df/dx) dx is a fixed point too, of a function linear in (da, dx); the guess has no say."""
    outs = fixed_point_p.bind(*primals, jaxpr=jaxpr, num_consts=num_consts)
    consts, consts_dot = primals[:num_consts], tangents[:num_consts]
    nonzeros = [t is not None for t in consts_dot]
    if not any(nonzeros):
        return outs, [None] * len(outs)
    both = [True] * len(outs)
    pushed, _ = jvp_jaxpr(jaxpr, [*nonzeros, *both], instantiate=True)
    linear, _ = dce_jaxpr(pushed, [not b for b in both] + both, instantiate=True)
    fixed = [*consts, *outs, *(t for t in consts_dot if t is not None)]
    outs_dot = fixed_point_p.bind(*fixed, *map(zeros_like, outs), jaxpr=linear, num_consts=len(fixed))
    return outs, outs_dot


def _vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[Any], *, jaxpr: ClosedJaxpr, num_consts: int) -> Any:
    consts, xs = split_list(vals, [num_consts])
    const_dims, x_dims = split_list(dims, [num_consts])
    xs = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(xs, x_dims, strict=True)]
    batched, dims_out = batch_jaxpr(jaxpr, axis_size, [*const_dims, *(0 for _ in xs)], instantiate=True)
    return fixed_point_p.bind(*consts, *xs, jaxpr=batched, num_consts=num_consts), dims_out


def _transpose(cts: Sequence[Any], *operands: Any, jaxpr: ClosedJaxpr, num_consts: int) -> list[Any]:
    """With x = A a + B x: first w = ct + B' w, a fixed point, then A' w."""
    linear = [is_undef_primal(x) for x in operands[:num_consts]]
    is_x = [False] * num_consts + [True] * len(cts)
    pulled, nonzeros = transpose_jaxpr(jaxpr, [*linear, *(True for _ in cts)], [True] * len(cts))
    residuals, _ = partition_list(linear, operands[:num_consts])

    def pull(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Cotangents, None for zero, of the linear constants and of x."""
        outs = inline_closed(pulled, [*residuals, *cts])
        return merge_lists(nonzeros, [None] * nonzeros.count(False), outs)

    def step(*args: Any) -> list[Any]:
        res, given, ws = split_list(args, [len(residuals), len(cts)])
        _, ct_xs = split_list(pull(res, ws), [sum(linear)])
        return list(map(add_tangents, ct_xs, given))

    fixed = [*residuals, *cts]
    x_avals = [a for a, x in zip(jaxpr.in_avals, is_x, strict=True) if x]
    guesses = [zero_cotangent(a) for a in x_avals]
    program = stage_closed(step, [*map(get_aval, fixed), *map(get_aval, guesses)])
    ws = fixed_point_p.bind(*fixed, *guesses, jaxpr=program, num_consts=len(fixed))
    ct_consts, _ = split_list(pull(residuals, ws), [sum(linear)])
    return [*merge_lists(linear, [None] * len(residuals), ct_consts), *(None for _ in cts)]


jvp_rules.register(fixed_point_p, _jvp, symbolic_zeros=True)
vmap_rules.register(fixed_point_p, _vmap)
transpose_rules.register(fixed_point_p, _transpose)

A, X = np.array([0.5, 0.3, 0.7], F), np.zeros(3, F)


def root(a):
    return fixed_point(lambda x: a * jnp.cos(x), X)


def unrolled(a):
    x = X
    for _ in range(60):
        x = a * jnp.cos(x)
    return x


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-4, atol=1e-5)


TRANSFORMS = {
    "value": lambda f: f,
    "jvp": lambda f: lambda a: corejax.jvp(f, (a,), (A,))[1],
    "grad": lambda f: corejax.grad(lambda a: jnp.sum(f(a) ** 2)),
    "jacobian": corejax.jacrev,
    "hessian": lambda f: corejax.hessian(lambda a: jnp.sum(f(a) ** 2)),
    "linearize": lambda f: lambda a: corejax.linearize(f, a)[1](A),
    "checkpoint": lambda f: corejax.grad(corejax.checkpoint(lambda a: jnp.sum(f(a) ** 2))),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_against_unrolling(name):
    transform = TRANSFORMS[name]
    close(transform(root)(A), transform(unrolled)(A))


@pytest.mark.parametrize("name", ["value", "jvp", "grad"])
def test_batched(name):
    batch = np.stack([A, A[::-1], 0.5 * A])
    got = corejax.vmap(TRANSFORMS[name](root))(batch)
    close(got, np.stack([np.asarray(TRANSFORMS[name](unrolled)(a)) for a in batch]))


@pytest.mark.filterwarnings("ignore::corejax.errors.DerivedRuleWarning")
@pytest.mark.parametrize("name", ["value", "grad", "hessian"])
def test_compiled(name):
    close(corejax.jit(TRANSFORMS[name](root))(A), TRANSFORMS[name](unrolled)(A))


def test_closed_over_matrix():
    rng = np.random.default_rng(0)
    m = (0.2 * rng.standard_normal((3, 3))).astype(F)

    def solution(m, b):
        return fixed_point(lambda x: m @ x + b, X)

    want = np.linalg.solve(np.eye(3) - m, A)
    close(solution(m, A), want)
    by_m, by_b = corejax.grad(lambda m, b: jnp.sum(solution(m, b)), argnums=(0, 1))(m, A)
    weights = np.linalg.solve(np.eye(3) - m.T, np.ones(3))
    close(by_b, weights)
    close(by_m, np.outer(weights, want))
