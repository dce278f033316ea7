"""The primitive of `fixed_point`, and its rules. A parameter holds f as a program `(params, x) -> x`.

All rules follow from three facts:

- The solution x does not depend on the start of the iteration, so that x0 has no derivative.
- Let A be the derivative of f with respect to x, and b = (df/dparams) dparams. The tangent dx solves dx = A dx + b. It
  is a fixed point of a program that is linear in (b, dx), so that the primitive is closed under jvp, to any order.
- A program B p + A x, which is linear in (p, x), has the fixed point (I - A)^-1 B p. The transpose of this map takes a
  cotangent c to B^T s, where s solves s = A^T s + c. This is again a fixed point, so that the primitive is closed under
  transposition.

The iterations are not recorded, so that memory does not depend on their number. Both linear iterations converge at the
rate of the original iteration near its end, because A and its transpose have the same eigenvalues.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    PartialEvalTrace,
    Primitive,
    ShapedArray,
    Var,
    abstract_eval_rules,
    add_tangents,
    batch_jaxpr,
    dce_jaxpr,
    eval_jaxpr_on_host,
    impl_rules,
    inline_closed,
    inline_equations,
    instantiate,
    is_undef_primal,
    jaxpr_as_fun,
    jvp_flat,
    jvp_jaxpr,
    jvp_rules,
    memoised,
    move_batch_axis,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    partition_list,
    spread_list,
    stage_closed,
    transpose_jaxpr,
    transpose_rules,
    vmap_rules,
    zeros_like,
)

fixed_point_p = Primitive(
    "fixed_point.fixed_point",
    multiple_results=True,
    tags=("higher_order",),
    doc=(
        "The fixed point of a program (params, x) -> x. Operands: the params, then where x starts. Params: jaxpr, the "
        "program; num_params; tol, rtol: x has converged when each leaf changes by at most tol * (1 + its maximum) "
        "+ rtol * the maximum of all; max_steps, after which it is NaN if it has not; batch_ndim: leading axes of x, "
        "over which there are separate problems."
    ),
)

# -- evaluation --------------------------------------------------------------------------------------------------


def step_program(
    jaxpr: ClosedJaxpr, *, num_params: int, tol: float, rtol: float, max_steps: int, batch_ndim: int
) -> ClosedJaxpr:
    """Return the program of one iteration: from (params, x) to x, and a mask of the unfinished problems."""

    def flat(*args: Any) -> list[Any]:
        import corejax.numpy as jnp

        def size(v: Any) -> Any:
            return jnp.max(abs(v), axis=tuple(range(batch_ndim, v.ndim)), initial=0)

        xs, news = args[num_params:], inline_closed(jaxpr, args)
        sizes = [size(new) for new in news]
        overall: Any = functools.reduce(jnp.maximum, sizes) if sizes else 0
        moving: Any = np.zeros((), np.bool_)
        for x, new, own in zip(xs, news, sizes, strict=True):
            # The comparison is False for NaN, which further iterations do not change.
            moving = moving | (size(new - x) > tol * (1 + own) + rtol * overall)
        return [*news, moving]

    key = ("fixed_point step", num_params, tol, rtol, batch_ndim)
    return memoised(jaxpr, key, lambda: stage_closed(flat, jaxpr.in_avals))


def gave_up_program(step: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program from a step's results to x, with NaN for problems that have not converged."""

    def flat(*args: Any) -> list[Any]:
        import corejax.numpy as jnp

        *xs, moving = args
        shapes = [moving.shape + (1,) * (x.ndim - moving.ndim) for x in xs]
        return [jnp.where(moving.reshape(shape), np.nan, x) for x, shape in zip(xs, shapes, strict=True)]

    return memoised(step, ("fixed_point gave up",), lambda: stage_closed(flat, step.out_avals))


