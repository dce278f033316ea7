"""`corejax.experimental.ode`: ordinary differential equations, differentiable by the adjoint equation.

The method is the one of order 5 by Dormand and Prince (1980), with step sizes controlled by its embedded error, and
the first step of Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section II.4. Between steps
the solution is a polynomial of degree 4 through both ends, their slopes and the middle (Shampine 1986). Gradients
solve the adjoint equation backwards in time (Pontryagin 1962; Chen et al., Neural Ordinary Differential Equations,
2018), so that no intermediate steps are stored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Tracer, dtypes, fun_name, get_aval, tree

__all__ = ["odeint"]

_ORDER = 5
_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
_WEIGHTS = [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
_FOURTH = np.array([5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])
_FIFTH = np.array([*_WEIGHTS[-1], 0.0])
_MIDDLE = 0.5 * np.array(
    [
        6025192743 / 30085553152,
        0.0,
        51252292925 / 65400821598,
        -2691868925 / 45128329728,
        187940372067 / 1594534317056,
        -1776094331 / 19743644256,
        11237099 / 235043384,
    ]
)


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: Any = np.inf,
    hmax: Any = np.inf,
) -> Any:
    """Solve the initial value problem `dy/dt = func(y, t, *args)`, `y(t[0]) = y0`, at the times `t`.

    Args:
        func: a function `(y, t, *args) -> dy/dt`. The result has the structure and shapes of y, or another structure
            with as many numbers in the same order, such as a list of components.
        y0: the initial value, a pytree of floating-point or complex arrays.
        t: the times, an increasing floating-point vector of at least one element.
        args: further arguments of `func`, pytrees of arrays. They have gradients, as have arrays that `func` closes
            over.
        rtol: the relative tolerance; the error of a step is at most `atol + rtol |y|`.
        atol: the absolute tolerance.
        mxstep: the maximum number of steps between two times; if it is reached, the solution is extrapolated.
        hmax: the maximum step size.

    Returns:
        A pytree of the structure of `y0`; each array has a new first axis for the times.

    Raises:
        TypeError: `t` is not a floating-point vector; `y0` has leaves that are not floating-point; a tolerance is not
            a positive number; `func` is not callable, or returns another shape than that of y.
        ValueError: there are no times; or concrete times are not in ascending order.

    Example:
        >>> import corejax.numpy as jnp
        >>> from corejax.experimental.ode import odeint
        >>> ys = odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0]))
        >>> round(float(ys[1]), 5)
        0.36788
    """
    if not callable(func):
        raise TypeError(f"odeint: func is a function of y, t and args, got {func!r} of type {type(func).__name__}")
    name = fun_name(func)
    _check(name, y0, t, {"rtol": rtol, "atol": atol, "hmax": hmax, "mxstep": mxstep})
    y0 = tree.tree_map(jnp.asarray, y0)
    t = jnp.asarray(t)
    converted, consts = corejax.closure_convert(func, y0, t[0], *args)
    return _solver(converted, name, (float(rtol), float(atol), mxstep, hmax))(y0, t, (*args, *consts))


def _solver(func: Callable[..., Any], name: str, options: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the jitted solver for a converted function; the solver is cached as an attribute of the function.

    `closure_convert` returns the same function for the same program, so a second call with the same function neither
    traces nor compiles.
    """
    solvers: dict[Any, Callable[..., Any]] = vars(func).setdefault("solvers", {})
    if options in solvers:
        return solvers[options]

    @corejax.jit
    def odeint(y0: Any, t: Any, args: Any) -> Any:
        flat0, unravel = corejax.flatten_util.ravel_pytree(y0)

        def flat_func(y: Any, t: Any, args: Any) -> Any:
            slope = func(unravel(y), t, *args)
            _check_slope(name, slope, unravel(y))
            return corejax.flatten_util.ravel_pytree(slope)[0].astype(y.dtype)

        return corejax.vmap(unravel)(_solved((flat_func, *options), flat0, t, args))

    return solvers.setdefault(options, odeint)


def _check(name: str, y0: Any, t: Any, numbers: dict[str, Any]) -> None:
    for key, value in numbers.items():
        if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not value > 0:
            raise TypeError(f"odeint of {name}: {key} is a positive number, got {value!r}")
    for x in tree.tree_leaves(y0):
        if not dtypes.is_inexact(get_aval(x).dtype):
            raise TypeError(f"odeint of {name}: y0 has floating-point leaves, got {get_aval(x).str_short()}")
    aval = get_aval(t) if not isinstance(t, list | tuple) else get_aval(np.asarray(t))
    if aval.ndim != 1 or not dtypes.is_float(aval.dtype):
        raise TypeError(f"odeint of {name}: t is a floating-point array of one axis, got {aval.str_short()}")
    if not aval.shape[0]:
        raise ValueError(f"odeint of {name}: t has one time at least, got none")
    if not isinstance(t, Tracer) and np.any(np.diff(np.asarray(t)) < 0):
        raise ValueError(f"odeint of {name}: times increase, got {t}; to integrate backwards in time, solve for -t")


