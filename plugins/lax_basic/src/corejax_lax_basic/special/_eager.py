"""Impl rules by SciPy, and the operations on NumPy arrays for the formulas shared with StableHLO.

SciPy takes 0.1 s to import, so that it is imported when such a function is first computed.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend.speed import HostCode
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS, through_float32
from corejax_lax_basic._base.prepared import Avals, prepared_by
from corejax_lax_basic.special import _series

Function = Callable[..., Any]
_WIDE = np.dtype(np.float64)
FIRST_HALF = -(1 << 27)  # a mask: the sign, the exponent and 26 of the 53 bits of a float64


@functools.cache
def scipy_special(name: str) -> Function:
    """Return a function of `scipy.special`."""
    function: Function = getattr(importlib.import_module("scipy.special"), name)
    return function


def by_scipy(name: str, amend: Function | None = None) -> Function:
    """Return an impl rule that calls a SciPy ufunc; float32 and narrower floats are computed in float64 inside.

    Args:
        name: name of the function in `scipy.special`.
        amend: function of the result and the operands that returns the result with StableHLO's special values.
    """

    @through_float32
    def impl(*arrays: Any) -> Any:
        out = scipy_special(name)(*arrays)
        return out if amend is None else amend(out, *arrays)

    def prepare(avals: Avals) -> Any:
        if any(x.dtype in NARROW_FLOATS for x in avals):
            return None
        if amend is None:
            return scipy_special(name)
        if amend is not zero_at_zero:
            return None
        text = "{out} = {copysign}({ufunc}({0}), {0})"
        return HostCode(text, scalar=not avals[0].shape, ufunc=scipy_special(name), copysign=np.copysign)

    return prepared_by(prepare)(impl)


def zero_at_zero(out: Any, x: Any) -> Any:
    """Give zeros their sign back: an amendment of `by_scipy` for odd increasing functions."""
    return np.copysign(out, x)


def in_float64(f: Function) -> Function:
    """Return an impl rule that computes every dtype in float64 and rounds once, at the end."""

    @functools.wraps(f, updated=())  # not the attribute `prepared`, which holds for the dtypes of `f`
    def impl(*arrays: Any) -> Any:
        dtype = arrays[0].dtype
        out = f(*(x.astype(_WIDE, copy=False) for x in np.broadcast_arrays(*arrays)))
        return np.asarray(out).astype(dtype, copy=False)

    return impl


class Arrays:
    """The operations of formulas, for NumPy arrays of float64; `translations.special` has them for StableHLO."""

    epsilon = _series.DOUBLE
    least = 2.0**-1074  # the smallest positive number; smaller ones count as zero
    where = staticmethod(np.where)
    exp, log, log1p, expm1 = np.exp, np.log, np.log1p, np.expm1
    abs, sqrt, floor, power = np.abs, np.sqrt, np.floor, np.power

    def lgamma(self, x: Any) -> Any:
        """Compute `log|gamma(x)|`."""
        return _infinite_at_poles(scipy_special("gammaln")(x), x)

    lgamma_positive = lgamma

    def digamma(self, x: Any) -> Any:
        """Compute the derivative of `lgamma`; NaN at 0, as at its other poles."""
        return psi_as_xla(scipy_special("psi")(x), x)

    def zeta(self, s: Any, q: Any, unit: Any = None) -> Any:
        """Compute the Hurwitz zeta function; SciPy's would add up a term for each unit below a negative `q`."""
        if unit is not None and (unit == 1.0).all():
            unit = None
        if unit is None and (q > 0).all():
            out = scipy_special("zeta")(s, q)
            if not np.isnan(out).any():  # SciPy gives NaN for exponents of 1e29, say
                return out
        return _series.zeta(self, s, q, unit)

    def erfc(self, x: Any) -> Any:
        """Compute `1 - erf(x)`."""
        return scipy_special("erfc")(x)

    def high(self, x: Any) -> Any:
        """Return the first half of the bits: a product of such numbers is exact."""
        return (np.asarray(x).view(np.int64) & FIRST_HALF).view(np.float64)

    def if_any(self, active: Any, f: Function, out: Any, *operands: Any) -> Any:
        """Return `f(ops, out, *operands)` if any element is active, else `out`: for cases that are rare."""
        return f(self, out, *operands) if active.any() else out

    def repeated(self, step: Function, inputs: Sequence[Any], state: Sequence[Any], count: int) -> Sequence[Any]:
        """Apply `step(ops, n, inputs, state) -> new state` for n = 0, 1, ..., count - 1."""
        for n in range(count):
            state = step(self, float(n), inputs, state)
        return state

    def iterate(
        self, step: Function, inputs: Sequence[Any], state: Sequence[Any], limit: int, active: Any
    ) -> Sequence[Any]:
        """Apply `step(ops, n, inputs, state) -> (unfinished, new state)` for n = 1, 2, ... and return the last state.

        Elements of the state stay unchanged once they are finished, so that no element depends on its neighbours.

        Args:
            step: an elementwise function.
            inputs: arrays that `step` reads.
            state: arrays of one shape, as those of `inputs`.
            limit: the largest `n`.
            active: the elements to which `step` is applied at all.
        """
        n = 0
        while n < limit and active.any():
            n += 1
            unfinished, new = step(self, float(n), inputs, state)
            if not active.all():
                new = [np.where(active, after, before) for after, before in zip(new, state, strict=True)]
            state, active = new, active & unfinished
        return state


ARRAYS = Arrays()


# -- amendments of `by_scipy` --------------------------------------------------------------------------------------


def gammaln_as_xla(out: Any, x: Any) -> Any:
    """Amend `lgamma`: it is infinite at minus infinity, as in C and XLA, and accurate about 1 and 2, unlike SciPy's."""
    if x.dtype == _WIDE:
        out = _series.log_gamma(ARRAYS, x, out)
    return _infinite_at_poles(out, x)


def _infinite_at_poles(out: Any, x: Any) -> Any:
    """Return SciPy's `gammaln(x)` without its infinities at subnormal numbers, and positive at minus infinity."""
    if not np.isinf(out).any():
        return out
    tiny = (x != 0) & (np.abs(x) < 1e-300)
    return np.where(tiny, -np.log(np.where(tiny, np.abs(x), 1)), np.where(np.isinf(out), np.abs(out), out))


def psi_as_xla(out: Any, x: Any) -> Any:
    """Amend `digamma`: it is NaN at 0, as at the other poles and in XLA; SciPy's is infinite.

    About its poles SciPy's loses digits; there it is computed by reflection (DLMF 5.5.4).
    """
    if x.dtype == _WIDE:
        out = _series.digamma(ARRAYS, x, out)
        beyond = x - np.round(x)
        poles = (x < -0.5) & (np.abs(beyond) < 1e-3) & (beyond != 0)
        if poles.any():
            y, h = np.where(poles, x, -1.5), np.where(poles, beyond, 0.5)
            out = np.where(poles, scipy_special("psi")(1.0 - y) - np.pi / np.tan(np.pi * h), out)
    return np.where(x == 0, x.dtype.type(np.nan), out) if not x.all() else out
