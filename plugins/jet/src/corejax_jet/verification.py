"""The check of jet rules by `corejax verify`. Only corejax-testing imports this module."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax
from corejax.extend import dtypes, get_aval
from corejax_jet.interpreter import jet_flat, jet_rules, nested_jvp
from corejax_testing import Call, Check, CheckFailure, NotApplicable

_ORDER = 3
_HINT = "series are coefficients of t, t^2, ...: the k-th derivative over k!"


def check_jet(call: Call, rng: np.random.Generator) -> None:
    """Check that a rule's coefficients are those of nested derivatives along the curve, also when compiled."""
    if not jet_rules.is_written(call.primitive):
        raise NotApplicable("it has no written jet rule")
    if call.primitive.effects:
        raise NotApplicable("it has effects")
    if not any(dtypes.is_inexact(get_aval(x).dtype) for x in call.values):
        raise NotApplicable("no operand is a floating-point number")
    if any(dtypes.is_inexact(get_aval(x).dtype) and get_aval(x).dtype.itemsize < 4 for x in call.values):
        raise NotApplicable("derivatives of order 3 have no digits in so narrow a type")
    series = [_series(x, rng) for x in call.values]

    def run(*values: Any) -> Any:
        return call(*values)

    try:
        wanted = nested_jvp(run, call.values, series)
    except Exception as error:
        raise NotApplicable(f"it has no nested derivatives: {type(error).__name__}; other checks say so") from error
    got = jet_flat(run, call.values, series, _ORDER)
    _same(got, wanted, "")
    moving = [c for c in series if c is not None]

    def flat(*coefficients: Any) -> Any:
        values = iter(coefficients)
        outs = jet_flat(run, call.values, [None if c is None else list(next(values)) for c in series], _ORDER)
        return [x if c is None else (x, c) for x, c in zip(*outs, strict=True)]

    compiled = corejax.jit(flat)(*moving)
    pairs = [x if isinstance(x, tuple) else (x, None) for x in compiled]
    _same(([x for x, _ in pairs], [c for _, c in pairs]), wanted, " in a compiled program")


def _series(x: Any, rng: np.random.Generator) -> Any:
    aval = get_aval(x)
    if not dtypes.is_inexact(aval.dtype):
        return None
    return [np.asarray(0.1 * rng.standard_normal(aval.shape)).astype(aval.dtype) for _ in range(_ORDER)]


def _same(got: Any, wanted: Any, where: str) -> None:
    for i, (x, y, cs, ds) in enumerate(zip(got[0], wanted[0], got[1], wanted[1], strict=True)):
        _close(f"result {i}{where}", x, y)
        for k, d in enumerate(ds or [], 1):
            c = np.zeros_like(np.asarray(d)) if cs is None else cs[k - 1]
            _close(f"coefficient {k} of result {i}{where}", c, d)


def _close(what: str, got: Any, wanted: Any) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    if not dtypes.is_inexact(wanted.dtype):
        same = np.array_equal(got, wanted)
    else:
        exact = np.finfo(wanted.dtype).eps < 1e-10
        scale = max(1.0, float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0)))
        rtol, atol = (1e-6, 1e-8) if exact else (2e-3, 2e-3)
        same = np.allclose(got, wanted, rtol=rtol, atol=scale * atol, equal_nan=True)
    if not same:
        raise CheckFailure(f"{what} is {got!r}, nested derivatives give {wanted!r}", "jet", _HINT)


JET = Check("jet", check_jet, rule="jet", limit=2)
