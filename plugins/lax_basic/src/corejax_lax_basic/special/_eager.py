"""Impl rules by SciPy, and NumPy's side of the formulas that are written for StableHLO too.

SciPy takes 0.1 s to import, so that is done when such a function is first computed.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend.speed import HostCode
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS, through_float32
from corejax_lax_basic.special import _series

Function = Callable[..., Any]
_WIDE = np.dtype(np.float64)
FIRST_HALF = -(1 << 27)  # a mask: 26 of 53 bits of a float64, its sign and exponent


@functools.cache
def scipy_special(name: str) -> Function:
    """A function of `scipy.special`."""
    return getattr(importlib.import_module("scipy.special"), name)  # type: ignore[no-any-return]


def by_scipy(name: str, amend: Function | None = None) -> Function:
    """The impl rule that is a ufunc of SciPy's, which computes float32 inside in float64; narrower floats likewise.

    Args:
        name: the function.
        amend: given its result and operand, the result with special values that are StableHLO's.
    """

    @through_float32
    def impl(*arrays: Any) -> Any:
        out = scipy_special(name)(*arrays)
        return out if amend is None else amend(out, *arrays)

    def prepare(avals: Any) -> Any:
        if any(x.dtype in NARROW_FLOATS for x in avals):
            return None
        if amend is None:
            return scipy_special(name)
        if amend is not zero_at_zero:
            return None
        text = "{out} = {copysign}({ufunc}({0}), {0})"
        return HostCode(text, scalar=not avals[0].shape, ufunc=scipy_special(name), copysign=np.copysign)

    impl.prepared = prepare  # type: ignore[attr-defined]
    return impl


def zero_at_zero(out: Any, x: Any) -> Any:
    """What `by_scipy` amends for odd functions that rise: a zero keeps its sign."""
    return np.copysign(out, x)


def in_float64(f: Function) -> Function:
    """An impl rule that computes every dtype in float64 and rounds once, at the end."""

    @functools.wraps(f, updated=())  # what `f` is prepared for is another thing
    def impl(*arrays: Any) -> Any:
        dtype = arrays[0].dtype
        out = f(*(x.astype(_WIDE, copy=False) for x in np.broadcast_arrays(*arrays)))
        return np.asarray(out).astype(dtype, copy=False)

    return impl


class Arrays:
    """What formulas are made of, for NumPy arrays of float64; `translations.special` has it for StableHLO."""

    epsilon = _series.DOUBLE
    least = 2.0**-1074  # the smallest number that is not taken for zero
    where = staticmethod(np.where)
    exp, log, log1p, expm1 = np.exp, np.log, np.log1p, np.expm1
    abs, sqrt, floor, power = np.abs, np.sqrt, np.floor, np.power

    def lgamma(self, x: Any) -> Any:
        """`log|gamma(x)|`."""
        return _infinite_at_poles(scipy_special("gammaln")(x), x)

    lgamma_positive = lgamma

    def digamma(self, x: Any) -> Any:
        """Derivative of `lgamma`; NaN at 0, as at its other poles."""
        return psi_as_xla(scipy_special("psi")(x), x)

    def zeta(self, s: Any, q: Any, unit: Any = None) -> Any:
        """The Hurwitz zeta function; SciPy's adds up a term for each unit by which `q` is negative."""
        if unit is not None and (unit == 1.0).all():
            unit = None
        if unit is None and (q > 0).all():
            out = scipy_special("zeta")(s, q)
            if not np.isnan(out).any():  # of exponents of 1e29, say
                return out
        return _series.zeta(self, s, q, unit)

    def erfc(self, x: Any) -> Any:
        """`1 - erf(x)`."""
        return scipy_special("erfc")(x)

    def high(self, x: Any) -> Any:
        """The first half of its bits: a product of such numbers is exact."""
        return (np.asarray(x).view(np.int64) & FIRST_HALF).view(np.float64)

    def if_any(self, active: Any, f: Function, out: Any, *given: Any) -> Any:
        """`f(ops, out, *given)` where an element is active, else `out`: what is rarely needed."""
        return f(self, out, *given) if active.any() else out

    def repeated(self, step: Function, given: Sequence[Any], state: Sequence[Any], count: int) -> Sequence[Any]:
        """Apply `step(ops, n, given, state) -> new state` for n = 0, 1, ..., so many times."""
        for n in range(count):
            state = step(self, float(n), given, state)
        return state

    def iterate(
        self, step: Function, given: Sequence[Any], state: Sequence[Any], limit: int, active: Any
    ) -> Sequence[Any]:
        """Apply `step(ops, n, given, state) -> (unfinished, new state)` for n = 1, 2, ... and give the last state.

        Elements of the state stay as they are from where they are finished, so that none depends on its neighbours.

        Args:
            step: what is done, elementwise.
            given: arrays that it needs besides.
            state: arrays of one shape, as those of `given`.
            limit: the largest `n`.
            active: where it is done at all.
        """
        n = 0
        while n < limit and active.any():
            n += 1
            unfinished, new = step(self, float(n), given, state)
            if not active.all():
                new = [np.where(active, after, before) for after, before in zip(new, state, strict=True)]
            state, active = new, active & unfinished
        return state


ARRAYS = Arrays()


# -- what `by_scipy` amends ----------------------------------------------------------------------------------------


def gammaln_as_xla(out: Any, x: Any) -> Any:
    """`lgamma`, infinite at minus infinity, as C's and XLA's; -inf in SciPy, which loses digits about 1 and 2."""
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
    """`digamma`, NaN at 0, as at the other poles and in XLA; infinite in SciPy, which loses digits about the poles.

    Reflected there (DLMF 5.5.4).
    """
    if x.dtype == _WIDE:
        out = _series.digamma(ARRAYS, x, out)
        beyond = x - np.round(x)
        poles = (x < -0.5) & (np.abs(beyond) < 1e-3) & (beyond != 0)
        if poles.any():
            y, h = np.where(poles, x, -1.5), np.where(poles, beyond, 0.5)
            out = np.where(poles, scipy_special("psi")(1.0 - y) - np.pi / np.tan(np.pi * h), out)
    return np.where(x == 0, x.dtype.type(np.nan), out) if not x.all() else out
