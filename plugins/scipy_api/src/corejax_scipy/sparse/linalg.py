"""`corejax.scipy.sparse.linalg`: iterative solvers of `A x = b`, where `A` may be a function.

Derivatives do not differentiate the iterations. They solve one more system with `A` or its transpose. Values may be
pytrees; the solvers work on one vector of all their elements.
"""

from __future__ import annotations

from collections.abc import Callable as _Callable
from typing import Any as _Any

import corejax.numpy as _jnp
from corejax.extend import dtypes as _dtypes
from corejax.extend import is_array_like as _is_array_like
from corejax.extend import tree as _tree
from corejax.flatten_util import ravel_pytree as _ravel_pytree
from corejax_lax_basic import lax as _lax
from corejax_scipy._arguments import operand as _operand
from corejax_scipy._arguments import static_int as _static_int
from corejax_scipy.sparse._methods import bicgstab_vectors as _bicgstab_vectors
from corejax_scipy.sparse._methods import cg_vectors as _cg_vectors
from corejax_scipy.sparse._methods import gmres_vectors as _gmres_vectors

__all__ = ["bicgstab", "cg", "gmres"]


def _operator(name: str, what: str, f: _Any, b: _Any) -> _Callable[[_Any], _Any]:
    """Return a function, which may be the product with a square matrix that has a row for each element of `b`."""
    if callable(f):
        function: _Callable[[_Any], _Any] = f
        return function
    if _is_array_like(f) or hasattr(type(f), "__matmul__"):
        shape: tuple[_Any, ...] = getattr(f, "shape", ())
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"{name}: {what} must be a function or a square matrix, got one of shape {tuple(shape)}")
        given = getattr(b, "shape", None)
        if not given or given[0] != shape[0]:
            what_b = f"an array of shape {given}" if given is not None else f"a pytree {_tree.tree_structure(b)}"
            raise ValueError(
                f"{name}: {what} of shape {tuple(shape)} requires an array b [{shape[0]}, ...], but b is {what_b}"
            )
        return lambda x: f @ x
    raise TypeError(f"{name}: {what} must be a function or a square matrix, got {f!r} of type {type(f).__name__}")


def _arrays(name: str, what: str, value: _Any) -> _Any:
    """Convert an argument to a pytree of floating-point or complex arrays."""

    def leaf(x: _Any) -> _Any:
        if not _is_array_like(x):
            raise TypeError(f"{name}: {what} must be an array or a pytree of arrays, got {x!r} in it")
        x = _lax.asarray(x)
        return x if _dtypes.is_inexact(x.dtype) else x.astype(_dtypes.default_float_dtype())

    return _tree.tree_map(leaf, value)


def _solve(
    name: str, method: _Any, A: _Any, b: _Any, x0: _Any, maxiter: _Any, M: _Any, symmetric: bool, **options: _Any
) -> tuple[_Any, None]:
    """Solve by a method on vectors, with derivatives through the equation."""
    b = _arrays(name, "b", b)
    for what, value in options.items():
        _operand(name, value, what)
    matvec, preconditioner = _operator(name, "A", A, b), None if M is None else _operator(name, "M", M, b)
    start = _tree.tree_map(_jnp.zeros_like, b) if x0 is None else _arrays(name, "x0", x0)
    if _tree.tree_structure(start) != _tree.tree_structure(b):
        raise ValueError(
            f"{name}: x0 and b must be pytrees of one structure, got {_tree.tree_structure(start)} and "
            f"{_tree.tree_structure(b)}"
        )
    shapes = [[x.shape for x in _tree.tree_leaves(t)] for t in (start, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{name}: x0 and b must have arrays of equal shapes, got {shapes[0]} and {shapes[1]}")
    start = _tree.tree_map(lambda x, y: _lax.convert_element_type(x, y.dtype), start, b)
    size = sum(x.size for x in _tree.tree_leaves(b))
    steps = 10 * size if maxiter is None else maxiter

    def solver(matvec: _Any, b: _Any) -> _Any:
        vector, unravel = _ravel_pytree(b)
        first = _ravel_pytree(start)[0].astype(vector.dtype)

        def on_vectors(f: _Any) -> _Any:
            return lambda v: _ravel_pytree(f(unravel(v)))[0].astype(vector.dtype)

        inverse = (lambda v: v) if preconditioner is None else on_vectors(preconditioner)
        return unravel(method(on_vectors(matvec), inverse, vector, first, maxiter=steps, **options))

    symmetric = symmetric and not any(_dtypes.is_complex(x.dtype) for x in _tree.tree_leaves(b))
    return _lax.custom_linear_solve(matvec, b, solver, solver, symmetric=symmetric), None


_CG = """Solve `A x = b` by conjugate gradients, for a Hermitian positive definite `A`.

    Args:
        A: a square matrix, or a linear function that returns the structure and types of `b`.
        b: the right-hand side, an array or a pytree of arrays.
        x0: the starting point, of the structure of `b`; by default 0.
        tol: the iteration ends if the norm of the residual is at most `tol * |b|`, or
        atol: at most `atol`.
        maxiter: the maximal number of iterations, by default 10 for each element of `b`.
        M: a preconditioner that approximates the inverse of `A`, a matrix or a function.

    Returns:
        `(x, None)`.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: a matrix is not square, or `A`, `M` or `x0` does not match `b`.
    """
_BICGSTAB = (
    "Solve `A x = b` by stabilised biconjugate gradients, for a general `A`; arguments and errors are those of `cg`."
)


def _solver(name: str, method: _Any, symmetric: bool, doc: str) -> _Callable[..., tuple[_Any, None]]:
    def function(
        A: _Callable[..., _Any] | _Any,
        b: _Any,
        x0: _Any = None,
        *,
        tol: _Any = 1e-05,
        atol: _Any = 0.0,
        maxiter: int | None = None,
        M: _Callable[..., _Any] | _Any = None,
    ) -> tuple[_Any, None]:
        return _solve(name, method, A, b, x0, maxiter, M, symmetric, tol=tol, atol=atol)

    _lax.named(function, name, doc)
    return function


cg = _solver("cg", _cg_vectors, True, _CG)
bicgstab = _solver("bicgstab", _bicgstab_vectors, False, _BICGSTAB)


def gmres(
    A: _Callable[..., _Any] | _Any,
    b: _Any,
    x0: _Any = None,
    *,
    tol: _Any = 1e-05,
    atol: _Any = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: _Callable[..., _Any] | _Any = None,
    solve_method: str = "batched",
) -> tuple[_Any, None]:
    """Solve `A x = b` by generalised minimal residuals, for a general `A`.

    Args:
        A: as for `cg`.
        b: as for `cg`.
        x0: as for `cg`.
        tol: as for `cg`.
        atol: as for `cg`.
        restart: the number of vectors in a cycle.
        maxiter: the maximal number of cycles, by default 10 for each element of `b`.
        M: as for `cg`.
        solve_method: "batched" or "incremental"; both give the same, since residuals are known after each vector.

    Returns:
        `(x, None)`.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: a matrix is not square, `x0` does not match `b`, `restart` is below 1, or `solve_method` is unknown.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}")
    count = _static_int("gmres", restart, "restart", 1)
    return _solve("gmres", _gmres_vectors, A, b, x0, maxiter, M, False, tol=tol, atol=atol, restart=count)
