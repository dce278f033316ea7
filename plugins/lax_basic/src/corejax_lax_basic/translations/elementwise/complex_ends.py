"""StableHLO of the values that Annex G of C99 defines for complex functions at zero, infinities and NaN."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic.elementwise._complex_ends import ENDS

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _negated(kind: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda ctx, v: ctx.op("not", kind(ctx, v), out=v.aval.update(dtype=np.dtype(bool)))


def _compared(direction: str, value: float | None) -> Callable[[Any, Any], Any]:
    """Return a comparison with a number, or of a value with itself."""
    return lambda ctx, v: ctx.compare(direction, v, v if value is None else ctx.full(v.aval, value))


def _is_finite(ctx: TranslationContext, v: Any) -> Any:
    return ctx.op("is_finite", v, out=v.aval.update(dtype=np.dtype(bool)))


def is_infinite(ctx: TranslationContext, v: Any) -> Any:
    """Return whether a real value is an infinity of either sign."""
    return _compared("EQ", math.inf)(ctx, ctx.op("abs", v, out=v.aval))


_KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "zero": _compared("EQ", 0),
    "nan": _compared("NE", None),
    "finite": _is_finite,
    "not finite": _negated(_is_finite),
    "inf": is_infinite,
    "+inf": _compared("EQ", math.inf),
    "-inf": _compared("EQ", -math.inf),
}


def with_ends(ctx: TranslationContext, name: str, x: Any, out: Any) -> Any:
    """Return `out`, XLA's value of the function `name` at `x`, with the values that Annex G defines.

    Args:
        ctx: the lowering context.
        name: the primitive's name.
        x: the operand; for real numbers `out` is returned unchanged.
        out: the result of XLA's operation.
    """
    if name not in ENDS or x.aval.dtype.kind != "c":
        return out
    real = x.aval.update(dtype=dtypes.real_dtype_of(x.aval.dtype))
    a, b, re, im = (ctx.op(part, v, out=real) for v in (x, out) for part in ("real", "imag"))

    def chosen(which: Any, part: Any, otherwise: Any) -> Any:
        if part is None:
            return otherwise
        if part == "0b":
            value = ctx.op("multiply", b, ctx.full(real, 0), out=real)
        else:
            value = {"a": a, "b": b}[part] if isinstance(part, str) else ctx.full(real, part)
        return ctx.op("select", which, value, otherwise, out=real)

    for kind_a, kind_b, new_re, new_im in ENDS[name]:
        conditions = [_KINDS[kind](ctx, v) for kind, v in ((kind_a, a), (kind_b, b)) if kind is not None]
        which = functools.reduce(lambda x, y: ctx.op("and", x, y, out=x.aval), conditions)
        re, im = chosen(which, new_re, re), chosen(which, new_im, im)
    return ctx.op("complex", re, im, out=x.aval)


def function(ctx: TranslationContext, name: str, operation: str, x: Any, attrs: str = "") -> Any:
    """Return an operation of StableHLO or CHLO on `x`, with the values that Annex G defines."""
    return with_ends(ctx, name, x, ctx.op(operation, x, out=x.aval, attrs=attrs))
