"""Points at which functions of real or complex numbers are measured, over their whole domains."""

from __future__ import annotations

from typing import Any

import numpy as np

_LARGE = 700.0


def _spread(rng: Any, count: int, low: float, high: float) -> Any:
    """Return points, half of them uniform, half log-uniform in the distance from the lower end."""
    even = rng.uniform(low, high, count // 2)
    sizes = np.exp(rng.uniform(np.log(1e-30), np.log(high - low), count - count // 2))
    return np.concatenate([even, low + sizes])


def _line(rng: Any, count: int, size: float = _LARGE) -> Any:
    """Return points of both signs, from 1e-30 to `size`, densely around 0."""
    out = _spread(rng, count, 0.0, size)
    out[::4] = rng.uniform(0.0, min(8.0, size), len(out[::4]))
    return out * rng.choice([-1.0, 1.0], count)


def _unit(rng: Any, count: int) -> Any:
    """Return points from 0 to 1, densely at both ends."""
    out = _spread(rng, count, 0.0, 1.0)
    out[::3] = 1.0 - np.exp(rng.uniform(-30, 0, len(out[::3])))
    return out


# Intervals of the operands; other functions are measured on the whole line.
_BOXES: dict[str, list[tuple[float, float]]] = {
    "beta": [(0, 50), (0, 50)], "betaln": [(0, 1e6), (0, 1e6)], "binomial": [(0, 100), (0, 50)],
    "boxcox": [(0, 50), (-3, 3)], "boxcox1p": [(-0.99, 50), (-3, 3)], "digamma": [(0, _LARGE)], "entr": [(0, _LARGE)],
    "erfcx": [(-26, _LARGE)], "exp1": [(0, _LARGE)], "expn": [(0, 40), (0, _LARGE)], "gamma": [(-30, 171)],
    "hyp1f1": [(-4.7, 5), (0.1, 8), (-100, 100)], "hyp2f1": [(-2.7, 3), (-2.6, 3), (0.3, 6), (-20, 1)],
    "kl_div": [(0, 10), (0, 10)], "lgamma": [(0, 1e6)], "log_ndtr": [(-1e3, 40)], "ndtr": [(-37, 40)],
    "owens_t": [(-8, 8), (-20, 20)], "poch": [(0, 50), (0, 50)], "rel_entr": [(0, 10), (0, 10)],
    "spence": [(0, _LARGE)], "xlog1py": [(0, 10), (-0.99, 50)], "xlogy": [(0, 10), (0, 50)],
}  # fmt: skip
_UNITS = ("logit", "ndtri")
_PLANES = {"complex_gamma": 20.0, "complex_loggamma": 50.0, "wofz": 20.0}


def points(name: str, count: int, dtype: np.dtype[Any], seed: int = 0) -> list[Any]:
    """Return operands of a function in a dtype, the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    if name in _PLANES:
        size = _PLANES[name]
        wide = [rng.uniform(-size, size, count) + 1j * _line(rng, count, size)]
        return [x.astype(np.complex64 if dtype == np.float32 else np.complex128) for x in wide]
    if name in _UNITS:
        return [_unit(rng, count).astype(dtype)]
    if name == "erfcinv":
        return [2 * _unit(rng, count).astype(dtype)]
    if name not in _BOXES:
        return [_line(rng, count).astype(dtype)]
    found = [_spread(rng, count, low, high) for low, high in _BOXES[name]]
    found = [rng.permutation(x).astype(dtype) for x in found]
    if name == "expn":
        found[0] = np.round(found[0])
    return found
