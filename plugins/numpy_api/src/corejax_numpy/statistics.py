"""Covariance and correlation."""

from __future__ import annotations

from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    canonical_dtype,
    like,
    operand,
    promote_dtypes,
)
from corejax_numpy.diagonals import diag
from corejax_numpy.elementwise import absolute, clip, conjugate, divide
from corejax_numpy.manipulation import atleast_2d, squeeze, transpose
from corejax_numpy.moments import average
from corejax_numpy.products import dot
from corejax_numpy.reductions import sum


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Any:
    """Estimate the covariance matrix of variables.

    Args:
        m: observations: a matrix with a variable in each row, or a vector for one variable.
        y: further variables, in the same form.
        rowvar: whether the variables are in the rows (True, the default) or in the columns.
        bias: whether to divide by the number of observations instead of this number minus 1.
        ddof: divide by the number of observations minus `ddof`; overrides `bias`.
        fweights: the number of times each observation counts, a vector of integers.
        aweights: the weight of each observation, a vector.
        dtype: dtype of the result, floating or complex; by default that of the observations.

    Returns:
        The covariance matrix; a scalar for one variable.

    Raises:
        ValueError: `m` or `y` has more than two axes, the number of weights differs, or `dtype` is not inexact.
        TypeError: `fweights` are not integers.
    """
    return _covariance("cov", m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _covariance(
    name: str, m: Any, y: Any, rowvar: bool, bias: bool, ddof: Any, fweights: Any, aweights: Any, dtype: Any
) -> Any:
    x = _variables(name, m, y, rowvar)
    dtype = canonical_dtype(dtype)
    if dtype is not None:
        if not dtypes.is_inexact(dtype):
            raise ValueError(f"{name}: dtype must be a subclass of float or complex, got {dtype.name}")
        x = lax.convert_element_type(x, dtype)
    if not x.shape[0]:
        return lax.full((0, 0), 0, x.dtype)
    if not x.shape[1]:
        return lax.full(() if x.shape[0] == 1 else (x.shape[0],) * 2, float("nan"), x.dtype)
    importance, weights = _weights(name, x, fweights, aweights)
    ddof = (0 if bias else 1) if ddof is None else operand(name, ddof, "ddof")
    centre, total = average(x, axis=1, weights=weights, returned=True)
    x = lax.sub(x, lax.broadcast_in_dim(centre, x.shape, (0,)))
    products = dot(x if weights is None else lax.mul(x, weights), transpose(conjugate(x)))
    if weights is None:
        return squeeze(divide(products, like(products, max(x.shape[1] - ddof, 0))))
    divisor = total = lax.index_in_dim(total, 0, 0, keepdims=False)
    if ddof:
        row = lax.index_in_dim(weights, 0, 0, keepdims=False)
        divisor = total - (ddof if importance is None else ddof * sum(lax.mul(row, importance)) / total)
    return squeeze(divide(products, divisor))


def _variables(name: str, m: Any, y: Any, rowvar: bool) -> Any:
    """Return the matrix with a variable in each row."""
    arguments = [("m", m)] if y is None else [("m", m), ("y", y)]
    xs = promote_dtypes(name, *(array_argument(name, v, i) for i, (_, v) in enumerate(arguments)), inexact=True)
    for (argument, _), x in zip(arguments, xs, strict=True):
        if x.ndim > 2:
            raise ValueError(f"{name}: {argument} has one or two axes, got {x.aval.str_short()}")
    first = transpose(xs[0]) if not rowvar and xs[0].ndim > 1 else atleast_2d(xs[0])
    if y is None:
        return first
    second = atleast_2d(xs[1])
    if not rowvar and second.shape[0] != 1:
        second = transpose(second)
    return lax.concatenate([first, second], 0)


def _weights(name: str, x: Any, fweights: Any, aweights: Any) -> tuple[Any, Any]:
    """Return `aweights`, and the product with `fweights` in the shape of `x`; None for weights that are not given."""
    both: list[Any] = []
    for argument, value in (("fweights", fweights), ("aweights", aweights)):
        if value is None:
            both.append(None)
            continue
        w = array_argument(name, value)
        if w.shape != (x.shape[1],):
            raise ValueError(f"{name}: {argument} is a vector of {x.shape[1]} weights, got {w.aval.str_short()}")
        if argument == "fweights" and not dtypes.is_integer(w.dtype):
            raise TypeError(f"{name}: fweights are integers, got {w.aval.str_short()}")
        both.append(lax.convert_element_type(absolute(w), x.dtype))
    weights = [w for w in both if w is not None]
    if not weights:
        return None, None
    product = lax.mul(*weights) if len(weights) > 1 else weights[0]
    return both[1], lax.broadcast_in_dim(product, x.shape, (1,))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """Compute the correlation matrix of variables: covariances divided by the product of standard deviations.

    The arguments are as for `cov`. Real and imaginary parts are clipped to the interval from -1 to 1.
    """
    c = _covariance("corrcoef", x, y, rowvar, False, None, None, None, dtype)
    if not c.ndim:
        return lax.div(c, c)
    deviations = lax.convert_element_type(
        lax.sqrt(lax.real(diag(c)) if dtypes.is_complex(c.dtype) else diag(c)), c.dtype
    )
    for axis in (0, 1):
        c = lax.div(c, lax.broadcast_in_dim(deviations, c.shape, (axis,)))
    if dtypes.is_complex(c.dtype):
        return lax.complex(clip(lax.real(c), -1, 1), clip(lax.imag(c), -1, 1))
    return clip(c, -1, 1)
