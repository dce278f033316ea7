"""StableHLO of elementwise functions of one operand; see the StableHLO specification for the operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic._base.type_rules import to_bool
from corejax_lax_basic.elementwise import unary


def _one_op(name: str, result: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """The rule of a primitive that is one operation; `result` gives its dtype where it is another one."""

    def rule(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        (x,) = in_vals
        return ctx.op(name, x, out=x.aval if result is None else x.aval.update(dtype=result(x.aval.dtype)))

    return rule


def _abs(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    if dtypes.is_unsigned(x.aval.dtype):
        return x
    return ctx.op("abs", x, out=x.aval.update(dtype=dtypes.real_dtype_of(x.aval.dtype)))


def _sign(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    if dtypes.is_unsigned(x.aval.dtype):  # `sign` is of signed types
        return ctx.op("minimum", x, ctx.full(x.aval, 1), out=x.aval)
    return ctx.op("sign", x, out=x.aval)


def _logistic(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    (x,) = in_vals
    one = ctx.full(x.aval, 1)
    grown = ctx.op("exponential", ctx.op("negate", x, out=x.aval), out=x.aval)
    return ctx.op("divide", one, ctx.op("add", one, grown, out=x.aval), out=x.aval)


# fmt: off
xla_translations.register(unary.neg_p,       _one_op("negate"))
xla_translations.register(unary.abs_p,       _abs)
xla_translations.register(unary.sign_p,      _sign)
xla_translations.register(unary.floor_p,     _one_op("floor"))
xla_translations.register(unary.ceil_p,      _one_op("ceil"))
xla_translations.register(unary.is_finite_p, _one_op("is_finite", to_bool))
xla_translations.register(unary.exp_p,       _one_op("exponential"))
xla_translations.register(unary.expm1_p,     _one_op("exponential_minus_one"))
xla_translations.register(unary.log_p,       _one_op("log"))
xla_translations.register(unary.log1p_p,     _one_op("log_plus_one"))
xla_translations.register(unary.sqrt_p,      _one_op("sqrt"))
xla_translations.register(unary.rsqrt_p,     _one_op("rsqrt"))
xla_translations.register(unary.sin_p,       _one_op("sine"))
xla_translations.register(unary.cos_p,       _one_op("cosine"))
xla_translations.register(unary.tan_p,       _one_op("tan"))
xla_translations.register(unary.tanh_p,      _one_op("tanh"))
xla_translations.register(unary.logistic_p,  _logistic)
# fmt: on
