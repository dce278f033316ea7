"""Bessel functions, and spherical harmonics: bessel_jn i0 i0e i1 i1e sph_harm_y.

The functions are elementwise on floating-point numbers, and raise TypeError for arguments that are not arrays.
Definitions: DLMF 10 and 14.30.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import Array, Primitive, ShapedArray, defjvp, dtypes, xla_translations
from corejax_lax_basic import lax
from corejax_scipy._arguments import array, reals, static_int
from corejax_scipy.special._chebyshev import Piece, in_pieces
from corejax_scipy.special._few_orders import LARGEST, few_orders
from corejax_scipy.special._formulas import WIDE, where, widened
from corejax_scipy.special._rows import compiled_if_many, scipy_special

__all__ = ["bessel_jn", "bessel_jn_p", "i0", "i0e", "i1", "i1e", "sph_harm_y"]


def i0e(x: Any) -> Any:
    """Compute `exp(-|x|) i0(x)`."""
    return lax.bessel_i0e(*reals("i0e", x))


def i0(x: Any) -> Any:
    """Compute the modified Bessel function of the first kind, of order 0."""
    (x,) = reals("i0", x)
    return jnp.i0(x)


def i1e(x: Any) -> Any:
    """Compute `exp(-|x|) i1(x)`."""
    return lax.bessel_i1e(*reals("i1e", x))


def i1(x: Any) -> Any:
    """Compute the modified Bessel function of the first kind, of order 1."""
    (x,) = reals("i1", x)
    size = x * lax.sign(x)
    first = lax.min(size, lax.full_like(size, 0.98 * math.log(float(dtypes.finfo(size.dtype).max))))
    return lax.exp(first) * lax.bessel_i1e(x) * lax.exp(size - first)  # two steps, since `exp` overflows before `i1`


# -- Bessel functions of the first kind --------------------------------------------------------------------------


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Any:
    """Compute the Bessel functions of the first kind of orders 0 to `v`, along a new first axis.

    Args:
        z: a real array.
        v: the largest order, a static integer that is not negative.
        n_iter: ignored, since recurrences start at the order that accuracy requires; a positive integer.

    Returns:
        An array of shape `(v + 1, *z.shape)`.

    Raises:
        TypeError: `z` is complex or not an array, or `v` or `n_iter` is not a static integer.
        ValueError: `v` is negative, or `n_iter` is below 1.
    """
    (z,) = reals("bessel_jn", z)
    orders = static_int("bessel_jn", v, "v", 0)
    return bessel_jn_p.bind(z, v=orders, n_iter=static_int("bessel_jn", n_iter, "n_iter", 1))


def _type(z: ShapedArray, *, v: int, n_iter: int) -> ShapedArray:
    if dtypes.is_complex(z.dtype) or not dtypes.is_inexact(z.dtype):
        raise TypeError(f"bessel_jn takes floating-point numbers, got {z.str_short()}")
    return ShapedArray((v + 1, *z.shape), z.dtype, z.weak_type)


def _impl(z: Any, *, v: int, n_iter: int) -> Any:
    orders, wide = np.arange(v + 1).reshape(-1, *[1] * z.ndim), z.astype(np.float64)
    with np.errstate(all="ignore"):
        out = scipy_special("jn")(orders, wide)
    large = np.abs(wide) > 1e8  # SciPy rounds the angle there
    if large.any():
        x = Array(wide[large])
        out[:, large] = np.asarray(_of_any_size(lax.abs(x), x, v))
    return out.astype(z.dtype)


def _hankel(order: int) -> tuple[Any, Any]:
    """Return `P` and `Q x` of `J = sqrt(2/(pi x)) (P cos c - Q sin c)`, `c = x - (order + 1/2) pi/2` (DLMF 10.17.3)."""

    def rotated(x: Any) -> Any:
        h = scipy_special("hankel1e")(order, x) * np.sqrt(np.pi * x / 2)
        return h * np.exp(1j * (order * np.pi / 2 + np.pi / 4))

    p = (Piece(8, 16, -2, lambda x: rotated(x).real), Piece(16, math.inf, -2, lambda x: rotated(x).real))
    q = (Piece(8, 16, -2, lambda x: rotated(x).imag * x), Piece(16, math.inf, -2, lambda x: rotated(x).imag * x))
    return p, q


_HANKEL = (_hankel(0), _hankel(1))


def _far(x: Any, error: float) -> tuple[Any, Any]:
    """Return `J_0` and `J_1` for `x >= 8`."""
    out = []
    # Separate the library calls by a barrier, so that the compiler can vectorise the rest.
    cosine, sine = lax.optimization_barrier((lax.cos(x) * math.sqrt(0.5), lax.sin(x) * math.sqrt(0.5)))
    angles = (
        (cosine + sine, sine - cosine),
        (sine - cosine, -cosine - sine),
    )  # cosine and sine of x - pi/4, x - 3 pi/4
    for (p, q), (cos_c, sin_c) in zip(_HANKEL, angles, strict=True):
        out.append(
            lax.sqrt(2.0 / (math.pi * x))
            * (in_pieces(x, *p, error=error) * cos_c - in_pieces(x, *q, error=error) / x * sin_c)
        )
    return out[0], out[1]


def _short_hankel(x: Any, order: int) -> tuple[Any, Any]:
    """Return `P` and `Q` for results that become float32."""
    p, q = _HANKEL[order]
    return in_pieces(x, *p, error=2.0**-30), in_pieces(x, *q, error=2.0**-30) / x


_FEW = 8  # the largest order up to which recurrences are unrolled


def _small(x: Any, v: int, count: int) -> list[Any]:
    """Return orders 0 to `v` by `count` terms of the power series (DLMF 10.2.2), for `x` up to 1/2."""
    half, out = 0.5 * x, []
    power, square = x * 0.0 + 1.0, half * half
    for n in range(v + 1):
        total = 1.0
        for k in range(count, 0, -1):
            total = 1.0 - square * (1.0 / (k * (n + k))) * total
        out.append(power * total)
        power = power * half * (1.0 / (n + 1))
    return out


def _few_downward(x: Any, v: int, start: int) -> list[Any]:
    """Return orders as `_downward` does, for large `x` and a low start, so that nothing overflows."""
    inverse, above, here = 1.0 / x, x * 0.0, x * 0.0 + 1e-200
    found, total = [], here * (2.0 if start % 2 == 0 else 0.0)
    for n in range(start - 1, -1, -1):
        above, here = here, (2.0 * (n + 1)) * inverse * here - above
        if n % 2 == 0:
            total = total + (2.0 * here if n else here)
        if n <= v:
            found.append(here)
    return [value / total for value in found[::-1]]


def _few_upward(x: Any, v: int, error: float) -> list[Any]:
    out = list(lax.optimization_barrier(_far(x, error)))
    for n in range(1, v):
        out.append((2.0 * n) / x * out[n] - out[n - 1])
    return out[: v + 1]


def _few_orders(x: Any, v: int, wide: bool) -> Any:
    """Return orders 0 to `v <= 8` for `x >= 0`."""
    small, far = x < 0.5, x >= float(_FEW)
    down = _few_downward(where(small | far, 1.0, x), v, _FEW + (52 if wide else 32))
    up = _few_upward(where(far & lax.is_finite(x), x, float(_FEW)), v, 0.0 if wide else 2.0**-30)
    first = _small(where(small, x, 0.0), v, 8 if wide else 5)
    outs = [where(small, a, where(far, b, c)) for a, b, c in zip(first, up, down, strict=True)]
    return jnp.stack(lax.optimization_barrier(outs))  # without the barrier, each order would recompute all of them


_UNROLL = 8  # the number of steps of a recurrence in one pass over the numbers
_HUGE, _LEAST = 1e200, 1e-200


def _downward(x: Any, v: int, start: int) -> Any:
    """Return orders 0 to `v` by Miller's recurrence from `start`, normalised by `J_0 + 2 J_2 + ... = 1`.

    The normalisation is DLMF 10.12.4. Large values are scaled down, and each order stores how often that was done.
    """
    inverse = 1.0 / x

    def step(state: Any, given: Any) -> tuple[Any, Any]:
        """Step to the next lower order, given twice the order and the weight of the lower one in the sum."""
        (above, here, total, scaled), (twice, weight) = state, given
        below = twice * inverse * here - above
        total = total + weight * below
        large = lax.abs(below) > _HUGE
        scale = where(large, _LEAST, 1.0)
        new = here * scale, below * scale, total * scale, scaled + where(large, 1.0, 0.0)
        return new, (new[1], new[3])

    orders = np.arange(start, 0, -1)
    weights = np.where(orders == 1, 1.0, np.where(orders % 2, 2.0, 0.0))
    given, kept = jnp.asarray(2.0 * orders), jnp.asarray(weights)
    zero = x * 0.0
    state = zero, zero + 1.0 / _HUGE, zero + (2.0 if start % 2 == 0 else 0.0) / _HUGE, zero
    first = start - v - 1  # the number of steps to orders above v, which are not stored
    if first:
        state, _ = lax.scan(lambda s, n: (step(s, n)[0], None), state, (given[:first], kept[:first]), unroll=_UNROLL)
    last = given[first:], kept[first:]
    (_, _, total, scaled), (found, before) = lax.scan(step, state, last, unroll=min(_UNROLL, v + 1))
    times = scaled - before
    found = found * where(times > 0.0, _LEAST, 1.0) / total * where(times > 1.0, _LEAST, 1.0)
    return lax.rev(where(times > 2.0, 0.0, found), (0,))


def _upward(x: Any, v: int, error: float) -> Any:
    """Return orders 0 to `v` for `x` of at least `v` and 8."""

    def step(state: Any, twice: Any) -> tuple[Any, Any]:
        below, here = state
        return (here, twice / x * here - below), below

    twice_orders = widened(2.0 + 2.0 * lax.iota(np.dtype(np.float32), v + 1))
    return lax.scan(step, _far(x, error), twice_orders, unroll=min(_UNROLL, v + 1))[1]


def _of_tiny(x: Any, v: int) -> Any:
    """Return the first term of the power series, `(x/2)**n / n!`, which underflows for `n > 3` and `x < 1e-90`."""
    half, zero = 0.5 * x, x * 0.0
    terms = [zero + 1.0, half, half * half / 2.0, half * half * half / 6.0]
    return jnp.stack([*terms, *[zero] * (v - 3)][: v + 1])


def _many_orders(x: Any, v: int, wide: bool) -> Any:
    """Return orders 0 to `v > 8` for `x >= 0`: upward from orders 0 and 1 if that is stable, else downward."""
    tiny, below = x < 1e-90, x < float(v)
    out = _downward(where(below & ~tiny, x, 1.0), v, v + 40 + int(6 * v ** (1 / 3)))
    up = _upward(where(below | ~lax.is_finite(x), float(v), x), v, 0.0 if wide else 2.0**-30)
    return jnp.where(tiny, _of_tiny(where(tiny, x, 0.0), v), jnp.where(below, out, up))


def _short_few_orders(z: Any, v: int) -> Any:
    """Return orders 0 to `v <= 8`, for float32 and narrower dtypes."""
    x = lax.abs(widened(z))
    quick = x <= LARGEST
    outs = []
    for n, out in enumerate(few_orders(where(quick, x, 1.0), v, _short_hankel)):
        out = lax.in_dtype(out, z.dtype)
        outs.append(jnp.where(z < 0, -out, out) if n % 2 else out)
    found = jnp.stack(lax.optimization_barrier(outs))  # without the barrier, each order would recompute all of them

    def with_others() -> Any:
        others = _of_any_size(where(quick, 100.0, x), z, v)
        return jnp.where(quick, found, others)

    return lax.cond(jnp.all(quick), lambda: found, with_others)


def _decomposition(z: Any, *, v: int, n_iter: int) -> Any:
    if z.dtype != WIDE and v <= _FEW:
        return _short_few_orders(z, v)
    return _of_any_size(lax.abs(widened(z)), z, v)


def _of_any_size(x: Any, z: Any, v: int) -> Any:
    """Return all orders of `z`, given `x = |z|`."""
    out = (_few_orders if v <= _FEW else _many_orders)(x, v, z.dtype == WIDE)
    out = jnp.where(x == math.inf, 0.0, out)
    odd = lax.reshape(lax.iota(np.dtype(np.int32), v + 1) % 2 == 1, (v + 1, *[1] * z.ndim))
    out = jnp.where((z < 0) & odd, -out, out)
    return lax.in_dtype(jnp.where(x == x, out, x), z.dtype)


def _slope(tangent: Any, z: Any, *, v: int, n_iter: int) -> Any:
    """Return the tangent by `J_0' = -J_1`, `J_n' = (J_{n-1} - J_{n+1}) / 2` (DLMF 10.6.1)."""
    values = bessel_jn_p.bind(z, v=v + 1, n_iter=n_iter)
    rest = (values[: v + 1][:-1] - values[2:]) * 0.5
    return jnp.concatenate([-values[1:2], rest]) * tangent


def _vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> tuple[Any, int]:
    return bessel_jn_p.bind(vals[0], **params), dims[0] + 1


bessel_jn_p: Primitive = Primitive(
    "bessel_jn",
    impl=compiled_if_many(lambda: bessel_jn_p, _impl),
    abstract_eval=_type,
    vmap=_vmap,
    decomposition=_decomposition,
    doc="Bessel functions of the first kind of orders 0 to v, along a first axis.",
)
defjvp(bessel_jn_p, _slope)
xla_translations.register(bessel_jn_p, by="decomposition")

# -- spherical harmonics -----------------------------------------------------------------------------------------


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: None = None, n_max: int | None = None) -> Any:
    """Compute spherical harmonics `Y_n^m(theta, phi)`, normalised over the sphere, with the Condon-Shortley phase.

    Args:
        n: degrees, an array of integers that are not negative.
        m: orders, an array of integers with `|m| <= n`; the result is 0 for others.
        theta: polar angle, from 0 to pi.
        phi: azimuth.
        diff_n: must be None; use `grad` for derivatives.
        n_max: a static upper bound of `n`, by default its maximum; required if `n` is traced.

    Returns:
        A complex array of the common shape of the arguments, with at least one axis.

    Raises:
        TypeError: an argument is not an array, `n` or `m` does not have an integer dtype, or `n` is traced without
            `n_max`.
        NotImplementedError: `diff_n` is given.
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n must be None; take derivatives with corejax.grad")
    n, m = array("sph_harm_y", n, 0), array("sph_harm_y", m, 1)
    for what, x in (("n", n), ("m", m)):
        if not dtypes.is_integer(x.dtype):
            raise TypeError(f"sph_harm_y: {what} must have integers, got {x.aval.str_short()}")
    theta, phi = reals("sph_harm_y", array("sph_harm_y", theta, 2), array("sph_harm_y", phi, 3))
    if n_max is None:
        try:
            n_max = int(np.max(np.asarray(n), initial=0))
        except TypeError as error:
            error.add_note("sph_harm_y: pass a static n_max if n is traced.")
            raise
    n, m, theta, phi = jnp.broadcast_arrays(*[jnp.atleast_1d(x) for x in (n, m, theta, phi)])
    order = jnp.abs(m)
    value = _legendre(n, order, theta, static_int("sph_harm_y", n_max, "n_max", 0))
    sign = jnp.where((m < 0) & (order % 2 == 1), -1.0, 1.0).astype(theta.dtype)
    angle = m.astype(theta.dtype) * phi
    return lax.complex(sign * value * jnp.cos(angle), sign * value * jnp.sin(angle))


