"""`empty`: an array of unspecified values; and tokens, which order operations that share no data.

A token is a boolean array without elements: an operation that takes it runs after the operation that returns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, defzero, dtypes
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_shape
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.requested_dtypes import requested_dtype

__all__ = ["after_all", "after_all_p", "create_token", "create_token_p", "empty", "empty_p"]

TOKEN = ShapedArray((0,), dtypes.bool_)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Any:
    """Return an array of unspecified values; here they are zeros.

    Args:
        shape: shape of the array.
        dtype: dtype of the array.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the shape is not made of concrete integers.
    """
    out = empty_p.bind(shape=canonical_shape(shape), dtype=requested_dtype(dtype))
    return place("empty", out, out_sharding)


@takes("empty", 0)
def _empty_abstract_eval(*, shape: tuple[int, ...], dtype: Any) -> ShapedArray:
    return ShapedArray(shape, dtype)


empty_p: Primitive = Primitive(
    "empty",
    impl=lambda *, shape, dtype: np.zeros(shape, dtype),
    abstract_eval=_empty_abstract_eval,
    vmap=lambda axis_size, vals, dims, **params: (empty_p.bind(**params), None),
    doc="Return an array of unspecified values.",
)
defzero(empty_p)


# -- tokens ------------------------------------------------------------------------------------------------------


def create_token(_: Any = None) -> Any:
    """Return a token that waits for nothing. The argument is ignored."""
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """Return one token for several: it is available when all of them are.

    Raises:
        TypeError: an operand is not a token.
    """
    return after_all_p.bind(*operands)


def _after_all_abstract_eval(*avals: ShapedArray) -> ShapedArray:
    for i, aval in enumerate(avals):
        if (aval.shape, aval.dtype) != (TOKEN.shape, TOKEN.dtype):
            raise TypeError(f"after_all takes tokens, as create_token returns them; operand {i} is {aval.str_short()}")
    return TOKEN


def _no_elements(*tokens: Any) -> Any:
    return np.zeros(TOKEN.shape, TOKEN.dtype)


def _after_all_vmap(axis_size: int, vals: Any, dims: Any) -> Any:
    """Return a token that is not batched: tokens have no elements, so that one serves the whole batch."""
    return after_all_p.bind(*(create_token() for _ in vals)), None


create_token_p = Primitive(
    "create_token",
    impl=_no_elements,
    abstract_eval=takes("create_token", 0)(lambda: TOKEN),
    vmap=lambda axis_size, vals, dims: (create_token(), None),
    doc="Return a token that waits for nothing.",
)
after_all_p = Primitive(
    "after_all",
    impl=_no_elements,
    abstract_eval=_after_all_abstract_eval,
    vmap=_after_all_vmap,
    doc="Return one token for several.",
)
defzero(create_token_p)
defzero(after_all_p)
