"""`corejax.scipy.optimize`: minima of functions of a vector."""

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
    """Where a minimum was found.

    Attributes:
        x: there.
        success: whether the gradient is as small as asked.
        status: 0 for success, 1 where iterations or evaluations ran out, 3 where a line search found nothing better.
        fun, jac: value and gradient.
        hess_inv: approximation of the inverse of the Hessian; None for L-BFGS.
        nfev, njev: how often value and gradient were computed.
        nit: iterations.
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


_METHODS = {
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
    """A local minimum of a function.

    Args:
        fun: `fun(x, *args)`, a real scalar, which has a gradient.
        x0: where to begin, a real vector.
        args: further arguments.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this", which keeps some vectors in place of a matrix.
        tol: how small the gradient shall be, unless `options` has `gtol`.
        options: `maxiter`, `gtol` (1e-5), `norm` (of the gradient; infinity, or 2) and for "BFGS" `line_search_maxiter`
            (10), for the other one `maxcor` (10), `ftol`, `maxfun`, `maxgrad`, `maxls` (20).

    Raises:
        TypeError: `fun` is no function, `args` no tuple, `x0` no array, `tol` no number, or there is no such option.
        ValueError: there is no such method, `x0` is no real vector, or `fun` gives no real scalar.
    """
    if not callable(fun):
        raise TypeError(f"minimize: fun is a function, got {fun!r} of type {type(fun).__name__}")
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args is a tuple, got {args!r} of type {type(args).__name__}")
    key = method.lower() if isinstance(method, str) else ""
    if key not in _METHODS:
        raise ValueError(f"minimize: method is 'BFGS' or 'l-bfgs-experimental-do-not-rely-on-this', got {method!r}")
    solver, known = _METHODS[key]
    chosen = dict(options or {})
    for name in chosen:
        if name not in known:
            raise TypeError(f"minimize: options of {method!r} are {', '.join(known)}; got {name!r}")
    if tol is not None:
        chosen.setdefault("gtol", _operand("minimize", tol, "tol"))
    (x0,) = _inexact("minimize", x0)
    if x0.ndim != 1 or x0.dtype.kind == "c":
        raise ValueError(f"minimize: x0 is a vector of real numbers, got {x0.aval.str_short()}")
    return OptimizeResults(*solver(lambda x: fun(x, *args), x0, **chosen))
