"""Poisson and binomial probabilities that stay accurate for large numbers.

Stirling's formula is split off each logarithm of a factorial. The remaining relative entropies and small corrections do
not cancel. Source: Loader, Fast and accurate computation of binomial probabilities, 2000.
"""

from __future__ import annotations

import math
from typing import Any

import corejax.numpy as jnp
import corejax.scipy.special as special
from corejax_scipy.special._formulas import stirling_rest
from corejax_scipy.special._rows import widely

_LEAST = 10.0  # the smallest number for which Stirling's series has full precision
_LOG_2PI = math.log(2 * math.pi)


def cancels(y: Any, mu: Any) -> Any:
    """Return where `y log(mu)` and the logarithm of `gamma(y + 1)` are large and cancel."""
    return (y >= _LEAST) & (mu > 1e-3 * y) & (mu < 1e3 * y)


def log_choices(n: Any, k: Any) -> Any:
    """Return the logarithm of the binomial coefficient."""
    return -jnp.log1p(n) - special.betaln(n - k + 1.0, k + 1.0)


def log_poisson(y: Any, mu: Any) -> Any:
    """Return `log(mu**y exp(-mu) / gamma(y + 1))` for `y >= 0` and `mu >= 0`."""
    large = cancels(y, mu)
    k, mean = jnp.where(large, y, _LEAST), jnp.where(large, mu, _LEAST)
    far = -special.kl_div(k, mean) - 0.5 * (jnp.log(k) + _LOG_2PI) - stirling_rest(k)
    k = jnp.where(large, 0.0, y)
    return jnp.where(large, far, special.xlogy(k, mu) - special.gammaln(k + 1.0) - mu)


def log_binomial(y: Any, rest: Any, p: Any) -> Any:
    """Return `log(choices * p**y * (1 - p)**rest)` for `y` out of `y + rest`, for `y, rest >= 0` and `0 <= p <= 1`."""
    large = cancels(y, (y + rest) * p) & cancels(rest, (y + rest) * (1.0 - p))
    k, others = jnp.where(large, y, _LEAST), jnp.where(large, rest, _LEAST)
    total, q = k + others, jnp.where(large, p, 0.5)
    far = (
        -special.kl_div(k, total * q) - special.kl_div(others, total * (1.0 - q))
        + 0.5 * (jnp.log(total / k) - jnp.log(others) - _LOG_2PI)
        + stirling_rest(total) - stirling_rest(k) - stirling_rest(others)
    )  # fmt: skip
    k, others = jnp.where(large, 0.0, y), jnp.where(large, 1.0, rest)
    choices = jnp.where((k == 0.0) | (others == 0.0), 0.0, log_choices(k + others, k))
    return jnp.where(large, far, choices + special.xlogy(k, p) + special.xlog1py(others, -p))


def _log_rising(a: Any, k: Any) -> Any:
    """Return `lgamma(a + k) - lgamma(a)` for `a > 0` and `k >= 0`, by Stirling's formula where the terms cancel."""
    large = a >= _LEAST
    far = jnp.where(large, a, _LEAST)
    out = (far - 0.5) * jnp.log1p(k / far) + k * (jnp.log(far + k) - 1.0) + stirling_rest(far + k) - stirling_rest(far)
    near = jnp.where(large, 1.0, a)
    out = jnp.where(large, out, special.gammaln(near + k) - special.gammaln(near))
    return jnp.where(k == 0.0, 0.0, out)


@widely
def log_beta_binomial(y: Any, n: Any, a: Any, b: Any) -> Any:
    """Return `log(choices * B(y + a, n - y + b) / B(a, b))`, by rising factorials, in float64."""
    rest = n - y
    return log_choices(n, y) + _log_rising(a, y) + _log_rising(b, rest) - _log_rising(a + b, n)