def _legendre(n: Any, m: Any, theta: Any, n_max: int) -> Any:
    """Return normalised associated Legendre functions of `cos(theta)`, upward in degree from order `m` (14.10.3)."""
    x, y, order = jnp.cos(theta), jnp.sin(theta), m.astype(theta.dtype)
    diagonal = jnp.full_like(theta, math.sqrt(0.25 / math.pi))
    last, here = jnp.zeros_like(theta), jnp.zeros_like(theta)
    out = jnp.zeros_like(theta)
    for degree in range(n_max + 1):
        if degree:
            diagonal = diagonal * y * -math.sqrt((2 * degree + 1) / (2 * degree))
        above = degree > m
        gap = jnp.where(above, degree**2 - order**2, 1.0)
        a = jnp.sqrt(jnp.where(above, 4.0 * degree**2 - 1.0, 0.0) / gap)
        lower = jnp.where(above, (degree - 1.0) ** 2 - order**2, 0.0)
        b = jnp.sqrt(lower / max(4.0 * (degree - 1.0) ** 2 - 1.0, 1.0))
        step = a * (x * here - b * last)
        last, here = here, jnp.where(above, step, jnp.where(m == degree, diagonal, 0.0))
        out = jnp.where((n == degree) & (m <= degree), here, out)
    return out
