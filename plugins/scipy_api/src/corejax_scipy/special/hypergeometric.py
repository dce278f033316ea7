"""Confluent and Gauss's hypergeometric functions of real numbers: hyp1f1 hyp2f1.

Elementwise; TypeError for what is no array or is complex. Definitions: DLMF 13 and 15.
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
    """SciPy's function, of other operands where it is wrong or may take minutes."""

    def function(*xs: Any) -> Any:
        right = is_scipys(*xs)
        return scipy_special(name)(*[np.where(right, x, 0.5) for x in xs])

    return function


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
    impl=scipys_or(_scipys("hyp1f1", _kummer.is_scipys), _kummer.hyp1f1, lambda out, *xs: ~_kummer.is_scipys(*xs)),
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
    impl=scipys_or(_scipys("hyp2f1", _gauss.is_scipys), _gauss.hyp2f1, lambda out, *xs: ~_gauss.is_scipys(*xs)),
    arguments="a b c x",
)
