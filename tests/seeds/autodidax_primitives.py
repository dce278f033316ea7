"""Autodidax's own primitives and rules, as the tutorial writes them, on corejax's `Primitive` and registries.

What differs from the tutorial is what differs between the two cores: rules give one value, not a list of one,
`None` is the batching dimension of a value that is not mapped, `UndefPrimal` is asked for with a function.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    dtypes,
    impl_rules,
    is_undef_primal,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
    xla_translations,
)

add_p = Primitive("autodidax.add")
mul_p = Primitive("autodidax.mul")
neg_p = Primitive("autodidax.neg")
sin_p = Primitive("autodidax.sin")
cos_p = Primitive("autodidax.cos")
reduce_sum_p = Primitive("autodidax.reduce_sum")
greater_p = Primitive("autodidax.greater")
transpose_p = Primitive("autodidax.transpose")
broadcast_p = Primitive("autodidax.broadcast")


def add(x: Any, y: Any) -> Any:
    return add_p.bind(x, y)


def mul(x: Any, y: Any) -> Any:
    return mul_p.bind(x, y)


def neg(x: Any) -> Any:
    return neg_p.bind(x)


def sin(x: Any) -> Any:
    return sin_p.bind(x)


def cos(x: Any) -> Any:
    return cos_p.bind(x)


def reduce_sum(x: Any, axis: int | None = None) -> Any:
    return reduce_sum_p.bind(x, axis=axis)


def greater(x: Any, y: Any) -> Any:
    return greater_p.bind(x, y)


def transpose(x: Any, perm: Any) -> Any:
    return transpose_p.bind(x, perm=tuple(perm))


def broadcast(x: Any, shape: Any, axes: Any) -> Any:
    return broadcast_p.bind(x, shape=tuple(shape), axes=tuple(axes))


# -- evaluation ------------------------------------------------------------------------------------

impl_rules.register(add_p, lambda x, y: np.add(x, y))
impl_rules.register(mul_p, lambda x, y: np.multiply(x, y))
impl_rules.register(neg_p, lambda x: np.negative(x))
impl_rules.register(sin_p, lambda x: np.sin(x))
impl_rules.register(cos_p, lambda x: np.cos(x))
impl_rules.register(reduce_sum_p, lambda x, *, axis: np.sum(x, axis))
impl_rules.register(greater_p, lambda x, y: np.greater(x, y))
impl_rules.register(transpose_p, lambda x, *, perm: np.transpose(x, perm))


@impl_rules.register(broadcast_p)
def broadcast_impl(x: Any, *, shape: Any, axes: Any) -> Any:
    for axis in sorted(axes):
        x = np.expand_dims(x, axis)
    return np.broadcast_to(x, shape)


# -- jvp -------------------------------------------------------------------------------------------


@jvp_rules.register(add_p)
def add_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (x_dot, y_dot) = primals, tangents
    return add(x, y), add(x_dot, y_dot)


@jvp_rules.register(mul_p)
def mul_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (x_dot, y_dot) = primals, tangents
    return mul(x, y), add(mul(x_dot, y), mul(x, y_dot))


@jvp_rules.register(sin_p)
def sin_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return sin(x), mul(cos(x), x_dot)


@jvp_rules.register(cos_p)
def cos_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return cos(x), mul(neg(sin(x)), x_dot)


@jvp_rules.register(neg_p)
def neg_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return neg(x), neg(x_dot)


@jvp_rules.register(reduce_sum_p)
def reduce_sum_jvp(primals: Any, tangents: Any, *, axis: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return reduce_sum(x, axis), reduce_sum(x_dot, axis)


@jvp_rules.register(greater_p, symbolic_zeros=True)
def greater_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    return greater(x, y), None


@jvp_rules.register(broadcast_p)
def broadcast_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return broadcast(x, **params), broadcast(x_dot, **params)


# -- vmap ------------------------------------------------------------------------------------------


def broadcasting_binop_batching_rule(op: Any, axis_size: int, vals_in: Any, dims_in: Any) -> Any:
    """The tutorial's rule with the oversight taken out that `as_the_tutorial_prints` puts back."""
    (x, y), (x_bdim, y_bdim) = vals_in, dims_in
    if x_bdim != y_bdim:
        if x_bdim is None:
            x, x_bdim = move_batch_axis(axis_size, x_bdim, y_bdim, x), y_bdim
        else:
            y = move_batch_axis(axis_size, y_bdim, x_bdim, y)
    return op(x, y), x_bdim


def as_the_tutorial_prints(op: Any, axis_size: int, vals_in: Any, dims_in: Any) -> Any:
    """The tutorial's rule word for word: `x_bdim` stays "not mapped" when `x` was broadcast to meet `y`."""
    (x, y), (x_bdim, y_bdim) = vals_in, dims_in
    if x_bdim != y_bdim:
        if x_bdim is None:
            x = move_batch_axis(axis_size, x_bdim, y_bdim, x)
        else:
            y = move_batch_axis(axis_size, y_bdim, x_bdim, y)
    return op(x, y), x_bdim


vmap_rules.register(add_p, partial(broadcasting_binop_batching_rule, add))
vmap_rules.register(mul_p, partial(broadcasting_binop_batching_rule, mul))


def vectorized_unop_batching_rule(op: Any, axis_size: int, vals_in: Any, dims_in: Any) -> Any:
    (x,), (x_bdim,) = vals_in, dims_in
    return op(x), x_bdim


