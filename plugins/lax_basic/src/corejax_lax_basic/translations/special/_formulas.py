"""Formulas on StableHLO values: `_eager.Arrays` for programs, and values with Python's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax_lax_basic.special import _series, elementary, single
from corejax_lax_basic.special._eager import FIRST_HALF
from corejax_lax_basic.translations.elementwise._family import EXPENSIVE, expanded, fusible

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

_WIDE, _BITS = np.dtype(np.float64), np.dtype(np.int64)
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_WHOLE = 1.5 * 2.0**52  # sums with this are whole numbers

_Binary = Callable[["Formula", Any], "Formula"]


def _operator(name: str) -> tuple[_Binary, _Binary]:
    """Return a Python binary operator that is an operation of StableHLO, and its reflected one."""
    return (lambda x, y: x.operation(name, x, y)), (lambda x, y: x.operation(name, y, x))


def _comparison(direction: str) -> _Binary:
    return lambda x, y: Formula(x.ctx, x.ctx.compare(direction, x.value, x.like(y)))


class Formula:
    """A value of a program under construction, float or bool; a Python number beside it becomes a constant."""

    __slots__ = ("ctx", "value")

    def __init__(self, ctx: TranslationContext, value: Any) -> None:
        self.ctx, self.value = ctx, value

    def like(self, x: Any) -> Any:
        """Return the StableHLO value of an operand."""
        return x.value if isinstance(x, Formula) else self.ctx.full(self.value.aval, x)

    def operation(self, name: str, x: Any, y: Any) -> Formula:
        """Return an operation of two operands, one of which is this value."""
        return Formula(self.ctx, _emit(self.ctx, name, self.like(x), self.like(y)))

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("subtract")
    __mul__, __rmul__ = _operator("multiply")
    __truediv__, __rtruediv__ = _operator("divide")
    __and__, __rand__ = _operator("and")
    __or__, __ror__ = _operator("or")
    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("LT", "LE", "GT", "GE"))
    __eq__ = _comparison("EQ")  # type: ignore[assignment]  # a value of the program, no bool
    __hash__ = None  # type: ignore[assignment]  # as `__eq__` is no equality

    def __invert__(self) -> Formula:
        return Formula(self.ctx, self.ctx.op("not", self.value, out=self.value.aval))


def _emit(ctx: TranslationContext, name: str, *vals: Any) -> Any:
    out = ctx.op(name, *vals, out=vals[0].aval)
    return fusible(ctx, out) if name in EXPENSIVE else out


def _function(name: str) -> Callable[[Any, Formula], Formula]:
    def f(self: Any, x: Formula) -> Formula:
        return Formula(x.ctx, _emit(x.ctx, name, x.value))

    return f


class Values:
    """The operations of formulas, for values of a program; `where` of two Python numbers is of float64."""

    # In compiled programs the logarithm of a subnormal number is -inf, and only some fusions take the number for 0.
    least = 2.0**-1022

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    exp, log, log1p = _function("exponential"), _function("log"), _function("log_plus_one")
    expm1, abs = _function("exponential_minus_one"), _function("abs")
    sqrt, floor, round = _function("sqrt"), _function("floor"), _function("round_nearest_even")
    _chlo_erfc, _chlo_lgamma, _chlo_digamma = map(_function, ("chlo.erfc", "chlo.lgamma", "chlo.digamma"))

    def where(self, which: Formula, x: Any, y: Any) -> Formula:
        """Return `x` where the condition holds, else `y`."""
        aval = next((v.value.aval for v in (x, y) if isinstance(v, Formula)), which.value.aval.update(dtype=_WIDE))
        x, y = (v.value if isinstance(v, Formula) else which.ctx.full(aval, v) for v in (x, y))
        return Formula(which.ctx, which.ctx.op("select", which.value, x, y, out=aval))

    def power(self, x: Formula, y: Formula) -> Formula:
        """Compute `x ** y`."""
        return x.operation("power", x, y)

    def parts(self, x: Formula) -> tuple[Formula, Formula]:
        """Split `x` into mantissa and exponent, see `elementary`."""
        ctx, wide = x.ctx, x.value.aval
        bits = wide.update(dtype=_BITS)
        raw = ctx.op("bitcast_convert", x.value, out=bits)
        above = ctx.op("subtract", raw, ctx.full(bits, _ROOT_HALF), out=bits)
        k = ctx.op("shift_right_arithmetic", above, ctx.full(bits, 52), out=bits)
        m = ctx.op("subtract", raw, ctx.op("shift_left", k, ctx.full(bits, 52), out=bits), out=bits)
        return Formula(ctx, ctx.op("bitcast_convert", m, out=wide)), Formula(ctx, ctx.convert(k, _WIDE))

    def scaled(self, x: Formula, k: Formula) -> Formula:
        """Multiply by a power of 2, see `elementary`; the last bits of `k` plus a power of 2 are those of `k`."""
        ctx, wide = x.ctx, x.value.aval
        bits = wide.update(dtype=_BITS)
        raw = ctx.op("bitcast_convert", (k + _WHOLE).value, out=bits)
        exponent = ctx.op("shift_left", raw, ctx.full(bits, 52), out=bits)
        factor = ctx.op("add", exponent, ctx.full(bits, 1023 << 52), out=bits)
        return x * Formula(ctx, ctx.op("bitcast_convert", factor, out=wide))

    def high(self, x: Formula) -> Formula:
        """Return the first half of the bits, see `_eager.Arrays.high`."""
        ctx, wide = x.ctx, x.value.aval
        bits = wide.update(dtype=_BITS)
        raw = ctx.op("bitcast_convert", x.value, out=bits)
        first = ctx.op("and", raw, ctx.full(bits, FIRST_HALF), out=bits)
        return Formula(ctx, ctx.op("bitcast_convert", first, out=wide))

    def erfc(self, x: Formula) -> Formula:
        """Compute `1 - erf(x)`."""
        return self._chlo_erfc(x)

    def lgamma(self, x: Formula) -> Formula:
        """Compute `log|gamma(x)|`; CHLO's is inaccurate if it is small."""
        out: Formula = _series.log_gamma(self, x, self._chlo_lgamma(x))
        return out

    lgamma_positive = lgamma

    def digamma(self, x: Formula) -> Formula:
        """Compute the derivative of `lgamma`; CHLO's is inaccurate about its zero."""
        out: Formula = _series.digamma(self, x, self._chlo_digamma(x))
        return out

    def zeta(self, s: Formula, q: Formula, unit: Formula | None = None) -> Formula:
        """Compute the Hurwitz zeta function, see `_series`."""
        out: Formula = _series.zeta(self, s, q, unit)
        return out

    def if_any(self, active: Formula, f: Any, out: Formula, *operands: Formula) -> Formula:
        """Return `f(ops, out, *operands)` if any element is active, see `_eager.Arrays.if_any`; an `if`."""
        ctx, vals = active.ctx, [v.value for v in (out, *operands)]

        def compute(ctx: TranslationContext) -> Any:
            return f(self, *[Formula(ctx, v) for v in vals]).value

        regions = [ctx.region([], compute), ctx.region([], lambda ctx: out.value)]
        return Formula(ctx, ctx.op("if", _any(ctx, active.value), out=out.value.aval, regions=regions))

    def repeated(self, step: Any, inputs: Sequence[Formula], state: Sequence[Formula], count: int) -> Sequence[Formula]:
        """Apply `step` repeatedly, see `_eager.Arrays.repeated`; a `while`."""
        ctx, counter = state[0].ctx, ShapedArray((), _WIDE)
        vals = [ctx.full(counter, 0), *(v.value for v in (*inputs, *state))]

        def unfinished(ctx: TranslationContext, n: Any, *rest: Any) -> Any:
            return ctx.compare("LT", n, ctx.full(counter, count))

        def body(ctx: TranslationContext, n: Any, *rest: Any) -> list[Any]:
            formulas = [Formula(ctx, v) for v in rest]
            number = Formula(ctx, ctx.broadcast_in_dim(n, rest[0].aval.shape, ()))
            after = step(self, number, formulas[: len(inputs)], formulas[len(inputs) :])
            n = ctx.op("add", n, ctx.full(counter, 1), out=counter)
            return [n, *rest[: len(inputs)], *(v.value for v in after)]

        types = [v.aval for v in vals]
        outs = ctx.op("while", *vals, out=types, regions=[ctx.region(types, unfinished), ctx.region(types, body)])
        return [Formula(ctx, v) for v in outs[1 + len(inputs) :]]

    def iterate(
        self, step: Any, inputs: Sequence[Formula], state: Sequence[Formula], limit: int, active: Formula
    ) -> Sequence[Formula]:
        """Apply `step` until no element is active, or `limit`, see `_eager.Arrays.iterate`; a `while`.

        Each pass is one step: XLA computes each array of the state separately, from the beginning of the pass on.
        """
        ctx = active.ctx
        counter = ShapedArray((), _WIDE)
        vals = [ctx.full(counter, 0), active.value, *(v.value for v in (*inputs, *state))]

        def unfinished(ctx: TranslationContext, n: Any, active: Any, *rest: Any) -> Any:
            more = _any(ctx, active)
            return ctx.op("and", more, ctx.compare("LT", n, ctx.full(counter, limit)), out=more.aval)

        def body(ctx: TranslationContext, n: Any, active: Any, *rest: Any) -> list[Any]:
            is_active, vals = Formula(ctx, active), [Formula(ctx, v) for v in rest]
            constants, last = vals[: len(inputs)], vals[len(inputs) :]
            n = ctx.op("add", n, ctx.full(counter, 1), out=counter)
            number = Formula(ctx, ctx.broadcast_in_dim(n, active.aval.shape, ()))
            more, after = step(self, number, constants, last)
            last = [self.where(is_active, new, old) for new, old in zip(after, last, strict=True)]
            return [n, (is_active & more).value, *(v.value for v in (*constants, *last))]

        types = [v.aval for v in vals]
        outs = ctx.op("while", *vals, out=types, regions=[ctx.region(types, unfinished), ctx.region(types, body)])
        return [Formula(ctx, v) for v in outs[2 + len(inputs) :]]


