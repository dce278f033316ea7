"""Call LAPACK on stacks of matrices in compiled programs, and return NaN for matrices on which it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, abstract_eval_rules, stage_closed, xla_translations
from corejax_linalg._base.types import INT32, lapack_name

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

__corejax_registers_for_caller__ = True  # a rule's provenance is the file of its primitive


def kernel(
    ctx: TranslationContext,
    name: str,
    *operands: Any,
    out: Sequence[ShapedArray],
    in_place: Any = (),
    **attributes: Any,
) -> Any:
    """Append a call of a LAPACK kernel and return its results.

    Args:
        ctx: the builder.
        name: the routine's name, as for `lapack_name`.
        *operands: matrices, and vectors with the same batch axes.
        out: types of the results.
        in_place: pairs of an operand and the result that reuses its memory.
        **attributes: further arguments of the kernel; a letter is passed as a character.
    """
    from corejax_xla_backend.hlo import lapack_call

    given = {key: np.uint8(ord(v)) if isinstance(v, str) else v for key, v in attributes.items()}
    target = f"lapack_{lapack_name(name, operands[0].aval.dtype)}_ffi"
    return lapack_call(ctx, target, *operands, out=out, attributes=given, in_place=in_place)


def info_of(x: ShapedArray, rank: int = 2) -> ShapedArray:
    """Return the type of a kernel's `info`: a number for each matrix."""
    return ShapedArray(x.shape[: x.ndim - rank], INT32)


def nan_where_failed(ctx: TranslationContext, info: Any, *values: Any) -> list[Any]:
    """Replace the values of matrices with nonzero `info` by NaN."""
    batch = info.aval.shape
    truth = ShapedArray(batch, np.dtype(np.bool_))
    attrs = (
        "comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type SIGNED>"
    )
    ok = ctx.op("compare", info, ctx.full(info.aval, 0), out=truth, attrs=attrs)
    outs = []
    for value in values:
        mask = ctx.broadcast_in_dim(ok, value.aval.shape, range(len(batch)))
        outs.append(ctx.op("select", mask, value, ctx.full(value.aval, np.nan), out=value.aval))
    return outs


def inlined(ctx: TranslationContext, fun: Callable[..., Any], *vals: Any) -> Any:
    """Inline `fun`, a function of arrays in terms of `lax` that returns one value or a list."""
    several = False

    def flat(*args: Any) -> list[Any]:
        nonlocal several
        out = fun(*args)
        several = isinstance(out, list | tuple)
        return list(out) if several else [out]

    outs = ctx.inline(stage_closed(flat, [v.aval for v in vals]), vals)
    return outs if several else outs[0]


def on_cpu(primitive: Primitive) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a translation for CPUs; results of empty matrices are zero without a call.

    The decorated function is `rule(ctx, out_avals, *operands, **params)`. It returns a list if there are several
    results.
    """

    def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
        def translation(ctx: TranslationContext, in_avals: Any, in_vals: Any, **params: Any) -> Any:
            types = abstract_eval_rules.lookup(primitive)(*in_avals, **params)
            if all(a.size != 0 for a in in_avals):
                return rule(ctx, types, *in_vals, **params)
            zeros = [ctx.full(a, 0) for a in (types if primitive.multiple_results else [types])]
            return zeros if primitive.multiple_results else zeros[0]

        xla_translations.register(primitive, translation, platform="cpu")
        return rule

    return decorate
