"""Quasi-Newton methods: BFGS, and L-BFGS, which stores some pairs of vectors in place of a matrix.

Source: Nocedal and Wright (2006), algorithms 6.1 and 7.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import corejax
import corejax.numpy as jnp
from corejax.extend import dtypes, tree
from corejax_lax_basic import lax
from corejax_scipy.optimization.line_search import dot, line_search

_HIGHEST = lax.Precision.HIGHEST


class _State(NamedTuple):
    """The state of the iterations.

    Attributes:
        x: the last point.
        value: the value at `x`.
        gradient: the gradient at `x`.
        memory: the method's approximation of the inverse Hessian.
        converged: whether the gradient is small, or the last step changed the value too little.
        failed: whether the line search found no better point.
        evaluations: the number of evaluations.
        iterations: the number of iterations.
        change: the relative decrease of the value by the last step.
    """

    x: Any
    value: Any
    gradient: Any
    memory: Any
    converged: Any
    failed: Any
    evaluations: Any
    iterations: Any
    change: Any


def _size(x: Any, norm: Any) -> Any:
    """Return a vector's norm, of any order from 1 to infinity."""
    if norm == math.inf:
        return jnp.max(jnp.abs(x), initial=0.0)
    return jnp.sum(jnp.abs(x) ** norm) ** (1 / norm)


def _first(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return value and gradient, after checking that the function returns a real scalar."""
    out = corejax.eval_shape(fun, x)
    if getattr(out, "shape", None) != () or not dtypes.is_inexact(out.dtype) or dtypes.is_complex(out.dtype):
        raise ValueError(f"minimize: fun must return a real floating-point scalar, got {out!r}")
    return corejax.value_and_grad(fun)(x)


def _iterated(
    fun: Callable[[Any], Any],
    x0: Any,
    memory: Any,
    direction: Callable[[Any, Any], Any],
    update: Callable[[Any, Any, Any, Any], Any],
    *,
    maxiter: Any,
    norm: Any,
    gtol: Any,
    searches: int,
    maxfun: Any = math.inf,
    ftol: Any = 0.0,
) -> _State:
    """Iterate line searches along `direction(memory, gradient)`, and update the memory by each step."""
    value, gradient = _first(fun, x0)

    def going(state: _State) -> Any:
        more = (state.iterations < maxiter) & (state.evaluations < maxfun)
        return ~state.converged & ~state.failed & more

    def iterate(state: _State) -> _State:
        p = direction(state.memory, state.gradient)
        downhill = dot(p, state.gradient) < 0
        p = jnp.where(downhill, p, -state.gradient)
        size = jnp.sqrt(dot(state.gradient, state.gradient))
        length = jnp.where(state.iterations == 0, jnp.minimum(1.0, 1.0 / jnp.where(size > 0, size, 1.0)), 1.0)
        step = line_search(fun, state.x, p, state.value, state.gradient, length, searches)
        s, y = step.length * p, step.gradient - state.gradient
        curved = dot(s, y) > 0
        updated = update(state.memory, s, jnp.where(curved, y, 1.0), state.iterations)
        memory = tree.tree_map(lambda new, old: jnp.where(curved, new, old), updated, state.memory)
        scale = jnp.maximum(jnp.maximum(jnp.abs(state.value), jnp.abs(step.value)), 1.0)
        return _State(
            state.x + s,
            step.value,
            step.gradient,
            memory,
            (_size(step.gradient, norm) < gtol) | (step.found & ((state.value - step.value) / scale < ftol)),
            ~step.found & ~(step.value < state.value),
            state.evaluations + step.evaluations,
            state.iterations + 1,
            (state.value - step.value) / scale,
        )

    small = _size(gradient, norm) < gtol
    zero = jnp.asarray(0)
    start = _State(x0, value, gradient, memory, small, jnp.asarray(False), zero + 1, zero, jnp.zeros_like(value))
    return lax.while_loop(going, iterate, start)  # type: ignore[no-any-return]  # it returns the type of `iterate`


def _results(state: _State, inverse: Any) -> tuple[Any, ...]:
    """Return the results in the order of `OptimizeResults`."""
    success = state.converged & ~state.failed
    status = jnp.where(success, 0, jnp.where(state.failed, 3, 1))
    counts = state.evaluations, state.evaluations, state.iterations
    return (state.x, success, status, state.value, state.gradient, inverse, *counts)


def minimize_bfgs(
    fun: Callable[[Any], Any],
    x0: Any,
    maxiter: int | None = None,
    norm: Any = math.inf,
    gtol: Any = 1e-5,
    line_search_maxiter: int = 10,
) -> tuple[Any, ...]:
    """Minimise by BFGS, which updates an approximation of the inverse Hessian after each step."""
    identity = jnp.eye(x0.shape[0], dtype=x0.dtype)

    def direction(inverse: Any, gradient: Any) -> Any:
        return -jnp.matmul(inverse, gradient, precision=_HIGHEST)

    def update(inverse: Any, s: Any, y: Any, iterations: Any) -> Any:
        rho = 1.0 / dot(y, s)
        # Scale the first matrix to the size of the inverse Hessian.
        scaled = jnp.where(iterations == 0, inverse * (dot(y, s) / dot(y, y)), inverse)
        w = identity - rho * jnp.outer(s, y)
        middle = jnp.matmul(jnp.matmul(w, scaled, precision=_HIGHEST), w.T, precision=_HIGHEST)
        return middle + rho * jnp.outer(s, s)

    steps = 200 * x0.size if maxiter is None else maxiter
    state = _iterated(
        fun, x0, identity, direction, update, maxiter=steps, norm=norm, gtol=gtol, searches=line_search_maxiter
    )
    return _results(state, state.memory)


def minimize_lbfgs(
    fun: Callable[[Any], Any],
    x0: Any,
    maxiter: float | None = None,
    norm: Any = 2,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-05,
    maxfun: float | None = None,
    maxgrad: float | None = None,
    maxls: int = 20,
) -> tuple[Any, ...]:
    """Minimise by L-BFGS, which stores the last `maxcor` steps and changes of the gradient."""
    empty = jnp.zeros((maxcor, x0.shape[0]), x0.dtype)
    memory = (empty, empty, jnp.zeros(maxcor, x0.dtype), jnp.ones((), x0.dtype))

    def direction(memory: Any, gradient: Any) -> Any:
        """Run the two loops over the pairs; unused pairs have `rho = 0` and change nothing."""
        steps, changes, rho, scale = memory
        q, alphas = gradient, []
        for i in range(maxcor - 1, -1, -1):
            alpha = rho[i] * dot(steps[i], q)
            q = q - alpha * changes[i]
            alphas.append(alpha)
        q = scale * q
        for i, alpha in enumerate(reversed(alphas)):
            q = q + (alpha - rho[i] * dot(changes[i], q)) * steps[i]
        return -q

    def update(memory: Any, s: Any, y: Any, iterations: Any) -> Any:
        steps, changes, rho, _ = memory

        def pushed(rows: Any, row: Any) -> Any:
            return jnp.concatenate([rows[1:], row[None]])

        return pushed(steps, s), pushed(changes, y), pushed(rho, 1.0 / dot(y, s)), dot(y, s) / dot(y, y)

    steps = math.inf if maxiter is None else maxiter
    most = min(math.inf if m is None else m for m in (maxfun, maxgrad))
    state = _iterated(
        fun, x0, memory, direction, update, maxiter=steps, norm=norm, gtol=gtol, searches=maxls, maxfun=most, ftol=ftol
    )
    return _results(state, None)