@impl_rules.register(fixed_point_p)
def _impl(*arrays: Any, jaxpr: ClosedJaxpr, num_params: int, max_steps: int, **settings: Any) -> list[Any]:
    """Iterate in a Python loop over NumPy arrays."""
    step = step_program(jaxpr, num_params=num_params, max_steps=max_steps, **settings)
    params, xs, moving = arrays[:num_params], list(arrays[num_params:]), np.True_
    for _ in range(max_steps):
        *xs, moving = eval_jaxpr_on_host(step, [*params, *xs])
        if not moving.any():
            return xs
    return eval_jaxpr_on_host(gave_up_program(step), [*xs, moving])


@abstract_eval_rules.register(fixed_point_p)
def _abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr, num_params: int, **settings: Any) -> list[ShapedArray]:
    """Return the types of x, strongly typed; check that the operands match the program's arguments."""
    given, taken = ([(a.shape, a.dtype) for a in each] for each in (avals, jaxpr.in_avals))
    if given != taken or taken[num_params:] != [(a.shape, a.dtype) for a in jaxpr.out_avals]:
        shown = [", ".join(a.str_short() for a in each) for each in (jaxpr.in_avals, jaxpr.out_avals, avals)]
        raise TypeError(
            f"fixed_point of a program ({shown[0]}) -> ({shown[1]}) with {num_params} params, got ({shown[2]})"
        )
    return [a.strip_weak_type() for a in avals[num_params:]]


# -- differentiation ---------------------------------------------------------------------------------------------


def _linearized(jaxpr: ClosedJaxpr, num_params: int) -> ClosedJaxpr:
    """Return the program (params, x, b, dx) -> A dx + b."""
    num_x = len(jaxpr.out_avals)

    def make() -> ClosedJaxpr:
        pushed, _ = jvp_jaxpr(jaxpr, [False] * num_params + [True] * num_x, instantiate=True)
        only_tangents, _ = dce_jaxpr(pushed, [False] * num_x + [True] * num_x, instantiate=True)

        def flat(*args: Any) -> list[Any]:
            where, b, dx = args[: -2 * num_x], args[-2 * num_x : -num_x], args[-num_x:]
            return list(map(add_tangents, inline_closed(only_tangents, [*where, *dx]), b))

        tangent_avals = [a.strip_weak_type() for a in jaxpr.in_avals[num_params:]]
        return stage_closed(flat, [*jaxpr.in_avals, *tangent_avals, *tangent_avals])

    return memoised(jaxpr, ("fixed_point linearized", num_params), make)


@jvp_rules.register(fixed_point_p, symbolic_zeros=True)
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, num_params: int, **settings: Any
) -> Any:
    """Solve dx = A dx + b, with the derivatives of f at the solution."""
    xs = fixed_point_p.bind(*primals, jaxpr=jaxpr, num_params=num_params, **settings)
    at = [*primals[:num_params], *xs]
    _, bs = jvp_flat(jaxpr_as_fun(jaxpr), at, [*tangents[:num_params], *(None for _ in xs)])
    if all(b is None for b in bs):
        return xs, bs
    bs = [instantiate(b, x) for b, x in zip(bs, xs, strict=True)]
    settings = {**_relative(settings), "jaxpr": _linearized(jaxpr, num_params), "num_params": len(at) + len(bs)}
    return xs, fixed_point_p.bind(*at, *bs, *map(zeros_like, xs), **settings)


def _relative(settings: dict[str, Any]) -> dict[str, Any]:
    """Make the tolerance relative to all leaves together.

    The solution of a linear system may have any scale, and some of its leaves may be zero.
    """
    return {**settings, "tol": 0.0, "rtol": settings["tol"] + settings["rtol"]}


