"""Confluent and Gauss's hypergeometric functions of real numbers: hyp1f1 hyp2f1.

Elementwise; TypeError for what is no array or is complex. Definitions: DLMF 13 and 15.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import Array
from corejax_scipy.special import _gauss, _kummer
from corejax_scipy.special._rows import row, scipy_special
from corejax_scipy.special._taylor import derivative_by


def _on_host(name: str, formula: Callable[..., Any], is_scipys: Callable[..., Any]) -> Callable[..., Any]:
    """The impl rule: SciPy's function where that is right, and elsewhere our own, operation by operation."""

    def impl(*arrays: Any) -> Any:
        xs = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in arrays])
        right = is_scipys(*xs)
        out = np.asarray(scipy_special(name)(*[np.where(right, x, 0.5) for x in xs]))
        if not right.all():
            rest = [Array(x[~right]) for x in xs]
            out = out.copy()
            out[~right] = np.where(functools.reduce(np.logical_or, map(np.isnan, xs))[~right], np.nan, formula(*rest))
        return out

    return impl


def _by_argument(function: Callable[[], Any], count: int) -> Callable[..., Any]:
    """The derivative by the last operand: the function with parameters larger by 1; 0 where that is constant.

    Args:
        function: gives it.
        count: of parameters in the numerator.
    """

    def coefficient(out: Any, *xs: Any) -> Any:
        *tops, below, x = xs
        top = tops[0] if count == 1 else tops[0] * tops[1]
        zero = top == 0.0
        below = jnp.where(zero, 1.5, below)
        return jnp.where(zero, 0.0, top / below * function()(*[v + 1.0 for v in (*tops, below)], x))

    return coefficient


hyp1f1, hyp1f1_p = row(
    "hyp1f1",
    _kummer.hyp1f1,
    [
        derivative_by(_kummer.hyp1f1, 0),
        derivative_by(_kummer.hyp1f1, 1),
        _by_argument(lambda: hyp1f1, 1),
    ],
    """Kummer's confluent hypergeometric function `1F1(a, b, x)`, infinite where `b` is 0, -1, -2, ...

    NaN where a parameter is larger than 10,000, but for `a = 0`, `x = 0`.
    """,
    impl=_on_host("hyp1f1", _kummer.hyp1f1, _kummer.is_scipys),
    single=_kummer.of_float32,
    many=True,
    arguments="a b x",
)

hyp2f1, hyp2f1_p = row(
    "hyp2f1",
    _gauss.hyp2f1,
    [
        derivative_by(_gauss.hyp2f1, 0),
        derivative_by(_gauss.hyp2f1, 1),
        derivative_by(_gauss.hyp2f1, 2),
        _by_argument(lambda: hyp2f1, 2),
    ],
    """Gauss's hypergeometric function `2F1(a, b; c; x)` for `x < 1`.

    Beyond it is infinite, unless it is a polynomial, or one times a whole power of `1 - x`. NaN if a parameter is
    larger than 300, but for `a = 0`, `b = 0`, `x = 0`, and if `c` is less than -10, but for polynomials of a degree of
    at most 10: digits are lost there.
    """,
    impl=_on_host("hyp2f1", _gauss.hyp2f1, _gauss.is_scipys),
    arguments="a b c x",
)
