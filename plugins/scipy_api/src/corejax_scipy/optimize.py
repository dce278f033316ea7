"""`corejax.scipy.optimize`: minimise functions of a vector."""

from __future__ import annotations

from collections.abc import Callable as _Callable
from collections.abc import Mapping as _Mapping
from typing import Any as _Any
from typing import NamedTuple as _NamedTuple

from corejax_scipy._arguments import inexact as _inexact
from corejax_scipy._arguments import operand as _operand
from corejax_scipy.optimization.quasi_newton import minimize_bfgs as _minimize_bfgs
from corejax_scipy.optimization.quasi_newton import minimize_lbfgs as _minimize_lbfgs

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(_NamedTuple):
    """The result of `minimize`.

    Attributes:
        x: the minimum that was found.
        success: whether the gradient is as small as requested.
        status: 0 for success, 1 if iterations or evaluations ran out, 3 if a line search found no better point.
        fun: the value at `x`.
        jac: the gradient at `x`.
        hess_inv: an approximation of the inverse Hessian; None for L-BFGS.
        nfev: the number of evaluations of the value.
        njev: the number of evaluations of the gradient.
        nit: the number of iterations.
    """

    x: _Any
    success: _Any
    status: _Any
    fun: _Any
    jac: _Any
    hess_inv: _Any
    nfev: _Any
    njev: _Any
    nit: _Any


_METHODS: dict[str, tuple[_Callable[..., _Any], tuple[str, ...]]] = {
    "bfgs": (_minimize_bfgs, ("maxiter", "norm", "gtol", "line_search_maxiter")),
    "l-bfgs-experimental-do-not-rely-on-this": (
        _minimize_lbfgs,
        ("maxiter", "norm", "maxcor", "ftol", "gtol", "maxfun", "maxgrad", "maxls"),
    ),
}


def minimize(
    fun: _Callable[..., _Any],
    x0: _Any,
    args: tuple[_Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: _Mapping[str, _Any] | None = None,
) -> OptimizeResults:
    """Find a local minimum of a function.

    Args:
        fun: a differentiable function; `fun(x, *args)` returns a real scalar.
        x0: the starting point, a real vector.
        args: further arguments of `fun`.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this", which stores some vectors in place of a matrix.
        tol: the tolerance for the norm of the gradient, unless `options` has `gtol`.
        options: `maxiter`, `gtol` (1e-5), `norm` (the order of the gradient's norm: infinity for "BFGS", 2 for L-BFGS),
            `line_search_maxiter` (10) for "BFGS", and `maxcor` (10), `ftol`, `maxfun`, `maxgrad`, `maxls` (20) for
            L-BFGS.

    Raises:
        TypeError: `fun` is not a function, `args` is not a tuple, `x0` is not an array, `tol` is not a number, or an
            option is unknown.
        ValueError: `method` is unknown, `x0` is not a real vector, or `fun` does not return a real scalar.
    """
    if not callable(fun):
        raise TypeError(f"minimize: fun must be a function, got {fun!r} of type {type(fun).__name__}")
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {args!r} of type {type(args).__name__}")
    key = method.lower() if isinstance(method, str) else ""
    if key not in _METHODS:
        raise ValueError(
            f"minimize: method must be 'BFGS' or 'l-bfgs-experimental-do-not-rely-on-this', got {method!r}"
        )
    solver, known = _METHODS[key]
    chosen = dict(options or {})
    for name in chosen:
        if name not in known:
            raise TypeError(f"minimize: options of {method!r} are {', '.join(known)}; got {name!r}")
    if tol is not None:
        chosen.setdefault("gtol", _operand("minimize", tol, "tol"))
    (x0,) = _inexact("minimize", x0)
    if x0.ndim != 1 or x0.dtype.kind == "c":
        raise ValueError(f"minimize: x0 must be a vector of real numbers, got {x0.aval.str_short()}")
    return OptimizeResults(*solver(lambda x: fun(x, *args), x0, **chosen))
