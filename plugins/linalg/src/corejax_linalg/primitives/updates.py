"""`cholesky_update` and `symmetric_product`: update a symmetric matrix, or its Cholesky factor.

cholesky_update : f[*b, n, n] -> f[*b, n] -> f[*b, n, n]        R'^T R' = R^T R + w w^T
symmetric_product : f[*b, n, k] -> f[*b, n, n] -> f[*b, n, n]        alpha A A^T + beta C
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax_lax_basic import lax
from corejax_linalg._base import matrices as mat
from corejax_linalg._base.arguments import array, flag, real_number
from corejax_linalg._base.batching import of_stacks
from corejax_linalg._base.types import check_alike


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """Compute the Cholesky factor of `r^T @ r + w w^T` from the factor `r`, by Givens rotations.

    Args:
        r_matrix: upper triangular matrices, real, `f[..., n, n]`.
        w_vector: vectors, `f[..., n]`.

    Returns:
        The upper triangular factors, of the type of `r_matrix`.

    Raises:
        TypeError: the dtypes or batch axes differ, or a dtype is not real floating-point.
        ValueError: the matrices are not square, or the vectors have another size.
    """
    r_matrix, w_vector = array("cholesky_update", r_matrix), array("cholesky_update", w_vector, 1)
    _update_type(r_matrix.aval, w_vector.aval)  # check here, because the decomposition does not check types
    return cholesky_update_p.bind(r_matrix, w_vector)


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Any:
    """Compute `alpha a a^T + beta c` for a symmetric matrix c.

    Args:
        a_matrix: matrices, real, `f[..., n, k]`.
        c_matrix: symmetric matrices, `f[..., n, n]`.
        alpha: a static number.
        beta: a static number.
        symmetrize_output: whether the lower triangle of the result is copied to the upper one.

    Returns:
        The sum, of the type of `c_matrix`.

    Raises:
        TypeError: the dtypes or batch axes differ, or a dtype is not real floating-point.
        ValueError: the sizes do not match.
    """
    name = "symmetric_product"
    scales = {"alpha": real_number(name, "alpha", alpha), "beta": real_number(name, "beta", beta)}
    a_matrix, c_matrix = array(name, a_matrix), array(name, c_matrix, 1)
    _product_type(a_matrix.aval, c_matrix.aval, **scales)
    out = symmetric_product_p.bind(a_matrix, c_matrix, **scales)
    if flag(name, "symmetrize_output", symmetrize_output):
        out = lax.add(mat.lower(out), mat.transpose(mat.lower(out, -1)))
    return out


# -- rules of cholesky_update ------------------------------------------------------------------------------------


def _check_real(name: str, *operands: tuple[str, ShapedArray, int]) -> None:
    for argument, x, rank in operands:
        if x.ndim < rank or not dtypes.is_float(x.dtype) or x.dtype.itemsize < 2:
            kind = "matrices" if rank == 2 else "vectors"
            raise TypeError(
                f"{name}: {argument} must be a stack of {kind}, real floating-point of 16 bits or more, got "
                f"{x.str_short()}"
            )
    check_alike(name, operands)


def _update_type(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    name = "cholesky_update"
    _check_real(name, ("r_matrix", r, 2), ("w_vector", w, 1))
    if not r.shape[-2] == r.shape[-1] == w.shape[-1]:
        raise ValueError(
            f"{name}: r_matrix must have shape [..., n, n] and w_vector [..., n], got {r.str_short()} and "
            f"{w.str_short()}"
        )
    return r.strip_weak_type()


def _update_impl(r: Any, w: Any) -> Any:
    r, w = np.triu(r), w.copy()
    for k in range(r.shape[-1]):
        head, other = r[..., k, k].copy(), w[..., k].copy()
        size = np.hypot(head, other)
        unit = size == 0
        c = np.where(unit, 1, head / np.where(unit, 1, size)).astype(r.dtype)[..., None]
        s = np.where(unit, 0, other / np.where(unit, 1, size)).astype(r.dtype)[..., None]
        r[..., k, :], w = c * r[..., k, :] + s * w, c * w - s * r[..., k, :]
    return np.triu(r)


def _rotated(r: Any, w: Any) -> Any:
    """Decompose into a scan that rotates each row with the vector; each rotation zeroes one element of the vector."""
    axis = r.ndim - 2
    zero, one = mat.constant(r, 0), mat.constant(r, 1)

    def step(w: Any, given: Any) -> Any:
        row, place = given
        here = lax.eq(lax.iota(np.int32, row.shape[-1]), place)
        head, other = (
            lax.expand_dims(lax.reduce_sum(mat.keep_where(here, x), (x.ndim - 1,)), (x.ndim - 1,)) for x in (row, w)
        )
        # Divide by the larger one first, so that squares neither overflow nor underflow.
        size = lax.max(lax.abs(head), lax.abs(other))
        none = lax.eq(size, zero)
        size = lax.select(none, one, size)
        head, other = lax.div(head, size), lax.div(other, size)
        scale = lax.rsqrt(lax.select(none, one, lax.add(lax.square(head), lax.square(other))))
        c, s = lax.select(none, one, lax.mul(head, scale)), lax.mul(other, scale)
        c, s = lax.broadcast_to(c, row.shape), lax.broadcast_to(s, row.shape)
        return lax.sub(lax.mul(c, w), lax.mul(s, row)), lax.add(lax.mul(c, row), lax.mul(s, w))

    order = (axis, *(d for d in range(r.ndim) if d != axis))
    rows = lax.transpose(mat.upper(r), order)
    _, out = lax.scan(step, w, (rows, lax.iota(np.int32, r.shape[axis])))
    back = tuple(order.index(d) for d in range(r.ndim))
    return mat.upper(lax.transpose(out, back))


cholesky_update_p = of_stacks(
    "cholesky_update",
    decomposition=_rotated,
    impl=_update_impl,
    abstract_eval=_update_type,
    doc="The Cholesky factor of a matrix after adding the outer product of a vector with itself.",
)


# -- rules of symmetric_product ----------------------------------------------------------------------------------


def _product_type(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    name = "symmetric_product"
    _check_real(name, ("a_matrix", a, 2), ("c_matrix", c, 2))
    if not a.shape[-2] == c.shape[-2] == c.shape[-1]:
        raise ValueError(
            f"{name}: a_matrix must have shape [..., n, k] and c_matrix [..., n, n], got {a.str_short()} and "
            f"{c.str_short()}"
        )
    return c.strip_weak_type()


def _product(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    product = mat.matmul(a, mat.transpose(a))
    return lax.add(lax.mul(product, mat.constant(a, alpha)), lax.mul(c, mat.constant(c, beta)))


symmetric_product_p = of_stacks(
    "symmetric_product",
    decomposition=_product,
    abstract_eval=_product_type,
    doc="The sum of a symmetric matrix and the product of a matrix with its transpose. Params: alpha, beta.",
)
