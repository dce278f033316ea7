"""Attention: averages of values, weighted by the similarity of queries and keys."""

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
    """Compute scaled dot-product attention: `softmax(query key^T scale + bias) value`.

    Source: https://arxiv.org/abs/1706.03762. The letters of shapes: `b` is the batch, `t` the number of queries, `s`
    that of keys, `n` the number of query heads, `k` that of key and value heads (`n` is a multiple of `k`,
    https://arxiv.org/abs/2305.13245), `h` the size of a head. The axis `b` may be omitted.

    Args:
        query: queries, `[b, t, n, h]`.
        key: keys, `[b, s, k, h]`.
        value: values, `[b, s, k, h]`.
        bias: numbers added before the softmax; broadcasts to `[b, n, t, s]`.
        mask: booleans, True for the keys that a query attends to; broadcasts to `[b, n, t, s]`.
        scale: factor of the scores; `1 / sqrt(h)` by default.
        is_causal: whether a query attends only to keys up to its own position; False by default.
        query_seq_lengths: `[b]`, the number of valid queries; the results for the other queries are zero.
        key_value_seq_lengths: `[b]`, the number of valid keys.
        local_window_size: the number of positions before and after its own to which a query attends, or one number for
            both sides.
        implementation: None or `"xla"`, the only implementation.
        return_residual: whether to return the logarithms of the softmax's denominators, `[b, t, n]`, as well;
            derivatives treat them as constants.

    Returns:
        `[b, t, n, h]`, of the dtype of `key`; the softmax is computed in float32.

    Raises:
        ValueError: shapes or dtypes do not match, or the implementation is unknown.
    """
    if implementation not in _IMPLEMENTATIONS:
        raise ValueError(f"dot_product_attention: implementation is None or 'xla', got {implementation!r}")
    arrays = _arrays(query=query, key=key, value=value, bias=bias, mask=mask)
    shape = arrays["query"].shape
    operands: list[Any] = [x if x is None else _four_axes(name, x) for name, x in arrays.items()]
    q, k, v, bias, mask = operands
    _check(q, k, v, bias, mask)
    scores = _scores(q, k, bias, scale)
    lengths = [
        x if x is None else _checked_lengths(name, x, q.shape[0])
        for name, x in (("query", query_seq_lengths), ("key_value", key_value_seq_lengths))
    ]
    attended = _attended(scores, mask, k.shape[2], is_causal, lengths, local_window_size)
    if attended is not None:
        scores = where(attended, scores, like(scores, _masked_score(scores.dtype)))
    scores = lax.convert_element_type(scores, np.float32)
    weights = lax.convert_element_type(softmax(scores), k.dtype)
    out = einsum("bkgts,bskh->btkgh", weights, v)
    if lengths[0] is not None:
        out = _zero_after(out, lengths[0])
    out = lax.reshape(out, shape)
    if not return_residual:
        return out
    residual = lax.convert_element_type(lax.transpose(logsumexp(scores, -1), (0, 3, 1, 2)), k.dtype)
    return out, lax.stop_gradient(lax.reshape(residual, shape[:-1]))


def _arrays(**arguments: Any) -> dict[str, Any]:
    """Return the arguments as arrays, by name; None for optional ones that are not given."""
    required = ("query", "key", "value")
    return {
        name: array_argument("dot_product_attention", x, name) if x is not None or name in required else None
        for name, x in arguments.items()
    }


def _zero_after(out: Any, lengths: Any) -> Any:
    """Replace the results for queries that are not valid by zeros."""
    is_valid = lax.broadcasted_iota(np.int32, (1, out.shape[1], 1, 1, 1), 1) < _per_batch(lengths, 5)
    return where(is_valid, out, like(out, 0))


def _scores(q: Any, k: Any, bias: Any, scale: Any) -> Any:
    """Return `query key^T scale + bias`, `[b, k, g, t, s]`, in float32 or a wider dtype; `g` is `n / k`."""
    heads, groups = k.shape[2], q.shape[2] // k.shape[2]
    q = lax.reshape(q, (*q.shape[:2], heads, groups, q.shape[3]))
    scores = einsum("btkgh,bskh->bkgts", q, k, preferred_element_type=dtypes.promote_types(q.dtype, np.float32))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else operand("dot_product_attention", scale, "scale")
    scores = scores * factor
    return scores if bias is None else lax.convert_element_type(scores + _grouped(bias, heads), scores.dtype)


def _four_axes(name: str, x: Any) -> Any:
    least = 3 if name in ("query", "key", "value") else 0
    if not least <= x.ndim <= 4:
        raise ValueError(f"dot_product_attention: {name} has 3 or 4 axes, got {x.aval.str_short()}")
    return lax.expand_dims(x, tuple(range(4 - x.ndim))) if x.ndim < 4 else x


def _check(q: Any, k: Any, v: Any, bias: Any, mask: Any) -> None:
    shown = f"query {q.aval.str_short()}, key {k.aval.str_short()}, value {v.aval.str_short()}"
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"dot_product_attention: query, key and value must have one dtype, got {shown}")
    if k.shape != v.shape or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3]):
        raise ValueError(f"dot_product_attention: query is [b, t, n, h], key and value are [b, s, k, h], got {shown}")
    if not k.shape[2] or q.shape[2] % k.shape[2]:
        raise ValueError(
            f"dot_product_attention: the number of query heads must be a multiple of that of key heads, got {shown}"
        )
    if mask is not None and not dtypes.is_bool(mask.dtype):
        raise ValueError(
            f"dot_product_attention: mask must be boolean, got {mask.aval.str_short()}; use bias for numbers"
        )
    full = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None and any(size not in (1, wanted) for size, wanted in zip(x.shape, full, strict=True)):
            raise ValueError(
                f"dot_product_attention: {name} must broadcast to [b, n, t, s], {full}, got {x.aval.str_short()}"
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
    """Reshape `[b, n, t, s]` to `[b, k, n / k, t, s]`."""
    b, n, t, s = x.shape
    return lax.reshape(x, (b, 1, 1, t, s) if n == 1 else (b, heads, n // heads, t, s))


def _per_batch(lengths: Any, ndim: int) -> Any:
    return lax.reshape(lengths, (lengths.shape[0],) + (1,) * (ndim - 1))


def _attended(scores: Any, mask: Any, heads: int, is_causal: bool, lengths: list[Any], window: Any) -> Any:
    """Return which scores `[b, k, g, t, s]` are attended to, in a shape that broadcasts to them; None for all."""
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
    attended = None
    for part in parts:
        attended = part if attended is None else attended & part
    return attended


def _masked_score(dtype: Any) -> float:
    """Return the value of masked scores: low enough to get no weight, and finite for fully masked rows."""
    return -0.7 * min(float(dtypes.finfo(dtype).max), float(np.finfo(np.float32).max))