@transpose_rules.register(fixed_point_p)
def _transpose(cts: Sequence[Any], *operands: Any, jaxpr: ClosedJaxpr, num_params: int, **settings: Any) -> list[Any]:
    """Solve s = A^T s + c, and return B^T s."""
    num_x = len(cts)
    linear = [is_undef_primal(p) for p in operands[:num_params]]
    if not any(linear):
        return [None] * len(operands)
    back, nonzeros = transpose_jaxpr(jaxpr, [*linear, *(True for _ in cts)], [True] * num_x)
    known = partition_list(linear, operands[:num_params])[0]

    def pulled(known: Sequence[Any], s: Sequence[Any]) -> list[Any]:
        return spread_list(nonzeros, inline_closed(back, [*known, *s]))

    def flat(*args: Any) -> list[Any]:
        known, c, s = args[: -2 * num_x], args[-2 * num_x : -num_x], args[-num_x:]
        return list(map(add_tangents, c, pulled(known, s)[-num_x:]))

    avals = [*back.in_avals, *back.in_avals[len(known) :]]
    program = memoised(back, ("fixed_point transposed",), lambda: stage_closed(flat, avals))
    settings = {**_relative(settings), "jaxpr": program, "num_params": len(known) + num_x}
    s = fixed_point_p.bind(*known, *cts, *map(zeros_like, cts), **settings)
    return [*spread_list(linear, pulled(known, s)[: sum(linear)]), *(None for _ in cts)]


# -- batching, partial evaluation --------------------------------------------------------------------------------


@vmap_rules.register(fixed_point_p)
def _vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[Any], *, jaxpr: ClosedJaxpr, **settings: Any) -> Any:
    """Iterate all problems of the batch together, until the last one has converged."""
    num_params, batch_ndim = settings["num_params"], settings["batch_ndim"]
    program, _ = batch_jaxpr(jaxpr, axis_size, [*dims[:num_params], *(0 for _ in jaxpr.out_avals)], instantiate=True)
    starts = zip(vals[num_params:], dims[num_params:], strict=True)
    xs = [move_batch_axis(axis_size, d, 0, x) for x, d in starts]
    outs = fixed_point_p.bind(*vals[:num_params], *xs, jaxpr=program, **{**settings, "batch_ndim": batch_ndim + 1})
    return outs, [0] * len(outs)


@partial_eval_rules.register(fixed_point_p)
def _partial_eval(
    trace: PartialEvalTrace, args: Sequence[Any], *, jaxpr: ClosedJaxpr, num_params: int, **settings: Any
) -> list[Any]:
    """Mark all results as unknown, and hoist the part of f that depends only on known params out of the iteration."""
    params, xs = args[:num_params], args[num_params:]
    unknowns = [trace.is_unknown(p) for p in params]
    known, rest, _, _ = partial_eval_jaxpr(jaxpr, [*unknowns, *(True for _ in xs)], instantiate=True)
    now, later = partition_list(unknowns, params)
    later = [*inline_closed(known, now), *later]
    return trace.record(fixed_point_p, [*later, *xs], {"jaxpr": rest, "num_params": len(later), **settings})


@partial_eval_jaxpr_rules.register(fixed_point_p)
def _partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split an equation: the part of f that depends only on known params becomes equations before it."""
    num_params = eqn.params["num_params"]
    params, xs = eqn.invars[:num_params], eqn.invars[num_params:]
    flags = unknowns[:num_params]
    known, rest, _, _ = partial_eval_jaxpr(eqn.params["jaxpr"], [*flags, *(True for _ in xs)], instantiate=True)
    if known.consts:  # the enclosing program cannot bind constants, so that nothing is hoisted
        known_in = [v for v, unknown in zip(eqn.invars, unknowns, strict=True) if not unknown and type(v) is Var]
        return None, eqn, [True] * len(eqn.outvars), list(dict.fromkeys(known_in))
    now, later = partition_list(flags, params)
    hoisted, found = inline_equations(known, now)
    later = [*found, *later]
    solve = eqn.replace(invars=[*later, *xs], params={**eqn.params, "jaxpr": rest, "num_params": len(later)})
    starts = partition_list(unknowns[num_params:], xs)[0]
    residuals = [v for v in dict.fromkeys([*found, *starts]) if type(v) is Var]
    return hoisted, solve, [True] * len(eqn.outvars), residuals


__all__ = ["fixed_point_p", "gave_up_program", "step_program"]
