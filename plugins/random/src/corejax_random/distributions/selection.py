"""Draws from arrays and categories: permutation choice categorical; and random orthogonal matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import dtypes
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_random.distributions import on_host
from corejax_random.distributions.arguments import (
    array_or_number,
    broadcast_to,
    float_dtype,
    joint_shape,
    known_flag,
    known_integer,
    number,
    of_32_bits,
    single_key,
)
from corejax_random.distributions.drawing import bits, draw, keys, size_of
from corejax_random.distributions.normal import standard_normal
from corejax_random.distributions.quantiles import gumbel_mode, standard_gumbel
from corejax_random.distributions.repeating import as_draw
from corejax_random.distributions.rows import draws
from corejax_random.distributions.uniform import between_0_and_1, integers_between
from corejax_random.keys.arguments import evaluating, is_key
from corejax_random.keys.functions import shape_argument


def _axis(name: str, axis: Any, ndim: int) -> int:
    index: int = known_integer(name, "axis", axis)
    if not -ndim <= index < ndim:
        raise ValueError(f"{name}: axis {index} is out of bounds for an array of {ndim} axes")
    return index % ndim


def _count(name: str, argument: str, value: Any) -> Any:
    """Return an integer that was passed in place of an array."""
    if isinstance(value, SymbolicDim):
        return value
    return known_integer(name, argument, value, "an array or a concrete integer")


@draws
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """Shuffle an array along an axis.

    Args:
        key: a key.
        x: an array, or an integer for `arange(x)`.
        axis: axis along which to shuffle.
        independent: whether to shuffle each vector along the axis independently.

    Raises:
        TypeError: if `key` is not a key, or `x` is neither an array nor an integer.
        ValueError: if the axis is out of bounds.
    """
    x = array_or_number("permutation", "x", x)
    independent = known_flag("permutation", "independent", independent)
    if not np.ndim(x):
        _axis("permutation", axis, 1)
        count = _count("permutation", "x", x)
        return draw(_shuffled_range, count, key, size=max(count, 0))
    axis = _axis("permutation", axis, x.ndim)
    if independent and is_key(x):
        raise TypeError(f"permutation: x must have numbers if independent is true, got {x.aval.str_short()}")
    return draw(_permuted, x.size, key, x, axis=axis, independent=independent)


def _shuffled_range(key: Any, *, size: int) -> Any:
    return _shuffle(key, jnp.arange(size), 0)


def _permuted(key: Any, x: Any, *, axis: int, independent: bool) -> Any:
    if independent or (x.ndim == 1 and not is_key(x)):  # keys cannot be sorted
        return _shuffle(key, x, axis)
    return jnp.take(x, _shuffle(key, jnp.arange(x.shape[axis]), 0), axis, unique_indices=True)


def _shuffle(key: Any, x: Any, axis: int) -> Any:
    """Sort by random words, in so many rounds that two elements are unlikely to have equal words in all of them."""
    if isinstance(x.size, SymbolicDim):
        size, least = lax.make_scalar(x.size, np.dtype(np.int32)), (1, 1625, 2642245)
        places = lax.broadcasted_iota(np.dtype(np.int32), x.shape, axis)
        # The loop shuffles indices: of a loop whose length is not known, `x` would have no gradient.
        count = sum((size > n).astype(np.int32) for n in least)
        places = lax.fori_loop(0, count, _shuffled_once(axis), (key, places))[1]
        return jnp.take_along_axis(x, places, axis, mode="promise_in_bounds")
    rounds = int(np.ceil(3 * np.log(max(1, x.size)) / np.log(2**32 - 1)))
    if evaluating(x) and on_host.on_host(key, x.shape):
        return on_host.shuffled(key, x, axis, rounds)
    for i in range(rounds):
        key, x = _shuffled_once(axis)(i, (key, x))
    return x


def _shuffled_once(axis: int) -> Any:
    def shuffle(_: Any, state: Any) -> Any:
        key, x = state
        both = keys(key)
        return both[0], lax.sort_key_val(bits(both[1], 32, x.shape), x, axis)[1]

    return shuffle


@as_draw
def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: str | None = None
) -> Any:
    """Draw elements of an array.

    Args:
        key: a key.
        a: an array, or an integer for `arange(a)`.
        shape: shape of the draws.
        replace: whether an element may be drawn more than once.
        p: probability of each element; equal by default. The sum need not be 1.
        axis: axis along which to draw elements.
        mode: mode of the Gumbel numbers for draws with `p` and without replacement: "low" or "high" (see `gumbel`).

    Returns:
        An array of the shape of `a`, with `shape` in place of the axis.

    Raises:
        TypeError: if `key` is not a key, or an argument has the wrong type.
        ValueError: if `a` has too few elements, or the shapes do not match.
    """
    key = single_key("choice", key)
    if not isinstance(shape, tuple | list | range):
        raise TypeError(f"choice: shape must be a sequence of sizes, got {shape!r}")
    shape = shape_argument("choice", shape)
    replace = known_flag("choice", "replace", replace)
    array = array_or_number("choice", "a", a)
    axis = _axis("choice", axis, array.ndim) if array.ndim else 0
    count = array.shape[axis] if array.ndim else _count("choice", "a", a)
    draws = math.prod(shape)
    if draws == 0:
        return jnp.zeros(array.shape[:axis] + shape + array.shape[axis + 1 :], array.dtype)
    if count <= 0:
        raise ValueError(f"choice: a must not be empty, got {a!r}")
    if not replace and draws > count:
        raise ValueError(f"choice: shape {shape} needs {draws} draws without replacement, but a has {count} elements")
    mode = gumbel_mode("choice", mode)
    if p is None and not replace:
        whole = array if array.ndim else jnp.arange(count)
        result = draw(_permuted, whole.size, key, whole, axis=axis, independent=False)
        result = result[(slice(None),) * axis + (slice(draws),)]
    else:
        places = _places(key, count, shape, replace, p, mode)
        result = jnp.take(array, places, axis) if array.ndim else places
    return result.reshape(array.shape[:axis] + shape + array.shape[axis + 1 :])


def _places(key: Any, count: int, shape: Any, replace: bool, p: Any, mode: str) -> Any:
    if p is None:
        return integers_between(key, 0, count, shape, dtypes.default_int_dtype())
    (p,) = lax.promote_dtypes(number("choice", "p", p), inexact=True)
    p = of_32_bits(p)
    if p.shape != (count,):
        raise ValueError(
            f"choice: p must be a vector of {count} probabilities, one for each element, got shape {p.shape}"
        )
    if replace:
        return draw(_by_sums, size_of(shape), key, p, shape=shape)
    return draw(_by_gumbels, count, key, p, draws=math.prod(shape), mode=mode)


def _by_sums(key: Any, p: Any, *, shape: Any) -> Any:
    sums = jnp.cumsum(p)
    r = sums[-1] * (1 - between_0_and_1(key, shape=shape, dtype=sums.dtype))
    return lax.convert_element_type(jnp.searchsorted(sums, r), dtypes.default_int_dtype())


def _by_gumbels(key: Any, p: Any, *, draws: int, mode: str) -> Any:
    scores = standard_gumbel(key, shape=p.shape, dtype=p.dtype, mode=mode) + lax.log(p)
    return lax.convert_element_type(lax.top_k(scores, draws)[1], dtypes.default_int_dtype())


@draws
def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: str | None = None
) -> Any:
    """Draw indices of categories from unnormalised log probabilities.

    Args:
        key: a key.
        logits: log probabilities, along one axis.
        axis: axis of the categories.
        shape: shape of the result, to which the shape of `logits` without the axis broadcasts; by default this shape.
        replace: whether a category may be drawn more than once for one set of probabilities. If not, the leading axes
            of `shape`, before the shape of `logits`, count the draws.
        mode: mode of the Gumbel numbers: "low" or "high" (see `gumbel`).

    Raises:
        TypeError: if `key` is not a key, or `logits` is not an array.
        ValueError: if the axis is out of bounds, the shape is invalid, or `logits` has too few categories.
    """
    name = "categorical"
    (logits,) = lax.promote_dtypes(number(name, "logits", logits))
    if not dtypes.is_float(logits.dtype):
        raise ValueError(f"{name}: logits must be floating-point, got {logits.aval.str_short()}")
    logits = of_32_bits(logits)
    axis = _axis(name, axis, logits.ndim)
    batch = logits.shape[:axis] + logits.shape[axis + 1 :]
    shape = joint_shape(name, shape, {"logits without the axis": batch})
    mode, replace = gumbel_mode(name, mode), known_flag(name, "replace", replace)
    before = shape[: len(shape) - len(batch)]
    if replace:
        size = size_of(shape) * logits.shape[axis]
        return draw(_categories, size, key, logits, axis=axis, shape=shape, mode=mode)
    if math.prod(before) > logits.shape[axis]:
        raise ValueError(
            f"{name}: Number of samples without replacement, {math.prod(before)}, exceeds the number of categories, "
            f"{logits.shape[axis]}"
        )
    return draw(_different_categories, logits.size, key, logits, axis=axis, before=before, mode=mode)


def _categories(key: Any, logits: Any, *, axis: int, shape: Any, mode: str) -> Any:
    """Return the argmax of log probabilities plus Gumbel numbers."""
    before, batch = shape[: len(shape) - logits.ndim + 1], shape[len(shape) - logits.ndim + 1 :]
    full = (*before, *batch[:axis], logits.shape[axis], *batch[axis:])
    scores = standard_gumbel(key, shape=full, dtype=logits.dtype, mode=mode) + broadcast_to(logits, full)
    axis -= logits.ndim
    if evaluating(scores):
        return jnp.argmax(scores, axis=axis)
    # If the scores had one consumer, XLA would draw them inside its loop over the categories, which is slow.
    greatest = (scores == jnp.max(scores, axis=axis, keepdims=True)) | (scores != scores)
    return jnp.argmax(greatest, axis=axis)


def _different_categories(key: Any, logits: Any, *, axis: int, before: Any, mode: str) -> Any:
    """Return the indices of the greatest scores (Kool, van Hoof and Welling 2019)."""
    scores = logits + standard_gumbel(key, shape=logits.shape, dtype=logits.dtype, mode=mode)
    indices = lax.top_k(jnp.moveaxis(scores, axis, -1), math.prod(before))[1]
    return jnp.moveaxis(indices, -1, 0).reshape(before + indices.shape[:-1])


@draws
def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Any:
    """Draw orthogonal matrices uniformly, or unitary ones for complex dtypes (Mezzadri 2007).

    Args:
        key: a key.
        n: number of rows.
        shape: shape of the batch.
        dtype: a floating-point or complex dtype.
        m: number of columns; by default n. If it is not n, the rows or the columns are orthonormal, whichever are
            fewer.

    Returns:
        An array of shape (*shape, n, m).

    Raises:
        TypeError: if `key` is not a key, or a size is not an integer.
        ValueError: if the dtype or the shape is invalid.
    """
    dtype = float_dtype("orthogonal", dtype, or_complex=True)
    shape = shape_argument("orthogonal", shape)
    sizes = (known_integer("orthogonal", "n", n), known_integer("orthogonal", "m", n if m is None else m))
    shape_argument("orthogonal", sizes, "n, m")
    return draw(_orthogonal, size_of(shape + sizes), key, shape=shape, sizes=sizes, dtype=dtype)


def _orthogonal(key: Any, *, shape: Any, sizes: tuple[int, int], dtype: Any) -> Any:
    from corejax.numpy import linalg  # from another plugin, which is optional

    n, m = sizes
    q, r = linalg.qr(standard_normal(key, shape=(*shape, max(n, m), min(n, m)), dtype=dtype))
    matrices = q * jnp.expand_dims(jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1)), -2)
    return jnp.swapaxes(matrices, -1, -2) if n < m else matrices
