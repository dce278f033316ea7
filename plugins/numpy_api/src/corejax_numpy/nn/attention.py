"""Attention: values averaged with weights that say how well queries and keys agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, like, operand
from corejax_numpy.einsums import einsum
from corejax_numpy.elementwise import where
from corejax_numpy.nn.classes import logsumexp, softmax

_IMPLEMENTATIONS = (None, "xla")


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Scaled dot-product attention (https://arxiv.org/abs/1706.03762), `softmax(query key^T scale + bias) value`.

    The letters of shapes: `b` the batch, `t` queries, `s` keys, `n` heads of queries, `k` heads of keys and values,
    of which `n` is a multiple (https://arxiv.org/abs/2305.13245), `h` the size of a head. `b` may be left out.

    Args:
        query: `[b, t, n, h]`.
        key: `[b, s, k, h]`.
        value: `[b, s, k, h]`.
        bias: what to add before the softmax; broadcasts to `[b, n, t, s]`.
        mask: booleans, which keys a query looks at; broadcasts to `[b, n, t, s]`.
        scale: by default `1 / sqrt(h)`.
        is_causal: whether a query looks at keys up to its own place only.
        query_seq_lengths: `[b]`, how many queries count; the results of the others are zero.
        key_value_seq_lengths: `[b]`, how many keys count.
        local_window_size: how far before and after its own place a query looks; one number is both.
        implementation: None or `"xla"`: there is one.
        return_residual: whether to return the logarithms of the softmax's denominators also, `[b, t, n]`; they count
            as constants.

    Returns:
        `[b, t, n, h]`, of the dtype of `key`; the softmax is in float32.

    Raises:
        ValueError: shapes or dtypes that do not fit, or another implementation.
    """
    if implementation not in _IMPLEMENTATIONS:
        raise ValueError(f"dot_product_attention: implementation is None or 'xla', got {implementation!r}")
    given = {"query": query, "key": key, "value": value, "bias": bias, "mask": mask}
    arrays = {
        name: array_argument("dot_product_attention", x, name)
        if x is not None or name in ("query", "key", "value")
        else None
        for name, x in given.items()
    }
    shape = arrays["query"].shape
    q, k, v, bias, mask = (x if x is None else _four_axes(name, x) for name, x in arrays.items())
    _check(q, k, v, bias, mask)
    heads, groups = k.shape[2], q.shape[2] // k.shape[2]
    q = lax.reshape(q, (*q.shape[:2], heads, groups, q.shape[3]))
    scores = einsum("btkgh,bskh->bkgts", q, k, preferred_element_type=dtypes.promote_types(q.dtype, np.float32))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else operand("dot_product_attention", scale, "scale")
    scores = scores * factor
    if bias is not None:
        scores = lax.convert_element_type(scores + _grouped(bias, heads), scores.dtype)
    lengths = [
        x if x is None else _checked_lengths(name, x, q.shape[0])
        for name, x in (("query", query_seq_lengths), ("key_value", key_value_seq_lengths))
    ]
    seen = _seen(scores, mask, heads, is_causal, lengths, local_window_size)
    if seen is not None:
        scores = where(seen, scores, like(scores, _least(scores.dtype)))
    scores = lax.convert_element_type(scores, np.float32)
    weights = lax.convert_element_type(softmax(scores), k.dtype)
    out = einsum("bkgts,bskh->btkgh", weights, v)
    if lengths[0] is not None:
        counts = lax.broadcasted_iota(np.int32, (1, out.shape[1], 1, 1, 1), 1) < _per_batch(lengths[0], 5)
        out = where(counts, out, like(out, 0))
    out = lax.reshape(out, shape)
    if not return_residual:
        return out
    residual = lax.convert_element_type(lax.transpose(logsumexp(scores, -1), (0, 3, 1, 2)), k.dtype)
    return out, lax.stop_gradient(lax.reshape(residual, shape[:-1]))


def _four_axes(name: str, x: Any) -> Any:
    least = 3 if name in ("query", "key", "value") else 0
    if not least <= x.ndim <= 4:
        raise ValueError(f"dot_product_attention: {name} has 3 or 4 axes, got {x.aval.str_short()}")
    return lax.expand_dims(x, tuple(range(4 - x.ndim))) if x.ndim < 4 else x


def _check(q: Any, k: Any, v: Any, bias: Any, mask: Any) -> None:
    shown = f"query {q.aval.str_short()}, key {k.aval.str_short()}, value {v.aval.str_short()}"
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"dot_product_attention: query, key and value have one dtype, got {shown}")
    if k.shape != v.shape or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3]):
        raise ValueError(f"dot_product_attention: query is [b, t, n, h], key and value are [b, s, k, h], got {shown}")
    if not k.shape[2] or q.shape[2] % k.shape[2]:
        raise ValueError(f"dot_product_attention: the heads of query are a multiple of those of key, got {shown}")
    if mask is not None and not dtypes.is_bool(mask.dtype):
        raise ValueError(
            f"dot_product_attention: mask is of booleans, got {mask.aval.str_short()}; use bias for numbers"
        )
    full = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None and any(size not in (1, wanted) for size, wanted in zip(x.shape, full, strict=True)):
            raise ValueError(
                f"dot_product_attention: {name} broadcasts to [b, n, t, s], {full}, got {x.aval.str_short()}"
            )


def _checked_lengths(name: str, lengths: Any, batch: int) -> Any:
    x = array_argument(f"dot_product_attention: {name}_seq_lengths", lengths)
    if not dtypes.is_integer(x.dtype) or x.shape != (batch,):
        raise ValueError(
            f"dot_product_attention: {name}_seq_lengths are {batch} integers, one for each batch, "
            f"got {x.aval.str_short()}"
        )
    return lax.convert_element_type(x, np.int32)


def _grouped(x: Any, heads: int) -> Any:
    """`[b, n, t, s]` as `[b, k, n / k, t, s]`."""
    b, n, t, s = x.shape
    return lax.reshape(x, (b, 1, 1, t, s) if n == 1 else (b, heads, n // heads, t, s))


def _per_batch(lengths: Any, ndim: int) -> Any:
    return lax.reshape(lengths, (lengths.shape[0],) + (1,) * (ndim - 1))


def _seen(scores: Any, mask: Any, heads: int, is_causal: bool, lengths: list[Any], window: Any) -> Any:
    """Which scores `[b, k, g, t, s]` count, as an array that broadcasts to them; None for all."""
    t, s = scores.shape[-2:]
    parts = [] if mask is None else [_grouped(mask, heads)]
    if is_causal or window is not None:
        queries, keys = (lax.broadcasted_iota(np.int32, (1, 1, 1, t, s), axis) for axis in (3, 4))
        if is_causal:
            parts.append(lax.ge(queries, keys))
        if window is not None:
            before, after = (window, window) if isinstance(window, int) else window
            parts += [lax.le(queries, keys + before), lax.ge(queries, keys - after)]
    for axis, (count, size) in enumerate(zip(lengths, (t, s), strict=True), 3):
        if count is not None:
            place = lax.broadcasted_iota(np.int32, (1,) * axis + (size,) + (1,) * (4 - axis), axis)
            parts.append(place < _per_batch(count, 5))
    seen = None
    for part in parts:
        seen = part if seen is None else seen & part
    return seen


def _least(dtype: Any) -> float:
    """What scores that do not count are: so low that they weigh nothing, finite so that rows without any are too."""
    return -0.7 * min(float(dtypes.finfo(dtype).max), float(np.finfo(np.float32).max))
