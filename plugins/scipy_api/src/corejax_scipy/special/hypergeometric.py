"""Confluent and Gauss hypergeometric functions of real numbers: hyp1f1 hyp2f1.

The functions are elementwise, and raise TypeError for complex arguments and those that are not arrays. Definitions:
DLMF 13 and 15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax_scipy.special import _gauss, _kummer
from corejax_scipy.special._rows import row, scipy_special, scipys_or
from corejax_scipy.special._taylor import derivative_by


def _scipys(name: str, is_scipys: Callable[..., Any]) -> Callable[..., Any]:
    """Return SciPy's function, with harmless operands where SciPy is wrong or may take minutes."""

    def function(*xs: Any) -> Any:
        right = is_scipys(*xs)
        return scipy_special(name)(*[np.where(right, x, 0.5) for x in xs])

    return function


def _by_argument(function: Callable[[], Any], count: int) -> Callable[..., Any]:
    """Return the derivative by the last operand: the function with parameters increased by 1, or 0 if it is constant.

    Args:
        function: returns the public function, which is defined later.
        count: the number of parameters in the numerator.
    """

    def coefficient(out: Any, *xs: Any) -> Any:
        *tops, below, x = xs
        top = tops[0] if count == 1 else tops[0] * tops[1]
        zero = top == 0.0
        below = jnp.where(zero, 1.5, below)
        return jnp.where(zero, 0.0, top / below * function()(*[v + 1.0 for v in (*tops, below)], x))

    return coefficient


hyp1f1: Callable[..., Any]
hyp1f1, hyp1f1_p = row(
    "hyp1f1",
    _kummer.hyp1f1,
    [
        derivative_by(_kummer.hyp1f1, 0),
        derivative_by(_kummer.hyp1f1, 1),
        _by_argument(lambda: hyp1f1, 1),
    ],
    """Compute Kummer's confluent hypergeometric function `1F1(a, b, x)`, infinite if `b` is 0, -1, -2, ...

    The result is NaN if a parameter is larger than 10,000, except for `a = 0` or `x = 0`.
    """,
    impl=scipys_or(_scipys("hyp1f1", _kummer.is_scipys), _kummer.hyp1f1, lambda out, *xs: ~_kummer.is_scipys(*xs)),
    single=_kummer.of_float32,
    many=True,
    arguments="a b x",
)

hyp2f1: Callable[..., Any]
hyp2f1, hyp2f1_p = row(
    "hyp2f1",
    _gauss.hyp2f1,
    [
        derivative_by(_gauss.hyp2f1, 0),
        derivative_by(_gauss.hyp2f1, 1),
        derivative_by(_gauss.hyp2f1, 2),
        _by_argument(lambda: hyp2f1, 2),
    ],
    """Compute Gauss's hypergeometric function `2F1(a, b; c; x)` for `x < 1`.

    For `x > 1` the result is infinite, unless the function is a polynomial, or a polynomial times a whole power of
    `1 - x`. Since digits are lost, the result is NaN if a parameter is larger than 300 (except for `a = 0`, `b = 0` or
    `x = 0`), and if `c` is less than -10 (except for polynomials of degree at most 10).
    """,
    impl=scipys_or(_scipys("hyp2f1", _gauss.is_scipys), _gauss.hyp2f1, lambda out, *xs: ~_gauss.is_scipys(*xs)),
    arguments="a b c x",
)
