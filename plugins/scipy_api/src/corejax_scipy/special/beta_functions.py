"""The beta function and related functions: beta betainc betaln comb poch.

The functions are elementwise on floating-point numbers, and raise TypeError for complex arguments and those that are
not arrays. Definitions: DLMF 5.12 and 8.17. At poles that no zero cancels the beta function is infinite, and positive;
the sign in SciPy is arbitrary.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy._arguments import flag, together
from corejax_scipy.special._formulas import sin_pi, stirling_rest, where
from corejax_scipy.special._rows import row, scipy_special, scipys_or, widely
from corejax_scipy.special.gamma_functions import HALF_LOG_2PI, gammasgn_formula

__all__ = ["betainc", "comb"]


def _without_pole(low: Any, high: Any) -> tuple[Any, Any]:
    """Replace operands at poles of two factors by others of the same beta function, up to the sign.

    There `gamma(1 - a - b) gamma(b) / gamma(1 - a)` has the same absolute value.
    """
    other = 1.0 - (low + high)
    both = (low <= 0.0) & (lax.floor(low) == low) & (lax.floor(high) == high) & (high > 0.0) & (other > 0.0)
    both = both & (low > -math.inf)
    low = where(both, other, low)
    return lax.min(low, high), lax.max(low, high)


def _beta_sign(a: Any, b: Any) -> Any:
    low, high = lax.min(a, b), lax.max(a, b)
    odd = lax.floor(0.5 * high) * 2.0 != high
    usual = gammasgn_formula(a) * gammasgn_formula(b) * gammasgn_formula(a + b)
    return where((low <= 0.0) & (lax.floor(low) == low), where(odd, -1.0, 1.0), usual)


def betaln_formula(a: Any, b: Any) -> Any:
    """Return the logarithm of the absolute value of the beta function, without cancellation of large terms."""
    a, b = jnp.broadcast_arrays(a, b)
    low, high = _without_pole(lax.min(a, b), lax.max(a, b))
    far = (high > 10.0) & (low + high > 10.0)
    big, small = where(far, high, 11.0), where(far, low, 1.0)
    total = low + high
    usual = lax.lgamma(low) + lax.lgamma(high) - lax.lgamma(total)
    # Close to a pole, correct for the rounding error of the sum.
    part = total - low
    rest = (low - (total - part)) + (high - part)
    beyond = total - lax.round(total, lax.RoundingMethod.TO_NEAREST_EVEN)
    usual = usual + where((total < 0.0) & (beyond != 0.0), lax.log1p(rest / where(beyond == 0.0, 1.0, beyond)), 0.0)
    ratio = small / big
    both = small > 10.0
    large = where(both, small, 11.0)
    # Avoid log1p of a tiny ratio, which compiled programs flush to zero if it is subnormal.
    gain = where(lax.abs(ratio) < 1e-18, small, (small + big - 0.5) * lax.log1p(ratio))
    mixed = lax.lgamma(where(both, 1.0, small)) + small * (1.0 - lax.log(big)) - gain
    mixed = mixed + stirling_rest(big) - stirling_rest(small + big)
    tops = (
        HALF_LOG_2PI - 0.5 * lax.log(big) + (large - 0.5) * (lax.log(ratio) - lax.log1p(ratio))
        - big * lax.log1p(ratio) + stirling_rest(large) + stirling_rest(big) - stirling_rest(large + big)
    )  # fmt: skip
    out = where(far, where(both, tops, mixed), usual)
    pole = ((low <= 0.0) & (lax.floor(low) == low)) | ((high <= 0.0) & (lax.floor(high) == high))
    return where(pole, math.inf, where(high == math.inf, where(low > 0.0, -math.inf, math.inf), out))


def _beta(a: Any, b: Any) -> Any:
    """Return the beta function; infinite at poles, where the sign is arbitrary."""
    logarithm = betaln_formula(a, b)
    size = lax.exp(logarithm)
    return where(logarithm == math.inf, math.inf, where(size == 0.0, 0.0, _beta_sign(a, b) * size))


# -- derivatives at poles and by reflection ---------------------------------------------------------------------


def _reflected(x: Any, y: Any, gap: Any) -> tuple[Any, Any, Any]:
    """Return `u`, `v` and a rest: `digamma(x) - digamma(y) = digamma(u) - digamma(v) - rest` for `y = x + gap`.

    If both are negative, they are reflected (DLMF 5.5.4): poles of both cancel if the gap is a whole number.
    """
    both = (x <= 0.0) & (y <= 0.0)
    turned = sin_pi(where(both, gap, 0.0))
    product = sin_pi(where(both, x, -0.5)) * sin_pi(where(both, y, -0.5))
    rest = where(turned == 0.0, 0.0, math.pi * turned / where(turned == 0.0, 1.0, product))
    return where(both, 1.0 - x, x), where(both, 1.0 - y, y), rest


def _digamma_difference(x: Any, gap: Any) -> Any:
    """Return `digamma(x) - digamma(x + gap)`."""
    u, v, rest = _reflected(x, x + gap, gap)
    return lax.digamma(u) - lax.digamma(v) - rest


def _slope_of_quotient(out: Any, pole: Any, other: Any, gap: Any, sizes: tuple[Any, ...]) -> Any:
    """Return the derivative of a product of gamma functions over `gamma(pole)`, by a variable in `pole` and `other`.

    The derivative is `out (digamma(other) - digamma(pole))`. Near a pole, where `out` is 0, it is the derivative of
    `sin(pi pole) gamma(1 - pole) / pi` (DLMF 5.5.3) instead.

    Args:
        out: the quotient.
        pole: the operand of the gamma function in the denominator.
        other: the operand of the gamma function in the numerator that depends on the variable.
        gap: `pole - other`.
        sizes: the operands of all gamma functions in the numerator.
    """
    near = (pole < 0.25) & (lax.abs(pole - lax.round(pole, lax.RoundingMethod.TO_NEAREST_EVEN)) < 0.25)
    for v in sizes:
        near = near & ((v > 0.0) | (lax.floor(v) != v))
    s = where(near, pole, 0.0)
    u, v, rest = _reflected(where(near, 1.0, other), where(near, 2.0, pole), gap)
    first, second = lax.digamma(where(near, other, u)), lax.digamma(where(near, 1.0 - s, v))
    logarithm, sign = lax.lgamma(1.0 - s), 1.0
    for x in sizes:
        sane = where(near, x, 1.5)
        logarithm, sign = logarithm + lax.lgamma(sane), gammasgn_formula(sane) * sign
    turns = s - 2.0 * lax.round(0.5 * s, lax.RoundingMethod.TO_NEAREST_EVEN)
    slope = sign * lax.exp(logarithm) * (lax.cos(math.pi * turns) - sin_pi(s) * second / math.pi)
    return where(near, out * first + slope, out * (first - second - rest))


def _beta_slope(out: Any, a: Any, b: Any) -> Any:
    """Return the derivative by `a`."""
    return _slope_of_quotient(out, a + b, a, b, (a, b))


def _whole(x: Any) -> Any:
    return np.floor(x) == x


def _on_host(name: str, sign: Any, of_infinite: Any) -> Any:
    """Return SciPy's function in its domain, and by reflection at removable poles (see `_without_pole`)."""

    def impl(a: Any, b: Any) -> Any:
        low, high = np.minimum(a, b), np.maximum(a, b)
        pole = (low <= 0) & _whole(low)
        removable = pole & _whole(high) & (high > 0) & (1 - (low + high) > 0) & np.isfinite(low)
        first = np.where(removable, 1 - (low + high), low)
        out = scipy_special(name)(first, high) * np.where(removable, sign(high), 1)
        out = np.where((pole & ~removable) | ((high <= 0) & _whole(high)), math.inf, out)
        out = np.where(np.isnan(out), of_infinite(first, high), out)  # the sum of the operands overflowed
        out = np.where(np.isinf(a) | np.isinf(b), of_infinite(a, b), out)
        return np.where(out == 0, 0.0, out)  # if the sum is a pole, the sign of zero is arbitrary

    return impl