def _check_slope(name: str, slope: Any, y: Any) -> None:
    got, wanted = tree.tree_structure(slope), tree.tree_structure(y)
    if got != wanted:
        sizes = [sum(get_aval(x).size for x in tree.tree_leaves(each)) for each in (slope, y)]
        if sizes[0] == sizes[1]:  # a list of components for a vector
            return
        raise TypeError(f"odeint of {name}: dy/dt has the structure of y, {wanted}, got {got}")
    for dy, each in zip(tree.tree_leaves(slope), tree.tree_leaves(y), strict=True):
        if get_aval(dy).shape != get_aval(each).shape:
            raise TypeError(
                f"odeint of {name}: dy/dt has the shape of y, {get_aval(each).str_short()}, got "
                f"{get_aval(dy).str_short()}"
            )


# -- forwards ----------------------------------------------------------------------------------------------------


def _solve(options: Any, y0: Any, ts: Any, args: Any) -> Any:
    """Return the solution at the times, with a new first axis."""
    func, rtol, atol, mxstep, hmax = options

    def slope(y: Any, t: Any) -> Any:
        return func(y, t, args)

    f0 = slope(y0, ts[0])
    dt = jnp.clip(_first_step(slope, ts[0], y0, rtol, atol, f0), 0.0, hmax)
    coefficients = jnp.stack([jnp.zeros_like(y0)] * 4 + [y0])

    def until(state: Any, target: Any) -> tuple[Any, Any]:
        def unfinished(carry: Any) -> Any:
            i, (_, _, t, dt, _, _) = carry
            return (t < target) & (i < mxstep) & (dt > 0)

        _, state = lax.while_loop(unfinished, advance, (jnp.zeros((), jnp.int32), state))
        _, _, t, _, last_t, coefficients = state
        span = jnp.where(t == last_t, 1.0, t - last_t)
        return state, jnp.polyval(coefficients, ((target - last_t) / span).astype(coefficients.dtype))

    def advance(carry: Any) -> Any:
        i, (y, f, t, dt, last_t, coefficients) = carry
        new_y, new_f, error, stages = _step(slope, y, f, t, dt)
        ratio = _norm(error / (atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(new_y))))
        middle = y + dt * jnp.tensordot(_MIDDLE.astype(y.dtype), stages, 1)
        fitted = _polynomial(y, new_y, middle, f, new_f, dt)
        accepted = ratio <= 1.0
        new = (new_y, new_f, t + dt, t, fitted)
        old = (y, f, t, last_t, coefficients)
        y, f, t, last_t, coefficients = tree.tree_map(lambda a, b: jnp.where(accepted, a, b), new, old)
        dt = jnp.clip(_next_step(dt, ratio), 0.0, hmax)
        return i + 1, (y, f, t, dt, last_t, coefficients)

    state = (y0, f0, ts[0], dt, ts[0], coefficients)
    _, ys = lax.scan(until, state, ts[1:])
    return jnp.concatenate([y0[None], ys])


def _step(slope: Callable[..., Any], y: Any, f: Any, t: Any, dt: Any) -> tuple[Any, Any, Any, Any]:
    """Take one step; return y, its slope, the error estimate, and all stages."""
    stages = [f]
    for time, weights in zip(_TIMES, _WEIGHTS, strict=True):
        at = y + dt * sum(jnp.asarray(w, y.dtype) * k for w, k in zip(weights, stages, strict=True) if w)
        stages.append(slope(at, t + dt * jnp.asarray(time, t.dtype)))
    all_stages = jnp.stack(stages)
    error = dt * jnp.tensordot((_FIFTH - _FOURTH).astype(y.dtype), all_stages, 1)
    return y + dt * jnp.tensordot(_FIFTH.astype(y.dtype), all_stages, 1), stages[-1], error, all_stages


def _polynomial(y0: Any, y1: Any, middle: Any, dy0: Any, dy1: Any, dt: Any) -> Any:
    """Return the coefficients, highest power first, of the interpolating polynomial of degree 4 over [0, 1]."""
    a = 2 * dt * (dy1 - dy0) - 8 * (y0 + y1) + 16 * middle
    b = dt * (5 * dy0 - 3 * dy1) + 18 * y0 + 14 * y1 - 32 * middle
    c = dt * (dy1 - 4 * dy0) - 11 * y0 - 5 * y1 + 16 * middle
    return jnp.stack([a, b, c, dt * dy0, y0])


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.mean(jnp.square(jnp.abs(x)))) if x.size else jnp.zeros((), jnp.abs(x).dtype)


