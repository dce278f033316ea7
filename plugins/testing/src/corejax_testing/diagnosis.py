"""Guess a rule's mistake from its wrong numbers: a sign, a factor, an axis, a dropped term, a dtype."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from corejax.extend import host_value

_CONSTANTS = {"pi": math.pi, "2 pi": 2 * math.pi, "sqrt(2)": math.sqrt(2), "sqrt(pi)": math.sqrt(math.pi),
              "log(2)": math.log(2), "log(10)": math.log(10)}  # fmt: skip
# The relative error up to which a ratio counts as a known number: loose enough for float32 results and for
# derivatives by finite differences.
_CLOSE = 1e-3

# The advice for each kind of rule if the numbers alone do not show the mistake.
ADVICE = {
    "impl": "impl must return NumPy arrays of exactly the shape and dtype that abstract eval returns, and must not "
    "modify its operands",
    "abstract_eval": "abstract eval must depend on shapes, dtypes and parameters only; validate operands there",
    "jvp": "the tangent is the sum over the operands of (derivative with respect to the operand) * (its tangent); it "
    "must be linear in the tangents",
    "transpose": "for a map f linear in x, return the ct_x with <ct_x, t> = <ct, f(t)> for every t; sum over broadcast "
    "axes, and return None for operands that are not UndefPrimals",
    "vmap": "vals_in[i] has its batch at axis dims_in[i] (None: no batch); return the result with its batch at the "
    "axis that you return, and shift axis parameters past it",
    "xla_translation": "each value must have the shape and dtype of its aval; compare the operation's definition in "
    "the StableHLO specification with NumPy's",
    "partial_eval": "the rule may evaluate only what depends on known operands; record the rest on the trace. "
    "If it caches programs, the key must contain everything they depend on, such as which operands are known",
    "partial_eval_jaxpr": "the two equations together must compute the original one; residuals are results of the "
    "first",
}


def diagnose(got: Any, wanted: Any) -> str:
    """Describe in a few words how `got` differs from `wanted`; return "" if no simple mistake explains it."""
    got, wanted = np.asarray(host_value(got)), np.asarray(host_value(wanted))
    if got.shape != wanted.shape:
        return _diagnose_shapes(got.shape, wanted.shape)
    if got.dtype != wanted.dtype:
        return f"convert it to {wanted.dtype.name}; NumPy may promote it because of a scalar of another dtype"
    if got.dtype.names is not None:
        return ""
    if got.size == 0 or got.dtype == np.bool_:
        return "it is the negation" if got.size and np.array_equal(got, ~wanted) else ""
    kind = "c" if "c" in (got.dtype.kind, wanted.dtype.kind) else "f"
    a, b = (x.astype(np.complex128 if kind == "c" else np.float64) for x in (got, wanted))
    with np.errstate(all="ignore"):
        return _diagnose_numbers(a, b)


def ratio(a: float | complex, b: float | complex) -> str:
    """Describe a number as a multiple of another one: a wrong sign, a wrong factor."""
    if not (np.isfinite(a) and np.isfinite(b)):
        return "it is not finite"
    if abs(a) <= 1e-12 * abs(b):
        return "it is zero: a term is missing, or None is returned for a value that is not zero"
    return _factor(a / b) if b else ""


def _diagnose_shapes(got: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if sorted(got) == sorted(wanted):
        return "its axes are in another order: the wrong axis, or a missing transpose"
    if tuple(n for n in got if n != 1) == tuple(n for n in wanted if n != 1):
        return "it has too many or too few axes of size 1: check keepdims, or add a reshape"
    if len(got) > len(wanted):
        return "it has too many axes: sum over the axis that was broadcast, or drop it"
    if len(got) < len(wanted):
        return "it lacks an axis: broadcast it, or do not reduce that axis"
    return "an axis has another size: the wrong axis"


def _diagnose_numbers(a: Any, b: Any) -> str:
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.all():
        differ = np.isfinite(a) != np.isfinite(b)
        return "some elements are finite in only one of the two" if differ.any() else ""
    size = np.abs(b).max()
    if size and not np.abs(a).max() > 1e-12 * size:
        return "it is zero: a term is missing, or None is returned for a value that is not zero"
    if not size:
        return "zero is right: a term too many, or a symbolic zero that is handled as something else"
    if np.allclose(a, np.conj(b), rtol=_CLOSE, atol=_CLOSE * size) and np.iscomplexobj(a):
        return "it is the complex conjugate"
    nonzero = np.abs(b) > _CLOSE * size
    ratios = (a / np.where(nonzero, b, 1))[nonzero]
    if np.allclose(ratios, ratios[0], rtol=_CLOSE, atol=0) and np.all(np.abs(a[~nonzero]) <= 2 * _CLOSE * size):
        return _factor(ratios[0], a.size > 1)
    return _rearranged(a, b, size)


def _factor(value: Any, constant: bool = False) -> str:
    value = value.real if abs(value.imag) <= _CLOSE * abs(value) else value
    everywhere = "everywhere " if constant else ""
    if isinstance(value, complex) or np.iscomplexobj(value):
        return f"it is {everywhere}{complex(value):.6g} times what is right: a conjugate, or a factor of i"
    if abs(value + 1) <= _CLOSE:
        return f"it is {everywhere}-1 times what is right: a sign"
    if abs(value - 1) <= 1e-5:
        off = abs(value - 1) > 1e-12
        return "only the last digits differ: a step in a narrower dtype, or a difference that cancels" if off else ""
    for name, number in _CONSTANTS.items():
        for text, candidate in ((name, number), (f"1/({name})", 1 / number)):
            if abs(abs(value) / candidate - 1) <= _CLOSE:
                return f"it is {everywhere}{'-' if value < 0 else ''}{text} times what is right: a factor"
    for below, above in itertools.product(range(1, 9), range(1, 17)):
        if abs(abs(value) * below / above - 1) <= 1e-5 and math.gcd(below, above) == 1:
            text = f"{above}/{below}" if below > 1 else str(above)
            return f"it is {everywhere}{'-' if value < 0 else ''}{text} times what is right: a factor"
    return f"it is {everywhere}{float(value):.6g} times what is right: a factor" if constant else ""


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
                return f"its axes are wrong (order {axes} is right): the wrong axis, or a missing transpose"
    if same(-a.conj()) or same(a + b):
        return ""
    off = np.abs(a - b) > _CLOSE * size
    if off.any() and not off.all() and a.ndim:
        nonzero = off & (np.abs(b) > _CLOSE * size)
        ratios = a[nonzero] / b[nonzero]
        if nonzero.sum() > 1 and (nonzero == off).all() and np.allclose(ratios, ratios[0], rtol=_CLOSE, atol=0):
            factor = _factor(ratios[0])
            if factor:
                return f"only some elements differ (one of several cases?), and there {factor}"
        return "only some elements differ: a boundary, a slice, or one of several cases"
    return ""
