"""StableHLO of broadcasting, of primitives that rearrange elements, and of those that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, xla_translations
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p
from corejax_lax_basic.shape.joining import concatenate_p, iota_p, pad_p
from corejax_lax_basic.shape.rearranging import reshape_p, rev_p, squeeze_p, transpose_p


def result(primitive: Primitive, in_avals: Any, **params: Any) -> ShapedArray:
    """Type of a primitive's one result."""
    return primitive.abstract(tuple(in_avals), params)[0]


@xla_translations.register(broadcast_in_dim_p)
def broadcast_in_dim(ctx: Any, in_avals: Any, in_vals: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    """`broadcast_in_dim`."""
    return ctx.broadcast_in_dim(in_vals[0], shape, broadcast_dimensions)


@xla_translations.register(reshape_p)
def reshape(ctx: Any, in_avals: Any, in_vals: Any, *, new_sizes: Any) -> Any:
    """`reshape`."""
    return ctx.reshape(in_vals[0], new_sizes)


@xla_translations.register(squeeze_p)
def squeeze(ctx: Any, in_avals: Any, in_vals: Any, *, dimensions: Any) -> Any:
    """`reshape`."""
    return ctx.reshape(in_vals[0], result(squeeze_p, in_avals, dimensions=dimensions).shape)


@xla_translations.register(transpose_p)
def transpose(ctx: Any, in_avals: Any, in_vals: Any, *, permutation: Any) -> Any:
    """`transpose`."""
    out = result(transpose_p, in_avals, permutation=permutation)
    return ctx.op("transpose", in_vals[0], out=out, attrs=f"permutation = {ctx.i64(permutation)}")


@xla_translations.register(rev_p)
def rev(ctx: Any, in_avals: Any, in_vals: Any, *, dimensions: Any) -> Any:
    """`reverse`."""
    return ctx.op("reverse", in_vals[0], out=in_avals[0], attrs=f"dimensions = {ctx.i64(dimensions)}")


@xla_translations.register(concatenate_p)
def concatenate(ctx: Any, in_avals: Any, in_vals: Any, *, dimension: int) -> Any:
    """`concatenate`."""
    out = result(concatenate_p, in_avals, dimension=dimension)
    return ctx.op("concatenate", *in_vals, out=out, attrs=f"dimension = {dimension} : i64")


@xla_translations.register(pad_p)
def pad(ctx: Any, in_avals: Any, in_vals: Any, *, padding_config: Any) -> Any:
    """`pad`."""
    operand, value = in_vals
    return ctx.pad(operand, padding_config, value)


@xla_translations.register(iota_p)
def iota(ctx: Any, in_avals: Any, in_vals: Any, *, dtype: Any, shape: Any, dimension: int) -> Any:
    """`iota`."""
    return ctx.op("iota", out=ShapedArray(shape, np.dtype(dtype)), attrs=f"iota_dimension = {dimension} : i64")