vmap_rules.register(sin_p, partial(vectorized_unop_batching_rule, sin))
vmap_rules.register(cos_p, partial(vectorized_unop_batching_rule, cos))
vmap_rules.register(neg_p, partial(vectorized_unop_batching_rule, neg))


@vmap_rules.register(reduce_sum_p)
def reduce_sum_batching_rule(axis_size: int, vals_in: Any, dims_in: Any, *, axis: int) -> Any:
    (x,), (x_bdim,) = vals_in, dims_in
    new_axis = axis + (x_bdim <= axis)
    out_bdim = x_bdim - (new_axis < x_bdim)
    return reduce_sum(x, new_axis), out_bdim


# -- abstract evaluation ---------------------------------------------------------------------------


def broadcasting_binop_abstract_eval_rule(*avals_in: ShapedArray) -> ShapedArray:
    out_dtype = dtypes.result_type(*avals_in)
    out_shape = np.broadcast_shapes(*(a.shape for a in avals_in))
    return ShapedArray(out_shape, out_dtype, all(a.weak_type for a in avals_in))


def vectorized_unop_abstract_eval_rule(aval_in: ShapedArray) -> ShapedArray:
    return aval_in


for _primitive in (add_p, mul_p):
    abstract_eval_rules.register(_primitive, broadcasting_binop_abstract_eval_rule)
for _primitive in (sin_p, cos_p, neg_p):
    abstract_eval_rules.register(_primitive, vectorized_unop_abstract_eval_rule)


@abstract_eval_rules.register(greater_p)
def greater_abstract_eval_rule(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    return ShapedArray(np.broadcast_shapes(x.shape, y.shape), np.dtype(bool))


@abstract_eval_rules.register(reduce_sum_p)
def reduce_sum_abstract_eval_rule(aval_in: ShapedArray, *, axis: Any) -> ShapedArray:
    shape = () if axis is None else tuple(d for i, d in enumerate(aval_in.shape) if i != axis)
    return aval_in.update(shape=shape)


@abstract_eval_rules.register(transpose_p)
def transpose_abstract_eval_rule(x: ShapedArray, *, perm: Any) -> ShapedArray:
    return x.update(shape=tuple(x.shape[i] for i in perm))


@abstract_eval_rules.register(broadcast_p)
def broadcast_abstract_eval(x: ShapedArray, *, shape: Any, axes: Any) -> ShapedArray:
    return x.update(shape=tuple(shape))


# -- compilation -----------------------------------------------------------------------------------


def direct_translation(name: str, ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    shape = np.broadcast_shapes(*(a.shape for a in in_avals))
    dtype = dtypes.result_type(*in_avals)
    vals = [ctx.convert(v, dtype) for v in ctx.expand_scalars(in_vals, shape)]
    return ctx.op(name, *vals, out=ShapedArray(shape, dtype))


for _primitive, _name in (
    (add_p, "add"),
    (mul_p, "multiply"),
    (neg_p, "negate"),
    (sin_p, "sine"),
    (cos_p, "cosine"),
):
    xla_translations.register(_primitive, partial(direct_translation, _name))


@xla_translations.register(greater_p)
def greater_translation(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    shape = np.broadcast_shapes(*(a.shape for a in in_avals))
    attrs = "comparison_direction = #stablehlo<comparison_direction GT>"
    return ctx.op("compare", *ctx.expand_scalars(in_vals, shape), out=ShapedArray(shape, np.dtype(bool)), attrs=attrs)


@xla_translations.register(reduce_sum_p)
def reduce_sum_translation(ctx: Any, in_avals: Any, in_vals: Any, *, axis: int) -> Any:
    (x_aval,), (x,) = in_avals, in_vals
    scalar = ShapedArray((), x_aval.dtype)
    region = ctx.region([scalar, scalar], lambda inner, a, b: inner.op("add", a, b, out=scalar))
    zero = ctx.constant(np.array(0, x_aval.dtype))
    out = reduce_sum_abstract_eval_rule(x_aval, axis=axis)
    return ctx.op("reduce", x, zero, out=out, attrs=f"dimensions = {ctx.i64([axis])}", regions=[region])


@xla_translations.register(broadcast_p)
def broadcast_translation(ctx: Any, in_avals: Any, in_vals: Any, *, shape: Any, axes: Any) -> Any:
    (x,) = in_vals
    return ctx.broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i not in axes])


# -- transposition ---------------------------------------------------------------------------------


@transpose_rules.register(mul_p)
def mul_transpose_rule(z_bar: Any, x: Any, y: Any) -> Any:
    assert is_undef_primal(x) ^ is_undef_primal(y)
    return [mul(z_bar, y), None] if is_undef_primal(x) else [None, mul(x, z_bar)]


@transpose_rules.register(neg_p)
def neg_transpose_rule(ybar: Any, x: Any) -> Any:
    assert is_undef_primal(x)
    return [neg(ybar)]


@transpose_rules.register(add_p)
def add_transpose_rule(z_bar: Any, x: Any, y: Any) -> Any:
    return [z_bar if is_undef_primal(x) else None, z_bar if is_undef_primal(y) else None]


@transpose_rules.register(reduce_sum_p)
def reduce_sum_transpose_rule(z_bar: Any, x: Any, *, axis: int) -> Any:
    return [broadcast(z_bar, x.aval.shape, (axis,))]