def _next_step(dt: Any, ratio: Any) -> Any:
    """Return the next step size: 0.9 times the optimum, limited to a fifth and ten times the last step."""
    least = jnp.where(ratio < 1, 1.0, 0.2)
    factor = jnp.clip(0.9 * jnp.where(ratio == 0, 1.0, ratio) ** (-1.0 / _ORDER), least, 10.0)
    return dt * jnp.where(ratio == 0, 10.0, factor).astype(dt.dtype)


def _first_step(slope: Callable[..., Any], t0: Any, y0: Any, rtol: float, atol: float, f0: Any) -> Any:
    scale = atol + jnp.abs(y0) * rtol
    d0, d1 = _norm(y0 / scale), _norm(f0 / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(small, 1e-6, 0.01 * d0 / jnp.where(small, 1.0, d1))
    f1 = slope(y0 + h0.astype(y0.dtype) * f0, t0 + h0.astype(t0.dtype))
    d2 = _norm((f1 - f0) / scale) / h0
    largest = jnp.maximum(d1, d2)
    flat = largest <= 1e-15
    h1 = jnp.where(flat, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.where(flat, 1.0, largest)) ** (1.0 / _ORDER))
    return jnp.minimum(100.0 * h0, h1).astype(t0.dtype)


# -- backwards ---------------------------------------------------------------------------------------------------


@functools.partial(corejax.custom_vjp, nondiff_argnums=(0,))
def _solved(options: Any, y0: Any, ts: Any, args: Any) -> Any:
    return _solve(options, y0, ts, args)


def _forward(options: Any, y0: Any, ts: Any, args: Any) -> tuple[Any, Any]:
    ys = _solved(options, y0, ts, args)  # has its own VJP rule, for second derivatives
    return ys, (ys, ts, args)


def _backward(options: Any, residuals: Any, ct: Any) -> tuple[Any, Any, Any]:
    """Solve the adjoint equation from each time to the one before, adding the cotangents at the times."""
    func = options[0]
    ys, ts, args = residuals
    leaves, structure = tree.tree_flatten(args)
    is_inexact = [dtypes.is_inexact(get_aval(x).dtype) for x in leaves]

    def with_moving(moving: Any) -> Any:
        values = iter(moving)
        return tree.tree_unflatten(
            structure, [next(values) if m else x for x, m in zip(leaves, is_inexact, strict=True)]
        )

    moving = [x for x, m in zip(leaves, is_inexact, strict=True) if m]

    def augmented(state: Any, s: Any, moving: Any) -> Any:
        y, y_bar, *_ = state
        slope, pull = corejax.vjp(lambda y, t, m: func(y, t, with_moving(m)), y, -s, moving)
        return (-slope, *pull(y_bar))

    def back(carry: Any, inputs: Any) -> tuple[Any, Any]:
        y_bar, t_bar, args_bar = carry
        y, t, earlier, ct_here, ct_before = inputs
        ts_bar = jnp.real(jnp.sum(func(y, t, args) * ct_here)).astype(t.dtype)
        start = (y, y_bar, t_bar - ts_bar, args_bar)
        _, y_bar, t_bar, args_bar = tree.tree_map(
            lambda x: x[1], _augmented_solution(options, augmented, start, jnp.stack([-t, -earlier]), moving)
        )
        return (y_bar + ct_before, t_bar, args_bar), ts_bar

    start = (ct[-1], jnp.zeros((), ts.dtype), tree.tree_map(jnp.zeros_like, moving))
    inputs = (ys[1:], ts[1:], ts[:-1], ct[1:], ct[:-1])
    (y_bar, t_bar, args_bar), ts_bar = lax.scan(back, start, inputs, reverse=True)
    bars = iter(args_bar)
    cotangents = [next(bars) if m else None for m in is_inexact]
    return y_bar, jnp.concatenate([t_bar[None], ts_bar]), tree.tree_unflatten(structure, cotangents)


def _augmented_solution(options: Any, func: Callable[..., Any], start: Any, ts: Any, moving: Any) -> Any:
    flat, unravel = corejax.flatten_util.ravel_pytree(start)

    def flat_func(state: Any, t: Any, moving: Any) -> Any:
        return corejax.flatten_util.ravel_pytree(func(unravel(state), t, moving))[0]

    return corejax.vmap(unravel)(_solved((flat_func, *options[1:]), flat, ts, moving))


_solved.defvjp(_forward, _backward)