def _betaln_of_infinite(a: Any, b: Any) -> Any:
    return np.where((np.minimum(a, b) > 0), -math.inf, math.inf)


def _is_large(out: Any, a: Any, b: Any) -> Any:
    """Return where SciPy subtracts large logarithms, or rounds a sum that is close to a pole."""
    return (np.maximum(np.abs(a), np.abs(b)) > 1e2) | (a + b < 0)


betaln, betaln_p = row(
    "betaln",
    betaln_formula,
    [
        widely(lambda out, a, b: _digamma_difference(a, b)),
        widely(lambda out, a, b: _digamma_difference(b, a)),
    ],
    "Logarithm of the absolute value of the beta function.",
    impl=scipys_or(
        _on_host("betaln", np.ones_like, _betaln_of_infinite),
        betaln_formula,
        lambda out, a, b: (np.abs(out) < 1e-3) | ~np.isfinite(out) | _is_large(out, a, b),
    ),
    arguments="a b",
)

beta, beta_p = row(
    "beta",
    _beta,
    [
        widely(_beta_slope),
        widely(lambda out, a, b: _beta_slope(out, b, a)),
    ],
    "The beta function `gamma(a) gamma(b) / gamma(a + b)`.",
    impl=scipys_or(
        _on_host("beta", lambda n: 1 - 2 * (n % 2), lambda a, b: np.exp(_betaln_of_infinite(a, b))), _beta, _is_large
    ),
    arguments="a b",
)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Compute the regularised incomplete beta function; it is differentiable only by `x`."""
    return lax.betainc(*together("betainc", a, b, x))


# -- binomial coefficients and factorials ----------------------------------------------------------------------------


def _binomial(n: Any, k: Any) -> Any:
    """Return binomial coefficients for `0 <= k <= n`, and 0 elsewhere."""
    inside = (k >= 0.0) & (k <= n)
    n, k = where(inside, n, 1.0), where(inside, k, 1.0)
    root = lax.exp(-0.5 * betaln_formula(n - k + 1.0, k + 1.0))  # a square root, since the square may overflow
    out = root / (n + 1.0) * root
    whole = (lax.floor(n) == n) & (lax.floor(k) == k) & (out < 2.0**50)
    out = where(k == 0.0, 1.0, where(whole, lax.round(out), out))
    endless = where(k == 0.0, 1.0, where((lax.floor(k) == k) & (k < math.inf), math.inf, math.nan))
    return where(inside, where(n == math.inf, endless, out), 0.0)


def _scipys_binomial(n: Any, k: Any) -> Any:
    endless = np.where(k == 0, 1.0, np.where((np.floor(k) == k) & (k < math.inf), math.inf, math.nan))
    out = scipy_special("binom")(n, k)
    out = np.where(np.isinf(n), endless, np.where(np.isnan(out), math.inf, out))  # its intermediate results overflow
    return np.where((k >= 0) & (k <= n), out, np.where(np.isnan(n) | np.isnan(k), math.nan, 0.0))


def _binomial_slope(logarithmic: Any) -> Any:
    """Return a derivative rule: the coefficient times the derivative of its logarithm, and 0 outside."""

    def coefficient(out: Any, n: Any, k: Any) -> Any:
        outside = (k < 0.0) | (k > n)
        return where(outside, 0.0, out * logarithmic(where(outside, 1.0, n), where(outside, 1.0, k)))

    return coefficient


binomial, binomial_p = row(
    "binomial",
    _binomial,
    [
        widely(_binomial_slope(lambda n, k: lax.digamma(n + 1.0) - lax.digamma(n - k + 1.0))),
        widely(_binomial_slope(lambda n, k: lax.digamma(n - k + 1.0) - lax.digamma(k + 1.0))),
    ],
    "Binomial coefficients, 0 outside of `0 <= k <= n`.",
    impl=scipys_or(_scipys_binomial, _binomial, lambda out, n, k: n > 1e2),
    arguments="n k",
)


def comb(N: Any, k: Any, *, repetition: bool = False) -> Any:
    """Compute the number of combinations of `N` things taken `k` at a time; 0 if `k` is negative or larger than `N`.

    Args:
        N: the number of things; fractions are allowed.
        k: the number of things that are chosen.
        repetition: whether a thing can be chosen several times.

    Raises:
        TypeError: an argument is complex, or not an array.
    """
    N, k = together("comb", N, k)
    if flag("comb", repetition, "repetition"):
        return jnp.where((k == 0) & (N >= 0), 1, binomial(N + k - 1, k))
    return jnp.where(N < 0, 0, binomial(N, k))


_FACTORS = 32  # the number of factors up to which Pochhammer's symbol is computed as a product


def _product(z: Any, m: Any) -> Any:
    """Return `z (z+1) ... (z+m-1)`, or one over `(z-1) (z-2) ... (z+m)`, for whole `|m|` up to 32."""
    out, up = z * 0.0 + 1.0, m > 0.0
    first, step, count = where(up, z, z - 1.0), where(up, 1.0, -1.0), lax.abs(m)
    for k in range(_FACTORS):
        out = where(count > float(k), out * (first + float(k) * step), out)
    return where(up, out, where(out == 0.0, math.inf, 1.0 / out))


def _poch(z: Any, m: Any) -> Any:
    """Return Pochhammer's symbol, by a product or by logarithms; 1 for `m = 0`, 0 at poles of the denominator alone."""
    z, m = jnp.broadcast_arrays(z, m)
    whole = lax.floor(m) == m
    pole = (z <= 0.0) & (lax.floor(z) == z)
    top_pole = (z + m <= 0.0) & (lax.floor(z + m) == z + m)
    # Reflect if the sum is negative, since it loses digits of a tiny z and may be rounded to a pole.
    both = whole & (z + m < 0.5) & (pole | (lax.floor(z) != z))
    # gamma(z + m) / gamma(z) = (-1)**m gamma(1 - z) / gamma(1 - z - m)
    upper, lower = where(both, 1.0 - z, z + m), where(both, 1.0 - (z + m), z)
    turned = where(both & (lax.floor(0.5 * m) * 2.0 != m), -1.0, 1.0)
    sign = turned * gammasgn_formula(upper) * gammasgn_formula(lower)
    large = (upper > 10.0) & (lower > 10.0)
    a, b, gap = where(large, upper, 11.0), where(large, lower, 11.0), where(large, m, 0.0)
    gain = where(lax.abs(gap / b) < 1e-18, gap, (b - 0.5) * lax.log1p(gap / b))  # the quotient may underflow
    ratio = lax.exp(gain + gap * (lax.log(a) - 1.0) + stirling_rest(a) - stirling_rest(b))
    out = where(large, turned * ratio, sign * lax.exp(lax.lgamma(upper) - lax.lgamma(lower)))
    out = where(pole & ~both, 0.0, where(top_pole & ~pole & ~both, math.inf, out))
    few = whole & (lax.abs(m) <= float(_FACTORS)) & (lax.abs(z) < math.inf)
    out = where(few, _product(where(few, z, 1.0), where(few, m, 0.0)), out)
    out = where(z == math.inf, where(m > 0.0, math.inf, 0.0), out)
    out = where(m == math.inf, where(pole, 0.0, gammasgn_formula(z) * math.inf), out)
    out = where((m == -math.inf) | (z == -math.inf) | ((m == math.inf) & (z == math.inf)), math.nan, out)
    return where(m == 0.0, 1.0, where(out == 0.0, 0.0, out))


def _is_odd(out: Any, z: Any, m: Any) -> Any:
    """Return where SciPy is wrong, or returns NaN for huge and tiny operands."""
    return (np.maximum(np.abs(z), np.abs(m)) > 1e2) | ~np.isfinite(out) | ((np.floor(z) == z) & (z <= 0))


poch, poch_p = row(
    "poch",
    _poch,
    [
        widely(lambda out, z, m: _slope_of_quotient(out, z, z + m, -m, (z + m,))),
        widely(lambda out, z, m: out * lax.digamma(z + m)),
    ],
    "Pochhammer's symbol, the rising factorial `gamma(z + m) / gamma(z)`.",
    impl=scipys_or(lambda z, m: scipy_special("poch")(z, m) + 0.0, _poch, _is_odd),  # no -0.0
    arguments="z m",
)
