"""Solve linear equations by LU decomposition, in terms of `lax`; derivatives use the equation, not the algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from corejax.extend import bottom_trace
from corejax.extend.transforms import BatchTrace, trace_stack
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg.primitives.lu import lu
from corejax_linalg.primitives.triangular_solve import triangular_solve


def solve_with_factors(factors: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """Solve `a @ x = b` by the LU factors of a.

    Args:
        factors: L and U in one matrix, `f[*batch, n, n]`.
        permutation: the order of rows, `i32[*batch, n]`.
        b: right-hand sides, `f[*batch, n, k]`, with the same batch axes.
        trans: 1 for `a^T`, 2 for `a^H` in place of `a`.
    """
    if trans == 0:
        b = mat.take_rows(b, permutation)
        b = triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
        return triangular_solve(factors, b, left_side=True)
    turned = {"left_side": True, "transpose_a": True, "conjugate_a": trans == 2}
    b = triangular_solve(factors, b, **turned)
    b = triangular_solve(factors, b, lower=True, unit_diagonal=True, **turned)
    return mat.take_rows(b, mat.inverse_order(permutation))


def solve_by_lu(a: Any, b: Any) -> Any:
    """Solve `a @ x = b`, `f[*batch, n, n], f[*batch, n, k]`, with derivatives that reuse the LU factors."""
    factors, _, permutation = lu(lax.stop_gradient(a))
    if is_only_evaluated():
        return solve_with_factors(factors, permutation, b)
    return lax.custom_linear_solve(
        lambda x: mat.matmul(a, x),
        b,
        solve=lambda _, b: solve_with_factors(factors, permutation, b),
        transpose_solve=lambda _, b: solve_with_factors(factors, permutation, b, 1),
    )


def solve_broadcast(solve: Callable[..., Any], a: Any, b: Any, *vectors: Any) -> Any:
    """Call `solve(a, b, *vectors)` for stacks with batch axes that broadcast.

    All right-hand sides of one matrix become columns of one array, so that each matrix is factored once.

    Args:
        solve: a solver for arrays with the same batch axes.
        a: matrices, `f[*batch, n, n]`.
        b: right-hand sides, `f[*batch, n, k]`.
        *vectors: further arguments of `solve` that belong to the matrices, `[*batch, m]`.

    Raises:
        ValueError: the batch axes do not broadcast.
    """
    n, k = b.shape[-2:]
    batch = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shared = batch[len(batch) - (a.ndim - 2) :]  # the batch axes of the matrices
    a = lax.broadcast_to(a, (*shared, *a.shape[-2:]))
    vectors = tuple(lax.broadcast_to(v, (*shared, v.shape[-1])) for v in vectors)
    b = lax.broadcast_to(b, (*batch, n, k))
    if len(shared) == len(batch):
        return solve(a, b, *vectors)
    count = math.prod(batch[: len(batch) - len(shared)])
    axes = range(1, len(shared) + 2)
    beside = lax.transpose(lax.reshape(b, (count, *shared, n, k)), (*axes, 0, len(shared) + 2))
    out = lax.reshape(solve(a, lax.reshape(beside, (*shared, n, count * k)), *vectors), beside.shape)
    return lax.reshape(lax.transpose(out, (len(shared) + 1, *range(len(shared) + 1), len(shared) + 2)), (*batch, n, k))


def is_only_evaluated() -> bool:
    """Return whether only evaluation and `vmap` are active, so that nothing is differentiated or staged."""
    return all(trace is bottom_trace() or isinstance(trace, BatchTrace) for trace in trace_stack())
