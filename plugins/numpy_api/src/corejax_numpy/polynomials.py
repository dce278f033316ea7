"""Polynomials as vectors of coefficients, highest power first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import dtypes
from corejax.extend.types import SymbolicDim, max_dim
from corejax_lax_basic import lax
from corejax_numpy._speed import FEW_COEFFICIENTS, MANY_VALUES, UNROLLED, UNROLLED_FOR_MANY
from corejax_numpy.arguments import array_argument, like, promote_dtypes, static_int
from corejax_numpy.creation import asarray
from corejax_numpy.editing import trim_zeros
from corejax_numpy.elementwise import absolute, power
from corejax_numpy.ranges import arange


def _coefficients(name: str, *polynomials: Any, inexact: bool = False) -> list[Any]:
    """Return vectors of coefficients in their common dtype.

    Raises:
        ValueError: an argument is not a vector.
    """
    xs = [array_argument(name, p, i) for i, p in enumerate(polynomials)]
    for i, x in enumerate(xs):
        if x.ndim != 1:
            raise ValueError(f"{name}: coefficients are vectors, got {x.aval.str_short()} at position {i}")
    return promote_dtypes(name, *xs, inexact=inexact)


def _pad_zeros(x: Any, before: int, after: int) -> Any:
    """Pad a vector with zeros."""
    return lax.pad(x, like(x, 0), [(before, after, 0)]) if before or after else x


def _termwise(name: str, combine: Callable[[Any, Any], Any], what: str) -> Callable[[Any, Any], Any]:
    def function(a1: Any, a2: Any) -> Any:
        xs = _coefficients(name, a1, a2)
        size = max(x.shape[0] for x in xs)
        return combine(*(_pad_zeros(x, size - x.shape[0], 0) for x in xs))

    doc = f"""{what} two polynomials.

    Raises:
        ValueError: an argument is not a vector.
    """
    lax.named(function, name, doc)
    return function


polyadd = _termwise("polyadd", lax.add, "Add")
polysub = _termwise("polysub", lax.sub, "Subtract")


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """Multiply two polynomials.

    Args:
        a1: coefficients.
        a2: coefficients.
        trim_leading_zeros: whether to remove leading zeros of the operands, as NumPy does; requires concrete values.

    Raises:
        ValueError: an argument is not a vector.
        ConcretizationTypeError: `trim_leading_zeros` is True, and an argument is traced.
    """
    from corejax_numpy.signal import convolve

    x, y = _coefficients("polymul", a1, a2, inexact=True)
    if trim_leading_zeros and max(x.shape[0], y.shape[0]) > 1:
        x, y = trim_zeros(x, "f"), trim_zeros(y, "f")
    x, y = (v if v.shape[0] else lax.full((1,), 0, v.dtype) for v in (x, y))
    return convolve(x, y, mode="full")


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """Divide two polynomials; return the quotient and the remainder.

    Args:
        u: coefficients of the dividend.
        v: coefficients of the divisor.
        trim_leading_zeros: whether to remove leading coefficients of the remainder that are zero or nearly zero, as
            NumPy does; requires concrete values. Otherwise the remainder has as many coefficients as `u`.

    Raises:
        ValueError: an argument is not a vector, or has no coefficients.
        ConcretizationTypeError: `trim_leading_zeros` is True, and an argument is traced.
    """
    rest, divisor = _coefficients("polydiv", u, v, inexact=True)
    if not rest.shape[0] or not divisor.shape[0]:
        raise ValueError(
            f"polydiv: a polynomial has coefficients, got {rest.aval.str_short()}, {divisor.aval.str_short()}"
        )
    steps = rest.shape[0] - divisor.shape[0] + 1
    if steps <= 0:
        return lax.full((1,), 0, rest.dtype), rest
    scale = lax.div(like(divisor, 1), lax.index_in_dim(divisor, 0))
    quotient = []
    for k in range(steps):
        factor = lax.mul(scale, lax.slice_in_dim(rest, k, k + 1))
        quotient.append(factor)
        rest = lax.sub(rest, _pad_zeros(lax.mul(lax.broadcast_to(factor, divisor.shape), divisor), k, steps - 1 - k))
    if trim_leading_zeros:
        small = absolute(rest) <= float(np.sqrt(float(dtypes.finfo(rest.dtype).eps)))
        kept = np.flatnonzero(~np.asarray(small))
        rest = lax.slice_in_dim(rest, kept[0] if kept.size else rest.shape[0] - 1, None)
    return lax.concatenate(quotient, 0), rest


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """Evaluate a polynomial by Horner's scheme.

    Args:
        p: coefficients; further axes hold several polynomials and broadcast with `x`.
        x: the points of evaluation.
        unroll: number of steps per iteration of the loop (`lax.scan`), 16 by default. Up to 32 coefficients are fully
            unrolled; up to 128 for many values.

    Raises:
        ValueError: `p` is a scalar, or the shapes do not broadcast.
    """
    p, x = promote_dtypes("polyval", array_argument("polyval", p), array_argument("polyval", x, 1))
    if not p.ndim:
        raise ValueError("polyval: coefficients are a vector, got a scalar")
    shape = lax.broadcast_shapes(p.shape[1:], x.shape)
    x = lax.broadcast_to(x, shape)
    if isinstance(p.shape[0], SymbolicDim):
        return lax.scan(lambda y, c: (_horner(y, x, [c]), None), lax.full(shape, 0, p.dtype), p)[0]
    if 0 < p.shape[0] <= FEW_COEFFICIENTS:
        first, *rest = lax.unstack(p)
        return _horner(lax.broadcast_to(first, shape), x, rest)
    y = lax.full(shape, 0, p.dtype)
    size = math.prod(shape)
    if type(size) is int and size >= MANY_VALUES and p.shape[0] <= UNROLLED_FOR_MANY and p.dtype.itemsize > 2:
        return _horner(y, x, [lax.index_in_dim(p, i, 0, keepdims=False) for i in range(p.shape[0])])
    if p.shape[0] <= UNROLLED:
        return _horner(y, x, lax.unstack(p))
    # An iteration of a loop takes as long as about ten unrolled steps, so the body has several steps.
    steps, rest = divmod(p.shape[0], unroll)
    y = _horner(y, x, lax.unstack(p[:rest]))
    blocks = lax.reshape(p[rest:], (steps, unroll, *p.shape[1:]))
    return lax.scan(lambda y, block: (_horner(y, x, lax.unstack(block)), None), y, blocks)[0]


def _horner(y: Any, x: Any, coefficients: Sequence[Any]) -> Any:
    for c in coefficients:
        y = y * x + c
    return y


def polyder(p: Any, m: int = 1) -> Any:
    """Return the `m`-th derivative of a polynomial.

    Args:
        p: coefficients.
        m: order of the derivative, 1 by default.

    Raises:
        ValueError: `p` is not a vector, or `m` is negative.
    """
    (x,) = _coefficients("polyder", p, inexact=True)
    order = _order("polyder", m)
    if not order:
        return x
    kept = max_dim(x.shape[0] - order, 0)
    return lax.mul(lax.slice_in_dim(x, 0, kept), _falling(kept, order, x.dtype))


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return the `m`-th antiderivative of a polynomial.

    Args:
        p: coefficients.
        m: number of integrations, 1 by default.
        k: constants of integration, in the order of the integrations: `m` constants, or one for all; 0 by default.

    Raises:
        ValueError: `p` is not a vector, `m` is negative, or the number of constants does not match.
    """
    order = _order("polyint", m)
    x, k = promote_dtypes("polyint", _coefficients("polyint", p)[0], asarray(0 if k is None else k), inexact=True)
    if k.shape not in ((), (1,), (order,)):
        raise ValueError(f"polyint: {order} constants of integration or one for all, got {k.aval.str_short()}")
    if not order:
        return x
    x = lax.concatenate([x, lax.broadcast_to(k, (order,))], 0)
    # The constant of integration `i` is integrated `order - 1 - i` times more.
    powers = _powers(0, x.shape[0], x.dtype)
    divisors = math.prod((powers - i).clip(1) for i in range(order))
    return lax.div(x, asarray(divisors, x.dtype))


