"""Values of complex functions at zero, infinities and NaN, as Annex G of C99 defines them.

NumPy and XLA differ from Annex G in some of these values, so that impl and translation rules both read this table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

_INF, _NAN, _QUARTER = math.inf, math.nan, math.pi / 2

# Each row is `(a, b, re, im)`: if the operand's real part is of the kind `a` and its imaginary part of the kind `b`,
# the result has the parts `re` and `im`. The kind None matches any number; the part None keeps the computed value;
# "a", "b" and "0b" are the operand's parts and its imaginary part times 0. Later rows win.
ENDS: dict[str, list[tuple[str | None, str | None, Any, Any]]] = {
    "exp": [("-inf", None, 0, 0), ("+inf", "not finite", _INF, _NAN)],
    "expm1": [(None, "zero", None, "b"), ("-inf", None, -1, 0), ("+inf", "not finite", _INF, _NAN)],
    "log": [("inf", None, _INF, None), (None, "inf", _INF, None)],
    "log1p": [("inf", None, _INF, None), (None, "inf", _INF, None)],
    "sqrt": [("+inf", "nan", _INF, _NAN), ("-inf", "nan", _NAN, _INF), (None, "inf", _INF, "b")],
    "sin": [("zero", None, "a", None), (None, "zero", None, "b"), ("not finite", "inf", _NAN, "b")],
    "cos": [("zero", None, None, 0), (None, "zero", None, 0), ("not finite", "inf", _INF, _NAN)],
    "tan": [("zero", None, "a", None), (None, "zero", None, "b")],
    "sinh": [("zero", None, "a", None), (None, "zero", None, "b"), ("inf", "not finite", "a", _NAN)],
    "cosh": [("zero", None, None, 0), (None, "zero", None, 0), ("inf", "not finite", _INF, _NAN)],
    "tanh": [("zero", None, "a", None), (None, "zero", None, "b"), ("inf", "finite", None, "0b")],
    "asin": [("zero", "nan", "a", _NAN)],
    "acos": [("zero", "nan", _QUARTER, _NAN)],
    "atan": [
        (None, "zero", None, "b"), ("nan", None, _NAN, None), ("finite", "nan", _NAN, _NAN),
        ("zero", "inf", _QUARTER, None),
    ],
    "asinh": [("nan", "zero", _NAN, "b")],
    "acosh": [("zero", "nan", _NAN, _QUARTER)],
    "atanh": [
        ("zero", None, "a", None), (None, "nan", None, _NAN), ("nan", "finite", _NAN, _NAN),
        ("inf", "zero", None, _QUARTER),
    ],
}  # fmt: skip

_KINDS: dict[str, Callable[[Any], Any]] = {
    "zero": lambda v: v == 0,
    "nan": np.isnan,
    "finite": np.isfinite,
    "not finite": lambda v: ~np.isfinite(v),
    "inf": np.isinf,
    "+inf": lambda v: v == math.inf,
    "-inf": lambda v: v == -math.inf,
}


def with_ends(name: str, x: Any, out: Any) -> Any:
    """Return `out`, NumPy's value of the function `name` at the complex `x`, with the values that Annex G defines."""
    a, b = x.real, x.imag
    values = {"a": a, "b": b, "0b": 0 * b}
    parts = [out.real, out.imag]
    for kind_a, kind_b, *new in ENDS[name]:
        which = True
        for kind, v in ((kind_a, a), (kind_b, b)):
            which = which if kind is None else which & _KINDS[kind](v)
        for i, part in enumerate(new):
            if part is not None:
                parts[i] = np.where(which, values.get(part, part), parts[i])
    ended = np.empty_like(out)
    ended.real, ended.imag = parts
    return ended
