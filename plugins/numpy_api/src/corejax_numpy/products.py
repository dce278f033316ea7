"""Products of vectors and matrices: `dot`, `matmul` and related functions, all implemented with `dot_general`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from corejax.extend import ShapedArray, dtypes
from corejax.extend.messages import clears_cache
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    canonical_axis,
    canonical_dtype,
    like,
    promote_dtypes,
    refuse_out,
    sequence,
)
from corejax_numpy.contraction import contract_pair, in_order
from corejax_numpy.elementwise import conjugate
from corejax_numpy.manipulation import moveaxis


def _operands(name: str, preferred_element_type: Any, *xs: Any) -> tuple[list[Any], Any]:
    """Return the operands in their common dtype, and the dtype of the result."""
    arrays = promote_dtypes(name, *xs)
    return arrays, canonical_dtype(preferred_element_type) or arrays[0].dtype


def _check_sizes(name: str, x: Any, x_axis: int, y: Any, y_axis: int) -> None:
    if x.shape[x_axis] != y.shape[y_axis]:
        raise TypeError(
            f"{name}: axis {x_axis % x.ndim} of {x.aval.str_short()} and axis {y_axis % y.ndim} "
            f"of {y.aval.str_short()} are contracted, so their sizes have to be equal; "
            f"got {x.shape[x_axis]} and {y.shape[y_axis]}"
        )


@lru_cache(maxsize=4096)
def _one_product(name: str, a: ShapedArray | None, b: ShapedArray | None) -> Any:
    """Return the dimension numbers if a product of two types is a single `dot_general`, else None."""
    if a is None or b is None or a.dtype != b.dtype or not a.ndim or not b.ndim:
        return None
    if name == "vdot":
        axes = tuple(range(a.ndim))
        return ((axes, axes), ((), ())) if a.shape == b.shape and not dtypes.is_complex(a.dtype) else None
    last, inner_axis = a.ndim - 1, b.ndim - 1 if name == "inner" else max(b.ndim - 2, 0)
    if a.shape[last] != b.shape[inner_axis]:
        return None
    if name != "matmul" or b.ndim <= 2:
        return (((last,), (inner_axis,)), ((), ()))
    batch = tuple(range(b.ndim - 2))
    return (((last,), (inner_axis,)), (batch, batch)) if a.shape[:-2] == b.shape[:-2] and a.ndim == b.ndim else None


clears_cache(_one_product.cache_clear)


def _single_dot_general(name: str, a: Any, b: Any, precision: Any, preferred_element_type: Any) -> Any:
    """Compute a product that is a single `dot_general` of unconverted operands; return None for any other.

    This is the fast path of eager calls: the dimension numbers are cached by the operands' types.
    """
    numbers = _one_product(name, getattr(a, "aval", None), getattr(b, "aval", None))
    if numbers is None:
        return None
    return lax.dot_general(a, b, numbers, precision, canonical_dtype(preferred_element_type))


def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """Compute the dot product: a sum over the last axis of `a` and the last but one (or only) axis of `b`.

    If an operand is a scalar, the result is the elementwise product.

    Args:
        a: an array.
        b: an array.
        precision: precision of the product, passed to the compiler; None, the default, is the backend's default.
        preferred_element_type: dtype of the sums and of the result; by default the operands' common dtype.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        An array with the remaining axes of `a`, followed by those of `b`.

    Raises:
        TypeError: the contracted axes have different sizes.
    """
    if out_sharding is not None:
        return lax.place(
            "dot", dot(a, b, precision=precision, preferred_element_type=preferred_element_type), out_sharding
        )
    out = _single_dot_general("dot", a, b, precision, preferred_element_type)
    if out is not None:
        return out
    (a, b), dtype = _operands("dot", preferred_element_type, a, b)
    if not a.ndim or not b.ndim:
        return lax.convert_element_type_p.bind(a * b, new_dtype=dtype, weak_type=False) if dtype != a.dtype else a * b
    axis = b.ndim - min(b.ndim, 2)
    _check_sizes("dot", a, -1, b, axis)
    return lax.dot_general(a, b, (((a.ndim - 1,), (axis,)), ((), ())), precision, dtype)


def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Any:
    """Compute the matrix product over the last two axes; leading axes broadcast.

    A vector is a row on the left and a column on the right; its axis is removed from the result.

    Args:
        a: an array of at least one axis.
        b: an array of at least one axis.
        precision: precision of the product, passed to the compiler; None, the default, is the backend's default.
        preferred_element_type: dtype of the sums and of the result; by default the operands' common dtype.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        ValueError: an operand is a scalar, or the leading axes do not broadcast.
        TypeError: the contracted axes have different sizes.
    """
    if out_sharding is not None:
        return lax.place(
            "matmul", matmul(a, b, precision=precision, preferred_element_type=preferred_element_type), out_sharding
        )
    out = _single_dot_general("matmul", a, b, precision, preferred_element_type)
    if out is not None:
        return out
    (a, b), dtype = _operands("matmul", preferred_element_type, a, b)
    for i, x in enumerate((a, b)):
        if not x.ndim:
            raise ValueError(f"matmul: operand {i} is a scalar; use multiply")
    rows, columns = ["row"] if a.ndim > 1 else [], ["column"] if b.ndim > 1 else []
    return _batched_product("matmul", a, [*rows, "k"], b, ["k", *columns], [*rows, *columns], precision, dtype)


def _leading(name: str, a: Any, a_count: int, b: Any, b_count: int) -> tuple[int, ...]:
    """Return the broadcast shape of the leading axes, of which the operands have `a_count` and `b_count`."""
    try:
        shape: tuple[int, ...] = lax.broadcast_shapes(a.shape[:a_count], b.shape[:b_count])
    except ValueError:
        shown = f"{a.aval.str_short()} and {b.aval.str_short()}"
        raise ValueError(f"{name}: the leading axes of {shown} do not broadcast together") from None
    return shape


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Compute the dot product of the flattened operands, with the elements of `a` conjugated.

    Args:
        a: an array.
        b: an array of as many elements.
        precision: precision of the product, passed to the compiler; None, the default, is the backend's default.
        preferred_element_type: dtype of the sum; by default the operands' common dtype.

    Raises:
        TypeError: the numbers of elements differ.
    """
    out = _single_dot_general("vdot", a, b, precision, preferred_element_type)
    if out is not None:
        return out
    (a, b), dtype = _operands("vdot", preferred_element_type, a, b)
    if a.size != b.size:
        types = f"{a.aval.str_short()} and {b.aval.str_short()}"
        raise TypeError(f"vdot: the operands must have the same number of elements, got {types}")
    a, b = conjugate(lax.reshape(a, (a.size,))), lax.reshape(b, (b.size,))
    return dot(a, b, precision=precision, preferred_element_type=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Compute dot products of vectors along `axis`, with the elements of `x1` conjugated; other axes broadcast."""
    (a, b), dtype = _operands("vecdot", preferred_element_type, x1, x2)
    a, b = (x if canonical_axis(axis, x.ndim) == x.ndim - 1 else moveaxis(x, axis, -1) for x in (a, b))
    return _batched_product("vecdot", conjugate(a), ["k"], b, ["k"], [], precision, dtype)


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Compute sums of products over the last axes of both operands; scalars are multiplied."""
    out = _single_dot_general("inner", a, b, precision, preferred_element_type)
    if out is not None:
        return out
    (a, b), dtype = _operands("inner", preferred_element_type, a, b)
    if not a.ndim or not b.ndim:
        return dot(a, b, precision=precision, preferred_element_type=dtype)
    _check_sizes("inner", a, -1, b, -1)
    return lax.dot_general(a, b, (((a.ndim - 1,), (b.ndim - 1,)), ((), ())), precision, dtype)


def matvec(x1: Any, x2: Any, /) -> Any:
    """Multiply the matrices in the last two axes of `x1` by the vectors in the last axis of `x2`.

    Raises:
        ValueError: an operand has too few axes, or the leading axes do not broadcast.
        TypeError: the contracted axes have different sizes.
    """
    (a, b), _ = _operands("matvec", None, x1, x2)
    _check_ranks("matvec", a, 2, b, 1)
    return _batched_product("matvec", a, ["row", "k"], b, ["k"], ["row"])


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Multiply the vectors in the last axis of `x1`, conjugated, by the matrices in the last two axes of `x2`.

    Raises:
        ValueError: an operand has too few axes, or the leading axes do not broadcast.
        TypeError: the contracted axes have different sizes.
    """
    (a, b), _ = _operands("vecmat", None, x1, x2)
    _check_ranks("vecmat", a, 1, b, 2)
    return _batched_product("vecmat", conjugate(a), ["k"], b, ["k", "column"], ["column"])


def _check_ranks(name: str, a: Any, a_ndim: int, b: Any, b_ndim: int) -> None:
    for i, (x, least) in enumerate(((a, a_ndim), (b, b_ndim)), 1):
        if x.ndim < least:
            raise ValueError(f"{name}: x{i} must have at least {least} axes, got {x.aval.str_short()}")


def _batched_product(
    name: str,
    a: Any,
    a_labels: list[str],
    b: Any,
    b_labels: list[str],
    core: list[str],
    precision: Any = None,
    dtype: Any = None,
) -> Any:
    """Multiply the operands' last axes, which have labels; the axes before them broadcast."""
    _check_sizes(name, a, a_labels.index("k") - len(a_labels), b, b_labels.index("k") - len(b_labels))
    counts = a.ndim - len(a_labels), b.ndim - len(b_labels)
    axes = [str(i) for i in range(-len(_leading(name, a, counts[0], b, counts[1])), 0)]
    names = [[*axes[len(axes) - n :], *own] for n, own in zip(counts, (a_labels, b_labels), strict=True)]
    out, got = contract_pair(a, names[0], b, names[1], [*axes, *core], precision, dtype)
    return in_order(out, got, [*axes, *core])


def kron(a: Any, b: Any) -> Any:
    """Compute the Kronecker product: each element of `a` is replaced by its product with `b`."""
    a, b = promote_dtypes("kron", a, b)
    ndim = max(a.ndim, b.ndim)
    a_shape, b_shape = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    shape = tuple(size for pair in zip(a_shape, b_shape, strict=True) for size in pair)
    a = lax.broadcast_in_dim(a, shape, range(2 * (ndim - a.ndim), 2 * ndim, 2))
    b = lax.broadcast_in_dim(b, shape, range(2 * (ndim - b.ndim) + 1, 2 * ndim, 2))
    return lax.reshape(a * b, tuple(m * n for m, n in zip(a_shape, b_shape, strict=True)))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Compute the cross product of vectors; for vectors in the plane, its third component.

    Args:
        a: an array of vectors with two or three components; other axes broadcast.
        b: an array of vectors with two or three components.
        axisa: the axis of the vectors in `a`, by default the last.
        axisb: the axis of the vectors in `b`, by default the last.
        axisc: the axis of the vectors in the result, by default the last.
        axis: overrides `axisa`, `axisb` and `axisc`, if given.

    Raises:
        ValueError: the vectors have other lengths, or an axis does not exist.
    """
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    a, b = promote_dtypes("cross", a, b)
    a, b = (
        moveaxis(x, canonical_axis(i, x.ndim, f"cross: {n}"), -1)
        for x, i, n in ((a, axisa, "axisa"), (b, axisb, "axisb"))
    )
    sizes = a.shape[-1], b.shape[-1]
    if not {*sizes} <= {2, 3}:
        raise ValueError(f"cross: vectors have 2 or 3 components, got {a.aval.str_short()} and {b.aval.str_short()}")
    if sizes == (2, 2):
        (a0, a1), (b0, b1) = _components(a), _components(b)
        return a0 * b1 - a1 * b0
    shape = lax.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, b = (lax.broadcast_to(_in_space(x), (*shape, 3)) for x in (a, b))
    last = len(shape)
    (a0, a1, a2), (b0, b1, b2) = ([lax.slice_in_dim(x, i, i + 1, axis=last) for i in range(3)] for x in (a, b))
    # Concatenate components instead of rolling the operands: XLA would recompute rolled operands for each component.
    parts = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
    out = lax.concatenate([lax.transpose(x, (last, *range(last))) for x in parts], 0)
    order = [*range(1, out.ndim)]
    order.insert(canonical_axis(axisc, out.ndim, "cross: axisc"), 0)
    return lax.transpose(out, order)


def _components(x: Any) -> list[Any]:
    last = x.ndim - 1
    return [lax.index_in_dim(x, i, last, keepdims=False) for i in range(x.shape[last])]


def _in_space(x: Any) -> Any:
    """Append a zero as the third component of vectors in the plane."""
    if x.shape[-1] == 3:
        return x
    return lax.pad(x, like(x, 0), [*[(0, 0, 0)] * (x.ndim - 1), (0, 1, 0)])


def outer(a: Any, b: Any, out: None = None) -> Any:
    """Compute the outer product: all products of an element of `a` (a row of the result) and of `b` (a column)."""
    refuse_out("outer", out)
    a, b = promote_dtypes("outer", a, b)
    shape = (a.size, b.size)
    rows, columns = lax.reshape(a, (a.size,)), lax.reshape(b, (b.size,))
    return lax.broadcast_in_dim(rows, shape, (0,)) * lax.broadcast_in_dim(columns, shape, (1,))


def tensordot(
    a: Any,
    b: Any,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Compute sums of products over pairs of axes.

    Args:
        a: an array.
        b: an array.
        axes: the number of axes to contract (the last ones of `a` with the first ones of `b`), 2 by default; or a pair
            of sequences, the axes of `a` and the matching axes of `b`.
        precision: precision of the product, passed to the compiler; None, the default, is the backend's default.
        preferred_element_type: dtype of the sums and of the result; by default the operands' common dtype.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        An array with the remaining axes of `a`, followed by those of `b`.

    Raises:
        TypeError: a pair of axes has different sizes, or the numbers of axes differ.
        ValueError: an axis does not exist.
    """
    (a, b), dtype = _operands("tensordot", preferred_element_type, a, b)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise TypeError(
                f"tensordot: Number of tensordot axes, {axes}, exceeds input ranks of {a.aval.str_short()} and "
                f"{b.aval.str_short()}, or is negative"
            )
        pairs = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))
    else:
        both = sequence("tensordot", axes, "axes")
        if len(both) != 2:
            raise TypeError(
                f"tensordot: axes must be a number, or a pair of the axes of a and the axes of b, got {axes!r}"
            )
        a_axes, b_axes = (x if isinstance(x, tuple | list) else (x,) for x in both)
        if len(a_axes) != len(b_axes):
            raise TypeError(f"tensordot: as many axes of a as of b, got {tuple(a_axes)} and {tuple(b_axes)}")
        pairs = (tuple(canonical_axis(d, a.ndim) for d in a_axes), tuple(canonical_axis(d, b.ndim) for d in b_axes))
    for d, e in zip(*pairs, strict=True):
        _check_sizes("tensordot", a, d, b, e)
    return lax.place("tensordot", lax.dot_general(a, b, (pairs, ((), ())), precision, dtype), out_sharding)
