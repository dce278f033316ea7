"""Logarithms and entropies that handle factors of zero and nearly equal terms.

    boxcox boxcox1p entr expit kl_div logit log_softmax logsumexp rel_entr softmax xlog1py xlogy

The functions are elementwise on floating-point numbers; `boxcox boxcox1p expit logit xlog1py xlogy` also accept complex
numbers. They raise TypeError for other complex arguments, and for arguments that are not arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.nn
import corejax.numpy as jnp
from corejax_lax_basic import lax
from corejax_scipy._arguments import array, inexact
from corejax_scipy.special import _wide
from corejax_scipy.special._formulas import log1p, polynomial, where, widened
from corejax_scipy.special._rows import row, scipy_special

__all__ = ["expit", "log_softmax", "logsumexp", "softmax"]


def _times_logarithm(logarithm: Any) -> Any:
    """Return a formula for `x logarithm(y)` that is 0 where `x` is 0, unless `y` is NaN."""

    def formula(x: Any, y: Any) -> Any:
        x, y = jnp.broadcast_arrays(x, y)
        return jnp.where((x == 0.0) & (y == y), 0.0, x * logarithm(y))

    return formula


def _times_complex_logarithm(logarithm: Any, pole: float) -> Any:
    """Return the formula for complex numbers: where `x` is 0, only infinite logarithms (`y` at `pole`) give 0."""

    def formula(x: Any, y: Any) -> Any:
        nothing = (x == 0) & ((y == pole) | jnp.isinf(y))
        return jnp.where(nothing, 0, x * logarithm(jnp.where(nothing, 1, y)))

    return formula


def _over(x: Any, y: Any) -> Any:
    """Return `x / y`, and 0 where both are 0, so that the derivative by `x` is finite where only `x` is 0."""
    nothing = (x == 0.0) & (y == 0.0)
    return jnp.where(nothing, 0.0, x / jnp.where(nothing, 1.0, y))


xlogy, xlogy_p = row(
    "xlogy",
    _times_logarithm(lax.log),
    [lambda out, x, y: jnp.log(y), lambda out, x, y: _over(x, y)],
    "`x * log(y)`, and 0 where `x` is 0.",
    single=_times_logarithm(lax.log),
    of_complex=_times_complex_logarithm(lax.log, 0.0),
    arguments="x y",
)

xlog1py, xlog1py_p = row(
    "xlog1py",
    _times_logarithm(log1p),
    [lambda out, x, y: jnp.log1p(y), lambda out, x, y: _over(x, 1.0 + y)],
    "`x * log(1 + y)`, and 0 where `x` is 0.",
    single=_times_logarithm(lax.log1p),
    of_complex=_times_complex_logarithm(lax.log1p, -1.0),
    arguments="x y",
)


def _entr(x: Any) -> Any:
    out = -x * lax.log(x)
    return jnp.where(x > 0.0, out, jnp.where(x == 0.0, 0.0, jnp.where(x == x, -math.inf, x)))


entr, entr_p = row(
    "entr", _entr, [lambda out, x: jnp.where(x < 0.0, 0.0, -1.0 - jnp.log(jnp.where(x < 0.0, 1.0, x)))],
    "The entropy `-x log(x)`: 0 at 0, minus infinity below.",
    single=_entr,
)  # fmt: skip


def _ratio_logarithm(p: Any, q: Any) -> Any:
    """Return `log(p / q)`, by `log1p` where it is small."""
    gap = (p - q) / q
    near = lax.abs(gap) < 0.5
    far = lax.log(p / q)
    split = lax.log(p) - lax.log(q)  # for quotients that overflow
    return where(near, log1p(where(near, gap, 0.0)), where(lax.is_finite(far), far, split))


# Coefficients of (2 atanh(t) - 2 t) / t**3 by t**2, for |t| <= 0.4: near-minimax, relative error of the sum 4e-9.
_ATANH = (0.666666712, 0.399985814, 0.286413172, 0.210384727, 0.260406624)


def _rel_entr(p: Any, q: Any) -> Any:
    p, q = (widened(x) for x in jnp.broadcast_arrays(p, q))
    both = (p > 0.0) & (q > 0.0)
    x, y = where(both, p, 1.0), where(both, q, 1.0)
    known = where((p == 0.0) & (q >= 0.0), 0.0, math.inf)
    out = where(both, x * _ratio_logarithm(x, y), known)
    return where((p == p) & (q == q), out, math.nan)


# (1+t) log(1+t) - t = sum over k >= 2 of (-t)**k / (k (k-1)), over t**2
_DIVERGENCE = [1.0 / (k * (k - 1)) for k in range(2, 27)]


def _divergence(x: Any, y: Any) -> Any:
    gap = (x - y) / y  # x log(x/y) - x + y = y ((1+gap) log1p(gap) - gap)
    near = lax.abs(gap) < 0.2
    small = where(near, gap, 0.0)
    return where(near, y * small * small * polynomial(-small, _DIVERGENCE), x * _ratio_logarithm(x, y) - x + y)


def _are_ordinary(p: Any, q: Any) -> Any:
    """Return whether both operands are positive and finite."""
    return (lax.min(p, q) > 0.0) & (lax.max(p, q) < math.inf)


def _short_rel_entr(p: Any, q: Any) -> Any:
    """Return the relative entropy for float32."""
    p, q = jnp.broadcast_arrays(p, q)
    ends = jnp.where((p == 0.0) & (q >= 0.0), 0.0, jnp.where((q == math.inf) & (p > 0.0), -math.inf, math.inf))
    ends = jnp.where((p == p) & (q == q) & (lax.min(p, q) < math.inf), ends, math.nan)
    return where(_are_ordinary(p, q), widened(p) * _wide.log_ratio(p, q)[0], widened(ends))


def _short_kl_div(p: Any, q: Any) -> Any:
    """Return `x log(x/y) - x + y` for float32, by `log(x/y) = 2 atanh((x-y)/(x+y))` where terms would cancel."""
    p, q = jnp.broadcast_arrays(p, q)
    logarithm, t, near = _wide.log_ratio(p, q)
    x, y = widened(p), widened(q)
    series = (x - y) * t * (1.0 + (0.5 + 0.5 * t) * t * _wide.horner(t * t, _wide.LOG))
    ends = jnp.where((p == 0.0) & (q >= 0.0), q, jnp.where(lax.min(p, q) <= 0.0, math.inf, math.nan))
    return where(_are_ordinary(p, q), where(near, series, x * logarithm - x + y), widened(ends))


def _kl_div(p: Any, q: Any) -> Any:
    p, q = (widened(x) for x in jnp.broadcast_arrays(p, q))
    both = (p > 0.0) & (q > 0.0)
    out = _divergence(where(both, p, 1.0), where(both, q, 1.0))
    known = where((p == 0.0) & (q >= 0.0), q, math.inf)
    return where((p == p) & (q == q), where(both, out, known), math.nan)


def _kl_div_impl(p: Any, q: Any) -> Any:
    """Return SciPy's result, corrected where it cancels (nearly equal operands) or the quotient overflows."""
    p, q = p.astype(np.float64), q.astype(np.float64)
    with np.errstate(all="ignore"):
        gap = (p - q) / q
        near = (p > 0) & (q > 0) & (np.abs(gap) < 0.2)
        small = np.where(near, gap, 0.0)
        series = q * small * small * polynomial(-small, _DIVERGENCE)
        out = np.where(near, series, scipy_special("kl_div")(p, q))
        lost = (p > 0) & (q > 0) & ~np.isfinite(out)
        return np.where(lost, p * (np.log(p) - np.log(q)) - p + q, out)