def _any(ctx: TranslationContext, x: Any) -> Any:
    """Return whether any element is true."""
    if not x.aval.ndim:
        return x
    scalar = ShapedArray((), x.aval.dtype)
    region = ctx.region([scalar, scalar], lambda ctx, a, b: ctx.op("or", a, b, out=scalar))
    attrs = f"dimensions = {ctx.i64(range(x.aval.ndim))}"
    return ctx.op("reduce", x, ctx.constant(np.False_), out=scalar, attrs=attrs, regions=[region])


class ShortValues(Values):
    """The operations of `Values` for results that become float32 or narrower: arithmetic instead of library calls."""

    least = 2.0**-126

    exp, log, log1p, expm1 = elementary.exp, elementary.log, elementary.log1p, elementary.expm1
    power = elementary.power
    high = staticmethod(lambda x: x)  # operands are float32: their products are exact
    erfc, digamma = single.erfc, single.digamma
    lgamma, lgamma_positive = single.lgamma, single.lgamma_positive


_FULL, _SHORT = Values(_series.DOUBLE), ShortValues(_series.SINGLE)


def operations_for(dtype: np.dtype[Any]) -> Values:
    """Return the operations for formulas whose results become values of a dtype."""
    return _FULL if dtype == _WIDE else _SHORT


def formula(f: Callable[..., Formula]) -> Callable[..., Any]:
    """Return the translation rule of an elementwise primitive that is `f(ops, *operands)`, computed in float64."""

    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
        dtype = in_avals[0].dtype
        operands = [Formula(ctx, ctx.convert(v, _WIDE)) for v in expanded(ctx, in_vals)]
        return ctx.convert(f(operations_for(dtype), *operands).value, dtype)

    return rule


def at_least_float32(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the translation rule of an elementwise primitive that is `f(ctx, x)`; narrow floats use float32."""

    def rule(ctx: TranslationContext, in_avals: Any, in_vals: Any) -> Any:
        (x,) = in_vals
        dtype = x.aval.dtype
        narrow = dtypes.finfo(dtype).bits < 32
        return ctx.convert(f(ctx, ctx.convert(x, np.dtype(np.float32)) if narrow else x), dtype)

    return rule


def chlo(name: str) -> Callable[..., Any]:
    """Return the translation rule of a primitive that is one operation of CHLO."""
    return at_least_float32(lambda ctx, x: ctx.op(f"chlo.{name}", x, out=x.aval))
