"""Guesses what is wrong from wrong numbers: a sign, a factor, an axis, a dropped term, a dtype."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from corejax.extend import host_value

_CONSTANTS = {"pi": math.pi, "2 pi": 2 * math.pi, "sqrt(2)": math.sqrt(2), "sqrt(pi)": math.sqrt(math.pi),
              "log(2)": math.log(2), "log(10)": math.log(10)}  # fmt: skip
_CLOSE = 1e-3  # of a ratio to a number: float32 results, and derivatives by differences

# What to look at first, where the numbers alone do not tell.
ADVICE = {
    "impl": "impl gives NumPy arrays of exactly the shape and dtype that abstract eval says, and changes no operand",
    "abstract_eval": "abstract eval is a function of shapes, dtypes and parameters only; validate operands there",
    "jvp": "the tangent is the sum, over operands, of (derivative by the operand) * (its tangent), which is linear in "
    "the tangents",
    "transpose": "for a map f linear in x, give the ct_x with <ct_x, t> = <ct, f(t)> for every t; sum over broadcast "
    "axes, and give None for what is not an UndefPrimal",
    "vmap": "vals_in[i] has its batch at axis dims_in[i] (None: it has none); give the result with its batch at the "
    "axis that you return, and shift axis parameters past it",
    "xla_translation": "each value's shape and dtype are those of its aval; compare the operation's definition in the "
    "StableHLO specification with NumPy's",
    "partial_eval": "the rule may evaluate only what depends on known operands; the rest is recorded on the trace. "
    "Where it keeps programs (memoised), all that they depend on is in the key: which operands are known, say",
    "partial_eval_jaxpr": "the two equations together compute the original one; residuals are outputs of the first",
}


def diagnose(got: Any, wanted: Any) -> str:
    """What distinguishes `got` from `wanted`, in a few words; empty where nothing simple does."""
    got, wanted = np.asarray(host_value(got)), np.asarray(host_value(wanted))
    if got.shape != wanted.shape:
        return _of_shapes(got.shape, wanted.shape)
    if got.dtype != wanted.dtype:
        return f"convert it to {wanted.dtype.name}; in NumPy a scalar of another dtype may promote"
    if got.dtype.names is not None:
        return ""
    if got.size == 0 or got.dtype == np.bool_:
        return "it is the negation" if got.size and np.array_equal(got, ~wanted) else ""
    kind = "c" if "c" in (got.dtype.kind, wanted.dtype.kind) else "f"
    a, b = (x.astype(np.complex128 if kind == "c" else np.float64) for x in (got, wanted))
    with np.errstate(all="ignore"):
        return _of_numbers(a, b)


def ratio(a: float | complex, b: float | complex) -> str:
    """What a number is of another: a sign, a factor."""
    if not (np.isfinite(a) and np.isfinite(b)):
        return "it is not finite"
    if abs(a) <= 1e-12 * abs(b):
        return "it is zero: a term is missing, or None is given for something that is not zero"
    return _factor(a / b) if b else ""


def _of_shapes(got: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if sorted(got) == sorted(wanted):
        return "its axes are in another order: the wrong axis, or a missing transpose"
    if tuple(n for n in got if n != 1) == tuple(n for n in wanted if n != 1):
        return "axes of size 1 are too many or too few: keepdims, or a missing reshape"
    if len(got) > len(wanted):
        return "it has an axis too many: sum over, or drop, the one that was broadcast"
    if len(got) < len(wanted):
        return "it lacks an axis: broadcast it, or do not reduce that one"
    return "an axis has another size: the wrong axis"


def _of_numbers(a: Any, b: Any) -> str:
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.all():
        differ = np.isfinite(a) != np.isfinite(b)
        return "it differs where one of the two is not finite" if differ.any() else ""
    size = np.abs(b).max()
    if size and not np.abs(a).max() > 1e-12 * size:
        return "it is zero: a term is missing, or None is given for something that is not zero"
    if not size:
        return "zero is right: a term too many, or a symbolic zero taken for something else"
    if np.allclose(a, np.conj(b), rtol=_CLOSE, atol=_CLOSE * size) and np.iscomplexobj(a):
        return "it is the complex conjugate"
    nonzero = np.abs(b) > _CLOSE * size
    ratios = (a / np.where(nonzero, b, 1))[nonzero]
    if np.allclose(ratios, ratios[0], rtol=_CLOSE, atol=0) and np.all(np.abs(a[~nonzero]) <= 2 * _CLOSE * size):
        return _factor(ratios[0], a.size > 1)
    return _rearranged(a, b, size)


def _factor(value: Any, constant: bool = False) -> str:
    value = value.real if abs(value.imag) <= _CLOSE * abs(value) else value
    of_all = "everywhere " if constant else ""
    if isinstance(value, complex) or np.iscomplexobj(value):
        return f"it is {of_all}{complex(value):.6g} times what is right: a conjugate, or a factor of i"
    if abs(value + 1) <= _CLOSE:
        return f"it is {of_all}-1 times what is right: a sign"
    if abs(value - 1) <= 1e-12:
        return ""
    for name, number in _CONSTANTS.items():
        for text, candidate in ((name, number), (f"1/({name})", 1 / number)):
            if abs(abs(value) / candidate - 1) <= _CLOSE:
                return f"it is {of_all}{'-' if value < 0 else ''}{text} times what is right: a factor"
    for below, above in itertools.product(range(1, 9), range(1, 17)):
        if abs(abs(value) * below / above - 1) <= 1e-5 and math.gcd(below, above) == 1:
            text = f"{above}/{below}" if below > 1 else str(above)
            return f"it is {of_all}{'-' if value < 0 else ''}{text} times what is right: a factor"
    return f"it is {of_all}{float(value):.6g} times what is right: a factor" if constant else ""


def _rearranged(a: Any, b: Any, size: float) -> str:
    def same(x: Any) -> bool:
        return x.shape == b.shape and np.allclose(x, b, rtol=_CLOSE, atol=_CLOSE * size)

    for axis in range(a.ndim):
        if same(np.flip(a, axis)):
            return f"it is reversed along axis {axis}"
        for shift in (1, -1):
            if same(np.roll(a, shift, axis)):
                return f"it is shifted by one along axis {axis}"
    if 1 < a.ndim <= 4:
        for axes in itertools.permutations(range(a.ndim)):
            if same(np.transpose(a, axes)):
                return f"it is right with its axes in the order {axes}: the wrong axis, or a missing transpose"
    if same(-a.conj()) or same(a + b):
        return ""
    off = np.abs(a - b) > _CLOSE * size
    if off.any() and not off.all() and a.ndim:
        nonzero = off & (np.abs(b) > _CLOSE * size)
        ratios = a[nonzero] / b[nonzero]
        if nonzero.sum() > 1 and (nonzero == off).all() and np.allclose(ratios, ratios[0], rtol=_CLOSE, atol=0):
            factor = _factor(ratios[0])
            if factor:
                return f"only some elements differ, and there {factor}, in one of several cases"
        return "only some elements differ: a boundary, a slice, or one of several cases"
    return ""