def _by_first(value: Any) -> Any:
    """Return the derivative of a divergence by `p`: `value(p, q)` where both are positive, 0 elsewhere.

    Where `p` is 0 the derivative is 0, but its own derivative by `q` is that of `-log(q)`, so that second derivatives
    are symmetric.
    """

    def coefficient(out: Any, p: Any, q: Any) -> Any:
        both, edge = (p > 0.0) & (q > 0.0), (p == 0.0) & (q > 0.0)
        logarithm = jnp.log(jnp.where(edge, q, 1.0))
        rest = lax.stop_gradient(logarithm) - logarithm
        return jnp.where(both, value(jnp.where(both, p, 1.0), jnp.where(both, q, 1.0)), rest)

    return coefficient


def _minus_ratio(out: Any, p: Any, q: Any) -> Any:
    """Return `-p / q` where it is defined, 0 elsewhere."""
    defined = (p >= 0.0) & (q > 0.0)
    return jnp.where(defined, -p / jnp.where(defined, q, 1.0), 0.0)


rel_entr, rel_entr_p = row(
    "rel_entr",
    _rel_entr,
    [_by_first(lambda p, q: jnp.log(p / q) + 1.0), _minus_ratio],
    "The relative entropy `p log(p / q)`: 0 where `p` is, infinite where one is negative or only `q` is 0.",
    single=_short_rel_entr,
    many=True,
    arguments="p q",
)

kl_div, kl_div_p = row(
    "kl_div",
    _kl_div,
    [
        _by_first(lambda p, q: jnp.log(p / q)),
        lambda out, p, q: jnp.where(out < math.inf, 1.0 + _minus_ratio(out, p, q), 0.0),
    ],
    "The Kullback-Leibler divergence `p log(p / q) - p + q`; where that is not finite see `rel_entr`.",
    impl=_kl_div_impl,
    single=_short_kl_div,
    many=True,
    arguments="p q",
)


def _logit(x: Any) -> Any:
    near = (x > 0.3) & (x < 0.7)
    q = where(near, x, 0.5) - 0.5
    # log((1/2 + q) / (1/2 - q)) = 2 atanh(2 q)
    middle = 2.0 * lax.atanh(2.0 * q)
    return where(near, middle, lax.log(x) - log1p(-x))