def _order(name: str, m: Any) -> int:
    order = static_int("", m, "m")
    if order < 0:
        raise ValueError(f"{name}: the order is not negative, got m={m}")
    return order


def _falling(size: int, order: int, dtype: Any) -> Any:
    """Return `n (n - 1) ... (n - order + 1)` for the powers `n` that remain, highest power first."""
    powers = _powers(order, size, dtype)
    return asarray(math.prod(powers - i for i in range(order)), dtype)


def _powers(first: Any, size: Any, dtype: Any) -> Any:
    """Return `first + size - 1` down to `first`, as NumPy doubles, or as an array if the size is symbolic."""
    if isinstance(size, SymbolicDim):
        return arange(first, first + size, dtype=dtype)[::-1]
    return np.arange(first, first + size, dtype=float)[::-1]


def poly(seq_of_zeros: Any) -> Any:
    """Return the coefficients of the polynomial with given roots and leading coefficient 1.

    Args:
        seq_of_zeros: the roots, `[n]`; or a matrix `[n, n]`, for its characteristic polynomial, which is complex.

    Returns:
        Coefficients, `[n + 1]`, highest power first; the scalar 1 if there are no roots.

    Raises:
        ValueError: the argument is neither a vector nor a square matrix.
        PluginMissingError: the argument is a matrix, and corejax-linalg is not installed.
    """
    (zeros,) = promote_dtypes("poly", array_argument("poly", seq_of_zeros), inexact=True)
    zeros = lax.reshape(zeros, (1,)) if not zeros.ndim else zeros
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0]:
        zeros = corejax.numpy.linalg.eigvals(zeros)
    if zeros.ndim != 1:
        raise ValueError(f"poly takes a vector of zeros, or a square matrix, got {zeros.aval.str_short()}")
    one = lax.full((1,), 1, zeros.dtype)
    if not zeros.shape[0]:
        return lax.reshape(one, ())
    rest = one[:0]  # the coefficients after the first one, which is exactly 1
    for k in range(zeros.shape[0]):
        root = lax.broadcast_to(lax.slice_in_dim(zeros, k, k + 1), (k + 1,))
        rest = lax.sub(_pad_zeros(rest, 0, 1), lax.mul(root, lax.concatenate([one, rest], 0)))
    return lax.concatenate([one, rest], 0)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the Vandermonde matrix of a vector: row `i` holds powers of element `i`, highest power first.

    Args:
        x: the vector.
        N: number of powers (columns); by default the number of elements.
        increasing: whether the powers increase from 0; False by default.

    Raises:
        ValueError: `x` is not a vector, or `N` is negative.
    """
    x = array_argument("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander takes a vector, got {x.aval.str_short()}")
    columns = x.shape[0] if N is None else static_int("vander", N, "N", least=0)
    powers = (arange if isinstance(columns, SymbolicDim) else np.arange)(columns)
    powers = asarray(powers if increasing else powers[::-1], x.dtype)
    return power(lax.expand_dims(x, (1,)), lax.expand_dims(powers, (0,)))
