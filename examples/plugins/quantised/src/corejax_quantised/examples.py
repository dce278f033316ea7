"""Examples for `corejax verify`: functions of arrays that apply the primitives to quantised matrices in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray
from corejax_quantised.matrices import dequantise_p, quantise_p

Bind = Callable[..., Any]

# Quantisation rounds, and counts as the identity for derivatives: finite differences would be those of rounding.
_STRAIGHT = "its derivatives are the straight-through estimator's, and not the function's"
_SKIP: dict[str, str] = dict.fromkeys(("jvp", "second_order", "pairs", "triples", "points"), _STRAIGHT)
_SKIP["extremes"] = "127 times a 127th of the largest finite number may round to infinity"
_ONE_STEP = 4.0  # in float16, compiled code rounds some numbers to the neighbouring int8 number


def _quantise(bind: Bind) -> Bind:
    return lambda x: [dequantise_p.bind(*bind(x))]


def _dequantise(bind: Bind) -> Bind:
    return lambda x: bind(quantise_p.bind(x))


def _matmul(bind: Bind) -> Bind:
    return lambda x, w: bind(x, quantise_p.bind(w))


def _matrix(*shape: int) -> ShapedArray:
    return ShapedArray(shape, np.float32)


EXAMPLES = {
    "quantised.quantise": [Example([_matrix(4, 3)], within=_quantise, skip=_SKIP, tolerance=_ONE_STEP)],
    "quantised.dequantise": [Example([_matrix(4, 3)], within=_dequantise, skip=_SKIP, tolerance=_ONE_STEP)],
    "quantised.matmul": [
        Example([_matrix(*x), _matrix(4, 3)], within=_matmul, skip=_SKIP, tolerance=_ONE_STEP) for x in ((4,), (2, 4))
    ],
}
