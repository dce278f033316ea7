"""Example applications of this package's primitives, from which checks of their rules start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray

_F32, _C64 = np.dtype(np.float32), np.dtype(np.complex64)
_LOOPS = "derivatives by parameters use forward mode through loops of a length that depends on operands"
_BETWEEN_POLES = "if c is 0, -1, -2, ... it is a polynomial by convention, and has no derivative by c"
_POLES = {"points": "at poles of the gamma function derivatives are differences of infinities"}
_WAVES = {"points": "for large numbers it oscillates faster than finite differences resolve"}
_FORWARD_ONLY = dict.fromkeys(("second_order", "pairs", "triples"), _LOOPS)


def _of(count: int, low: Any, high: Any, dtype: Any = _F32, **more: Any) -> list[Example]:
    return [Example([ShapedArray((3,), dtype)] * count, low=low, high=high, **more)]


def _whole_order(n: Any, x: Any) -> tuple[Any, Any]:
    return np.round(n).astype(n.dtype), x


NAMED: dict[str, Callable[[], list[Example]]] = {
    **dict.fromkeys(("erfcx", "dawsn", "ndtr", "log_ndtr", "sine_integral"), lambda: _of(1, -2.0, 2.0)),
    **dict.fromkeys(("fresnel_s", "fresnel_c"), lambda: _of(1, -2.0, 2.0, skip=_WAVES)),
    **dict.fromkeys(("exp1", "cosine_integral", "spence", "entr"), lambda: _of(1, 0.3, 4.0)),
    "gamma": lambda: _of(1, 0.4, 4.0),
    "gammasgn": lambda: _of(1, 0.4, 4.0),
    "expi": lambda: _of(1, 0.5, 4.0),
    "ndtri": lambda: _of(1, 0.1, 0.9),
    "erfcinv": lambda: _of(1, 0.2, 1.8),
    "logit": lambda: _of(1, 0.1, 0.9),
    "wofz": lambda: _of(1, 0.3, 2.0, _C64),
    "complex_gamma": lambda: _of(1, 0.7, 3.0, _C64),
    "complex_loggamma": lambda: _of(1, 0.7, 3.0, _C64),
    "expn": lambda: _of(2, (2.6, 0.5), (5.4, 4.0), prepare=_whole_order),
    "owens_t": lambda: _of(2, 0.2, 2.0),
    **dict.fromkeys(
        ("xlogy", "xlog1py", "rel_entr", "kl_div", "boxcox", "boxcox1p"),
        lambda: _of(2, 0.4, 3.0),
    ),
    **dict.fromkeys(("beta", "betaln", "poch"), lambda: _of(2, 0.4, 3.0, skip=_POLES)),
    "binomial": lambda: _of(2, (4.0, 0.5), (9.0, 3.0), skip=_POLES),
    "hyp1f1": lambda: _of(3, (0.5, 1.5, -2.0), (2.0, 3.0, 2.0), skip=_FORWARD_ONLY),
    "hyp2f1": lambda: _of(
        4, (0.5, 0.5, 1.5, -0.7), (2.0, 2.0, 3.0, 0.7), skip={**_FORWARD_ONLY, "points": _BETWEEN_POLES}
    ),
    "bessel_jn": lambda: [Example([ShapedArray((3,), _F32)], {"v": 3, "n_iter": 50}, low=0.5, high=12.0)],
}