def _logit_of_float32(x: Any) -> Any:
    near = jnp.abs(x - 0.5) < 0.2
    t = 2.0 * jnp.where(near, x - 0.5, 0.0)
    middle = t * (2.0 + t * t * polynomial(t * t, _ATANH))
    return jnp.where(near, middle, lax.log(x / (1.0 - x)))


logit, logit_p = row(
    "logit", _logit, [lambda out, x: 1.0 / (x * (1.0 - x))],
    "`log(x / (1 - x))`, the inverse of `expit`; NaN of real numbers outside of [0, 1].",
    single=_logit_of_float32, many=True,
    of_complex=lambda x: lax.log(x / (1.0 - x)),
    arguments="p",
)  # fmt: skip


def _boxcox(logarithm: Any, expm1: Any = lax.expm1) -> Any:
    def formula(x: Any, lmbda: Any) -> Any:
        x, lmbda = jnp.broadcast_arrays(x, lmbda)
        scale, lmbda = logarithm(x), widened(lmbda)
        t = lmbda * scale
        zero = (lax.abs(lmbda) < 1e-19) | (lax.abs(t) < 1e-300)  # the same limits as SciPy's
        return where(zero, scale, expm1(t) / where(zero, 1.0, lmbda))

    return formula


def _complex_boxcox(logarithm: Any) -> Any:
    """Return a formula for `scale (exp(t) - 1) / t` with `t = lmbda scale`, which uses the series for small `t`."""

    def formula(x: Any, lmbda: Any) -> Any:
        scale = logarithm(x)
        t = lmbda * scale
        near = (jnp.abs(t) < 1e-3) | (lmbda == 0)
        small, safe = jnp.where(near & jnp.isfinite(t), t, 0), jnp.where(near, 1, lmbda)
        series = scale * (1 + small * (1 / 2 + small * (1 / 6 + small * (1 / 24 + small / 120))))
        return jnp.where(near, series, lax.expm1(safe * jnp.where(near, 0, scale)) / safe)

    return formula


def _boxcox_by_power(logarithm: Any) -> Any:
    """Return a derivative rule, `(scale exp(lmbda scale) - out) / lmbda`, which uses the series if that cancels."""

    def coefficient(out: Any, x: Any, lmbda: Any) -> Any:
        scale = logarithm(x)
        vanishes = lmbda * scale == -math.inf  # the exponential is 0, and so is its product with `scale`
        scale = jnp.where(vanishes, 0.0, scale)
        t = lmbda * scale
        near = (jnp.abs(t) < 0.03) & ~vanishes
        far = jnp.where(near, 1.0, lmbda)
        series = scale * scale * (0.5 + t * (1 / 3 + t * (1 / 8 + t * (1 / 30 + t / 144))))
        return jnp.where(near, series, (scale * jnp.exp(t) - out) / far)

    return coefficient


boxcox, boxcox_p = row(
    "boxcox",
    _boxcox(lax.log),
    [lambda out, x, lmbda: jnp.power(x, lmbda - 1.0), _boxcox_by_power(jnp.log)],
    "The Box-Cox transformation `(x**lmbda - 1) / lmbda`, `log(x)` for `lmbda = 0`.",
    single=_boxcox(_wide.log, _wide.expm1),
    many=True,
    of_complex=_complex_boxcox(lax.log),
    arguments="x lmbda",
)

boxcox1p, boxcox1p_p = row(
    "boxcox1p",
    _boxcox(lax.log1p),
    [lambda out, x, lmbda: jnp.power(1.0 + x, lmbda - 1.0), _boxcox_by_power(jnp.log1p)],
    "`boxcox(1 + x, lmbda)`, accurate also for small `x`.",
    single=_boxcox(_wide.log1p, _wide.expm1),
    many=True,
    of_complex=_complex_boxcox(lax.log1p),
    arguments="x lmbda",
)


def expit(x: Any) -> Any:
    """Compute the logistic function `1 / (1 + exp(-x))`."""
    return lax.logistic(*inexact("expit", x))


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """Compute `log(sum(b * exp(a)))` over axes without overflow, as `corejax.nn.logsumexp` does.

    Args:
        a: exponents.
        axis: the axes to sum over, by default all.
        b: factors, which may be negative.
        keepdims: whether reduced axes stay with size 1.
        return_sign: whether to return the logarithm of the absolute value, and the sign.
        where: a mask of the elements to include.
    """
    return corejax.nn.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign, where=where)


def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """Compute `exp(x) / sum(exp(x))` over axes, by default all."""
    x = array("softmax", x)
    return corejax.nn.softmax(x, axis=tuple(range(x.ndim)) if axis is None else axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """Compute the logarithm of `softmax`."""
    x = array("log_softmax", x)
    return corejax.nn.log_softmax(x, axis=tuple(range(x.ndim)) if axis is None else axis)
