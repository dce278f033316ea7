"""Polynomials as vectors of their coefficients, the highest power's first."""

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
    """Vectors of coefficients in one dtype.

    Raises:
        ValueError: one is no vector.
    """
    xs = [array_argument(name, p, i) for i, p in enumerate(polynomials)]
    for i, x in enumerate(xs):
        if x.ndim != 1:
            raise ValueError(f"{name}: coefficients are vectors, got {x.aval.str_short()} at position {i}")
    return promote_dtypes(name, *xs, inexact=inexact)


def _shifted(x: Any, before: int, after: int) -> Any:
    """A vector between zeros."""
    return lax.pad(x, like(x, 0), [(before, after, 0)]) if before or after else x


def _termwise(name: str, combine: Callable[[Any, Any], Any], what: str) -> Callable[[Any, Any], Any]:
    def function(a1: Any, a2: Any) -> Any:
        xs = _coefficients(name, a1, a2)
        size = max(x.shape[0] for x in xs)
        return combine(*(_shifted(x, size - x.shape[0], 0) for x in xs))

    doc = f"""{what} of two polynomials.

    Raises:
        ValueError: an argument is no vector.
    """
    return lax.named(function, name, doc)


polyadd = _termwise("polyadd", lax.add, "Sum")
polysub = _termwise("polysub", lax.sub, "Difference")


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """Product of two polynomials.

    Args:
        a1: coefficients.
        a2: coefficients.
        trim_leading_zeros: leave zeros at their beginnings out, as NumPy does; only of values that are known.

    Raises:
        ValueError: an argument is no vector.
        ConcretizationTypeError: zeros of a traced array are to be left out.
    """
    from corejax_numpy.signal import convolve

    x, y = _coefficients("polymul", a1, a2, inexact=True)
    if trim_leading_zeros and max(x.shape[0], y.shape[0]) > 1:
        x, y = trim_zeros(x, "f"), trim_zeros(y, "f")
    x, y = (v if v.shape[0] else lax.full((1,), 0, v.dtype) for v in (x, y))
    return convolve(x, y, mode="full")


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials.

    Args:
        u: coefficients of the dividend.
        v: coefficients of the divisor.
        trim_leading_zeros: leave zeros, and what is nearly zero, at the remainder's beginning out, as NumPy does;
            only of values that are known. Otherwise the remainder has as many coefficients as `u`.

    Raises:
        ValueError: an argument is no vector, or has no coefficients.
        ConcretizationTypeError: zeros of a traced array are to be left out.
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
        rest = lax.sub(rest, _shifted(lax.mul(lax.broadcast_to(factor, divisor.shape), divisor), k, steps - 1 - k))
    if trim_leading_zeros:
        small = absolute(rest) <= float(np.sqrt(float(dtypes.finfo(rest.dtype).eps)))
        kept = np.flatnonzero(~np.asarray(small))
        rest = lax.slice_in_dim(rest, kept[0] if kept.size else rest.shape[0] - 1, None)
    return lax.concatenate(quotient, 0), rest


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """A polynomial's values, by Horner's scheme.

    Args:
        p: coefficients; further axes are those of polynomials at once, which broadcast with `x`.
        x: where.
        unroll: how many steps of the loop (`lax.scan`) are written out at once; up to 32 coefficients all are, for many
            values up to 128.

    Raises:
        ValueError: `p` is a scalar, or shapes do not broadcast.
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
    steps, rest = divmod(p.shape[0], unroll)  # written out in the body: run, each step of a loop takes as long as ten
    y = _horner(y, x, lax.unstack(p[:rest]))
    blocks = lax.reshape(p[rest:], (steps, unroll, *p.shape[1:]))
    return lax.scan(lambda y, block: (_horner(y, x, lax.unstack(block)), None), y, blocks)[0]


def _horner(y: Any, x: Any, coefficients: Sequence[Any]) -> Any:
    for c in coefficients:
        y = y * x + c
    return y


def polyder(p: Any, m: int = 1) -> Any:
    """The `m`-th derivative of a polynomial.

    Raises:
        ValueError: `p` is no vector, or `m` is negative.
    """
    (x,) = _coefficients("polyder", p, inexact=True)
    order = _order("polyder", m)
    if not order:
        return x
    kept = max_dim(x.shape[0] - order, 0)
    return lax.mul(lax.slice_in_dim(x, 0, kept), _falling(kept, order, x.dtype))


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The `m`-th antiderivative of a polynomial.

    Args:
        p: coefficients.
        m: how often it is integrated.
        k: constants of integration, in the order of the integrations: `m` of them, or one for all; 0 by default.

    Raises:
        ValueError: `p` is no vector, `m` is negative, or there are not as many constants.
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
    """`n (n - 1) ... (n - order + 1)` of the powers `n` that remain, the highest first."""
    powers = _powers(order, size, dtype)
    return asarray(math.prod(powers - i for i in range(order)), dtype)


def _powers(first: int, size: Any, dtype: Any) -> Any:
    """`first + size - 1` down to `first`: doubles of NumPy, or an array of the dtype if the size is a symbol."""
    if isinstance(size, SymbolicDim):
        return arange(first, first + size, dtype=dtype)[::-1]
    return np.arange(first, first + size, dtype=float)[::-1]


def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with given zeros and the leading coefficient 1.

    Args:
        seq_of_zeros: the zeros, `[n]`; or a matrix `[n, n]`, whose eigenvalues they are, complex: its characteristic
            polynomial.

    Returns:
        Coefficients, the highest power's first, `[n + 1]`; the scalar 1 where there are no zeros.

    Raises:
        ValueError: the argument is neither.
        PluginMissingError: it is a matrix, and corejax-linalg is not installed.
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
        rest = lax.sub(_shifted(rest, 0, 1), lax.mul(root, lax.concatenate([one, rest], 0)))
    return lax.concatenate([one, rest], 0)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Powers of the elements of a vector in the rows of a matrix, the highest first unless `increasing`.

    Args:
        x: the vector.
        N: number of powers; by default as many as elements.
        increasing: the power 0 first.

    Raises:
        ValueError: `x` is no vector, or `N` is negative.
    """
    x = array_argument("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander takes a vector, got {x.aval.str_short()}")
    columns = x.shape[0] if N is None else static_int("vander", N, "N", least=0)
    powers = (arange if isinstance(columns, SymbolicDim) else np.arange)(columns)
    powers = asarray(powers if increasing else powers[::-1], x.dtype)
    return power(lax.expand_dims(x, (1,)), lax.expand_dims(powers, (0,)))
