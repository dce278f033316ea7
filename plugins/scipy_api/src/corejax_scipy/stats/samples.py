"""Functions of samples: mode rankdata sem. Source: `scipy.stats`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import corejax.numpy as jnp
from corejax.extend import dtypes, remembered
from corejax_lax_basic import lax
from corejax_scipy._arguments import array, axis_of, flag, inexact, one_of, static_int


class ModeResult(NamedTuple):
    """The most frequent elements and their counts."""

    mode: Any
    count: Any


def _policy(name: str, nan_policy: str) -> None:
    one_of(name, nan_policy, "nan_policy", ("propagate", "omit", "raise"))
    if nan_policy != "propagate":
        raise NotImplementedError(f"{name}: nan_policy {nan_policy!r} is not supported; use 'propagate'")


@remembered
def mode(a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """Return the most frequent element along an axis; the smallest one if there are several.

    Args:
        a: an array.
        axis: the axis; None for all elements.
        nan_policy: "propagate"; other policies are not supported.
        keepdims: whether the axis stays, with size 1.

    Returns:
        `(mode, count)`; NaN and 0 for an empty axis. All NaNs count as one element, the largest.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the axis is out of range, or `nan_policy` is unknown.
        NotImplementedError: `nan_policy` is "omit" or "raise".
    """
    _policy("mode", nan_policy)
    keepdims = flag("mode", keepdims, "keepdims")
    x = jnp.atleast_1d(array("mode", a))
    shape = x.shape
    if axis is None:
        kept = (1,) * len(shape) if keepdims else ()
        rows = x.reshape(-1)[None]
    else:
        axis = axis_of("mode", axis, x.ndim)
        kept = tuple(1 if i == axis else n for i, n in enumerate(shape) if keepdims or i != axis)
        rows = jnp.moveaxis(x, axis, -1)
        rows = rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1])
    if not rows.shape[1]:
        dtype = dtypes.default_float_dtype()
        return ModeResult(jnp.full(kept, math.nan, dtype), jnp.zeros(kept, dtype))
    ordered = jnp.sort(rows, axis=-1)
    # After sorting, equal elements (and NaNs) are adjacent; `run` counts the equal elements up to each place.
    index = jnp.arange(ordered.shape[1])
    before, after = ordered[:, :-1], ordered[:, 1:]
    changes = (after != before) & ((after == after) | (before == before))
    new = jnp.concatenate([jnp.ones_like(ordered[:, :1], bool), changes], axis=1)
    start = lax.cummax(jnp.where(new, index, 0), axis=1)
    run = index - start + 1
    best = jnp.argmax(run, axis=1)[:, None]
    found = jnp.take_along_axis(ordered, best, axis=1), jnp.take_along_axis(run, best, axis=1)
    return ModeResult(found[0].reshape(kept), found[1].reshape(kept))


_METHODS = ("average", "min", "max", "dense", "ordinal")


@remembered
def rankdata(a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Any:
    """Return the ranks of elements, starting at 1, in the default floating-point dtype.

    Args:
        a: an array.
        method: the rank of equal elements: the "average", "min" or "max" of their positions, "dense" (the next larger
            element has the next rank) or "ordinal" (in order of occurrence).
        axis: the axis; None for the flattened array.
        nan_policy: "propagate": all ranks along an axis with a NaN are NaN.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the axis is out of range, or `method` or `nan_policy` is unknown.
        NotImplementedError: `nan_policy` is "omit" or "raise".
    """
    _policy("rankdata", nan_policy)
    one_of("rankdata", method, "method", _METHODS)
    x = array("rankdata", a)
    if axis is None:
        return _ranks(x.reshape(-1), method)
    axis = axis_of("rankdata", axis, x.ndim)
    return jnp.moveaxis(_ranks(jnp.moveaxis(x, axis, -1), method), -1, axis)


def _ranks(x: Any, method: str) -> Any:
    """Return the ranks along the last axis."""
    size, dtype = x.shape[-1], dtypes.default_float_dtype()
    if not x.size:
        return jnp.zeros(x.shape, dtype)
    order = jnp.argsort(x, axis=-1)
    index = jnp.broadcast_to(jnp.arange(size), x.shape)
    place = jnp.put_along_axis(jnp.zeros_like(order), order, index, -1, inplace=False)
    if method == "ordinal":
        ranks = (place + 1).astype(dtype)
    else:
        ordered = jnp.take_along_axis(x, order, axis=-1)
        edge = jnp.ones_like(ordered[..., :1], bool)
        changes = ordered[..., 1:] != ordered[..., :-1]
        new = jnp.concatenate([edge, changes], axis=-1)
        ends = jnp.concatenate([changes, edge], axis=-1)
        first = lax.cummax(jnp.where(new, index, 0), axis=x.ndim - 1) + 1
        last = lax.cummin(jnp.where(ends, index, size), axis=x.ndim - 1, reverse=True) + 1
        rules: dict[str, Callable[[], Any]] = {
            "dense": lambda: jnp.cumsum(new, axis=-1),
            "min": lambda: first,
            "max": lambda: last,
            "average": lambda: 0.5 * (first.astype(dtype) + last.astype(dtype)),
        }
        ranks = jnp.take_along_axis(rules[method](), place, axis=-1).astype(dtype)
    if not dtypes.is_inexact(x.dtype):
        return ranks
    return jnp.where(jnp.any(jnp.isnan(x), axis=-1, keepdims=True), math.nan, ranks)


@remembered
def sem(a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """Return the standard error of the mean: the standard deviation over the root of the number of elements.

    Args:
        a: an array.
        axis: the axis; None for all elements.
        ddof: the variance divides by the number of elements minus `ddof`.
        nan_policy: "propagate" or "omit".
        keepdims: whether the axis stays, with size 1.

    Raises:
        TypeError: `a` is not an array, or `axis` is not an integer.
        ValueError: the axis is out of range, or `nan_policy` is unknown.
    """
    (x,) = inexact("sem", a)
    one_of("sem", nan_policy, "nan_policy", ("propagate", "omit"))
    if axis is not None:
        axis = axis_of("sem", axis, x.ndim)
    static_int("sem", ddof, "ddof")
    keepdims = flag("sem", keepdims, "keepdims")
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis=axis, keepdims=keepdims).astype(dtypes.real_dtype_of(x.dtype))
        return jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count)
    size = x.size if axis is None else x.shape[axis]
    return jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / math.sqrt(size)
