"""`bcoo_conv_general_dilated`: the convolution of two sparse vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import corejax.numpy as jnp
from corejax import lax
from corejax_sparse.bcoo import BCOO
from corejax_sparse.indices import columns, in_bounds, masked


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Any:
    """Correlate two vectors, each a BCOO or dense array of shape `(1, 1, size)`, as `lax.conv_general_dilated`.

    Args:
        lhs: the vector.
        rhs: the window.
        window_strides: the stride, 1.
        padding: "SAME", "VALID", or a pair of integers for the one dimension.
        lhs_dilation: None or 1.
        rhs_dilation: None or 1.
        dimension_numbers: None, or the order of `None`: batch, features, place.
        feature_group_count: 1.
        batch_group_count: 1.
        precision: ignored: sums of products are exact up to rounding.
        preferred_element_type: the dtype of the result, by default the operands'.
        out_sharding: None.

    Returns:
        A BCOO array of shape `(1, 1, size)`, with an element for each pair of stored elements.

    Raises:
        NotImplementedError: other shapes, strides, dilations, groups or orders of dimensions.
        TypeError: the dtypes differ.
    """
    name = "bcoo_conv_general_dilated"
    if lhs.ndim != 3 or lhs.shape[:2] != (1, 1) or rhs.ndim != 3 or rhs.shape[:2] != (1, 1):
        raise NotImplementedError(f"{name}: the shapes must be (1, 1, size), got {lhs.shape} and {rhs.shape}")
    for argument, value in (
        ("window_strides", window_strides), ("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation),
    ):  # fmt: skip
        if value is not None and tuple(value) != (1,):
            raise NotImplementedError(f"{name}: {argument} must be (1,), got {value!r}")
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError(f"{name}: groups of features or of a batch")
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    if numbers != lax.conv_dimension_numbers(lhs.shape, rhs.shape, None):
        raise NotImplementedError(f"{name}: dimension_numbers {dimension_numbers!r}")
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: the sharding of a sparse array cannot be given")
    if lhs.dtype != rhs.dtype:
        raise TypeError(f"{name}: the operands must have one dtype, got {lhs.dtype.name} and {rhs.dtype.name}")
    if isinstance(padding, str):
        padding = lax.padtype_to_pads((lhs.shape[2],), (rhs.shape[2],), (1,), padding)
    ((low, high),) = padding
    (x, i), (y, j) = _vector(lhs), _vector(rhs)
    size = max(0, lhs.shape[2] + low + high - rhs.shape[2] + 1)
    data = (x[:, None] * y[None, :]).ravel()
    place = (i[:, None] + (low - j)[None, :]).ravel()
    # Before the first place there is nothing; places after the last one are padding by themselves.
    data, place = jnp.where(place < 0, jnp.zeros((), data.dtype), data), jnp.where(place < 0, size, place)
    if preferred_element_type is not None:
        data = data.astype(preferred_element_type)
    return BCOO((data[None, None], place[None, None, :, None]), shape=(1, 1, size))


def _vector(x: Any) -> tuple[Any, Any]:
    """Return the stored elements of a vector of shape `(1, 1, size)`, and their places."""
    if not isinstance(x, BCOO):
        return jnp.asarray(x)[0, 0], jnp.arange(x.shape[2], dtype="int32")
    x = x.update_layout(n_batch=2, n_dense=0, on_inefficient=None)  # type: ignore[arg-type]  # None is accepted
    data, indices = x.data[0, 0], x.indices[0, 0]
    return masked(in_bounds(indices, x.sparse_shape), data), columns(indices)[0]
