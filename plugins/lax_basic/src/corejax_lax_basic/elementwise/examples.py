"""Examples of the primitives of this package, from which checks of their rules start. Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example
from corejax_lax_basic._base.samples import BOOL, C64, F32, I32, one, typed, unary
from corejax_lax_basic.elementwise.rounding import RoundingMethod

_NO_DERIVATIVE = dict.fromkeys(
    ("jvp", "second_order", "pairs", "triples"), "its derivative is zero by definition, and not the function's"
)
_BOUNDS = {"points": "on its bounds its derivative is zero, as jax's"}
_FUSED = {"special": "compiled, a product that overflows is added without being rounded: infinity in place of NaN"}


_Bound = float | tuple[float, ...]  # one for all operands, or one for each


def _binary(low: _Bound = -2.0, high: _Bound = 2.0, dtype: Any = F32, **more: Any) -> list[Example]:
    shapes = (((3,), (3,)), ((), (2, 3)), ((2, 3), ()))
    return [Example([typed(*s, dtype=dtype) for s in pair], low=low, high=high, **more) for pair in shapes]


def _clip(low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


NAMED: dict[str, Callable[[], list[Example]]] = {
    **dict.fromkeys(
        ("neg", "cos", "exp", "exp2", "expm1", "tanh", "logistic", "is_finite", "sinh", "cosh", "asinh", "atan"), unary
    ),
    "sin": lambda: unary(reference=np.sin),
    "tan": lambda: unary(-1.2, 1.2, reference=lambda x: np.sin(x) / np.cos(x)),
    **dict.fromkeys(("asin", "acos", "atanh"), lambda: unary(-0.8, 0.8)),
    "acosh": lambda: unary(1.3, 3.0),
    "cbrt": lambda: unary(0.2, 3.0, reference=np.cbrt),
    "square": lambda: unary(reference=np.square),
    "round": lambda: [
        Example((typed(4),), {"rounding_method": method}, low=0.6, high=1.4, reference=lambda x, **_: np.rint(x))
        for method in RoundingMethod
    ],
    "nextafter": lambda: _binary(skip=_NO_DERIVATIVE),
    "atan2": lambda: _binary(0.3, 2.0),
    **dict.fromkeys(("population_count", "clz"), lambda: unary(dtype=I32)),
    "mulhi": lambda: _binary(dtype=I32),
    **{
        name: (lambda: _binary(0, 9, dtype=I32))
        for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic")
    },
    "abs": lambda: unary(0.2, 2.0) + unary(-2.0, -0.2, reference=np.abs),
    "sign": lambda: unary(0.2, 2.0) + unary(-2.0, -0.2),
    "floor": lambda: unary(1.1, 1.9) + unary(-1.9, -1.1),
    "ceil": lambda: unary(1.1, 1.9) + unary(-1.9, -1.1),
    **{name: (lambda: unary(0.2, 3.0)) for name in ("log", "log1p", "log2", "sqrt", "rsqrt")},
    "one_minus_square": lambda: unary(reference=lambda x: 1 - x * x),
    "polynomial": lambda: [
        Example([typed(3)] * 4, reference=lambda x, *c: sum(c[k] * x**k for k in range(3)), skip=_FUSED),
        Example([typed(2, 3), typed(), typed(2, 3), typed()], skip=_FUSED),
        Example([typed(), typed(3), typed(3)]),
    ],
    **{name: (lambda: unary(dtype=C64)) for name in ("real", "imag", "conj")},
    "integer_pow": lambda: [
        *(Example((typed(4),), {"y": n}, reference=lambda x, *, y: np.power(x, y)) for n in (0, 1, 2, 3, 5)),
        *(Example((typed(4),), {"y": n}, low=0.5) for n in (-1, -2)),
    ],
    "add": lambda: _binary(reference=np.add),
    "sub": lambda: _binary(reference=np.subtract),
    "mul": lambda: _binary(reference=np.multiply),
    "div": lambda: _binary(1.0, 3.0),
    "pow": lambda: _binary(0.3, 2.0),
    "rem": lambda: _binary((2.1, 1.1), (2.9, 1.9)),
    **dict.fromkeys(("max", "min", "lt", "le", "gt", "ge", "eq", "ne", "complex"), _binary),
    **{name: (lambda: _binary(dtype=I32) + _binary(dtype=BOOL)) for name in ("and", "or", "xor")},
    "not": lambda: unary(dtype=I32) + unary(dtype=BOOL),
    "select_n": lambda: [
        one((typed(4, dtype=BOOL), typed(4), typed(4)), lambda w, a, b: np.where(w, b, a)),
        one((typed(dtype=BOOL), typed(2, 3), typed(2, 3)), lambda w, a, b: np.where(w, b, a)),
        Example(
            (np.array([0, 1, 2, 1], I32), typed(4), typed(4), typed(4)),
            reference=lambda w, *cases: np.choose(w, cases),
            skip={"weak_types": "the operand that chooses does not count"},
        ),
    ],
    "clamp": lambda: [
        Example(s, low=(-1.0, -3.0, 0.5), high=(-0.5, 3.0, 1.0), reference=_clip, skip=_BOUNDS)
        for s in ((typed(), typed(5), typed()), (typed(5), typed(5), typed(5)))
    ],
}
