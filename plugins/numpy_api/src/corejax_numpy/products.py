"""Products of vectors and matrices: `dot`, `matmul` and their kin, all in terms of `dot_general`."""

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
    """Operands in their common dtype, and the dtype of the result."""
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
    """Dimension numbers of the `dot_general` that is all there is to a product of two types; None if it is not all."""
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


def _at_once(name: str, a: Any, b: Any, precision: Any, preferred_element_type: Any) -> Any:
    """The product, where it is a single `dot_general` of the operands as they are; else None."""
    numbers = _one_product(name, getattr(a, "aval", None), getattr(b, "aval", None))
    if numbers is None:
        return None
    return lax.dot_general(a, b, numbers, precision, canonical_dtype(preferred_element_type))


def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """Sums of products over the last axis of `a` and the last but one (or only) axis of `b`; scalars multiply.

    Args:
        a: an array.
        b: an array.
        precision: passed on to the compiler; None leaves it to the backend.
        preferred_element_type: dtype of sums and result; by default the operands' common one.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Returns:
        An array with the other axes of `a`, then those of `b`.

    Raises:
        TypeError: the contracted axes have different sizes.
    """
    if out_sharding is not None:
        return lax.place(
            "dot", dot(a, b, precision=precision, preferred_element_type=preferred_element_type), out_sharding
        )
    found = _at_once("dot", a, b, precision, preferred_element_type)
    if found is not None:
        return found
    (a, b), dtype = _operands("dot", preferred_element_type, a, b)
    if not a.ndim or not b.ndim:
        return lax.convert_element_type_p.bind(a * b, new_dtype=dtype, weak_type=False) if dtype != a.dtype else a * b
    axis = b.ndim - min(b.ndim, 2)
    _check_sizes("dot", a, -1, b, axis)
    return lax.dot_general(a, b, (((a.ndim - 1,), (axis,)), ((), ())), precision, dtype)


def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Any:
    """Products of the matrices in the last two axes; leading axes broadcast, a vector is a row or a column.

    Args:
        a: an array of one axis or more.
        b: an array of one axis or more.
        precision: passed on to the compiler; None leaves it to the backend.
        preferred_element_type: dtype of sums and result; by default the operands' common one.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        ValueError: an operand is a scalar, or the leading axes do not broadcast.
        TypeError: the contracted axes have different sizes.
    """
    if out_sharding is not None:
        return lax.place(
            "matmul", matmul(a, b, precision=precision, preferred_element_type=preferred_element_type), out_sharding
        )
    found = _at_once("matmul", a, b, precision, preferred_element_type)
    if found is not None:
        return found
    (a, b), dtype = _operands("matmul", preferred_element_type, a, b)
    for i, x in enumerate((a, b)):
        if not x.ndim:
            raise ValueError(f"matmul: operand {i} is a scalar; use multiply")
    rows, columns = ["row"] if a.ndim > 1 else [], ["column"] if b.ndim > 1 else []
    return _stacked("matmul", a, [*rows, "k"], b, ["k", *columns], [*rows, *columns], precision, dtype)


def _leading(name: str, a: Any, a_count: int, b: Any, b_count: int) -> tuple[int, ...]:
    """The shape of a stack of products, whose operands have so many leading axes."""
    try:
        return lax.broadcast_shapes(a.shape[:a_count], b.shape[:b_count])  # type: ignore[no-any-return]
    except ValueError:
        shown = f"{a.aval.str_short()} and {b.aval.str_short()}"
        raise ValueError(f"{name}: the leading axes of {shown} do not broadcast together") from None


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum of products of all elements, those of `a` conjugated."""
    found = _at_once("vdot", a, b, precision, preferred_element_type)
    if found is not None:
        return found
    (a, b), dtype = _operands("vdot", preferred_element_type, a, b)
    if a.size != b.size:
        given = f"{a.aval.str_short()} and {b.aval.str_short()}"
        raise TypeError(f"vdot takes arrays of one number of elements, got {given}")
    a, b = conjugate(lax.reshape(a, (a.size,))), lax.reshape(b, (b.size,))
    return dot(a, b, precision=precision, preferred_element_type=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sums of products along one axis, the elements of `x1` conjugated; the other axes broadcast."""
    (a, b), dtype = _operands("vecdot", preferred_element_type, x1, x2)
    a, b = (x if canonical_axis(axis, x.ndim) == x.ndim - 1 else moveaxis(x, axis, -1) for x in (a, b))
    return _stacked("vecdot", conjugate(a), ["k"], b, ["k"], [], precision, dtype)


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sums of products over the last axes of both; scalars multiply."""
    found = _at_once("inner", a, b, precision, preferred_element_type)
    if found is not None:
        return found
    (a, b), dtype = _operands("inner", preferred_element_type, a, b)
    if not a.ndim or not b.ndim:
        return dot(a, b, precision=precision, preferred_element_type=dtype)
    _check_sizes("inner", a, -1, b, -1)
    return lax.dot_general(a, b, (((a.ndim - 1,), (b.ndim - 1,)), ((), ())), precision, dtype)


def matvec(x1: Any, x2: Any, /) -> Any:
    """Products of the matrices in the last two axes of `x1` and the vectors in the last one of `x2`.

    Raises:
        ValueError: an operand has too few axes, or the leading axes do not broadcast.
        TypeError: the contracted axes have different sizes.
    """
    (a, b), _ = _operands("matvec", None, x1, x2)
    _check_ranks("matvec", a, 2, b, 1)
    return _stacked("matvec", a, ["row", "k"], b, ["k"], ["row"])


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Products of the vectors in the last axis of `x1`, conjugated, and the matrices in the last two of `x2`.

    Raises:
        ValueError: an operand has too few axes, or the leading axes do not broadcast.
        TypeError: the contracted axes have different sizes.
    """
    (a, b), _ = _operands("vecmat", None, x1, x2)
    _check_ranks("vecmat", a, 1, b, 2)
    return _stacked("vecmat", conjugate(a), ["k"], b, ["k", "column"], ["column"])


def _check_ranks(name: str, a: Any, a_ndim: int, b: Any, b_ndim: int) -> None:
    for i, (x, least) in enumerate(((a, a_ndim), (b, b_ndim)), 1):
        if x.ndim < least:
            raise ValueError(f"{name}: x{i} has {least} axes at least, got {x.aval.str_short()}")


def _stacked(
    name: str,
    a: Any,
    a_labels: list[str],
    b: Any,
    b_labels: list[str],
    core: list[str],
    precision: Any = None,
    dtype: Any = None,
) -> Any:
    """A product of what is in the last axes, those with labels; the axes before them broadcast."""
    _check_sizes(name, a, a_labels.index("k") - len(a_labels), b, b_labels.index("k") - len(b_labels))
    counts = a.ndim - len(a_labels), b.ndim - len(b_labels)
    axes = [str(i) for i in range(-len(_leading(name, a, counts[0], b, counts[1])), 0)]
    names = [[*axes[len(axes) - n :], *own] for n, own in zip(counts, (a_labels, b_labels), strict=True)]
    out, got = contract_pair(a, names[0], b, names[1], [*axes, *core], precision, dtype)
    return in_order(out, got, [*axes, *core])


def kron(a: Any, b: Any) -> Any:
    """Kronecker's product: each element of `a` replaced by its product with `b`."""
    a, b = promote_dtypes("kron", a, b)
    ndim = max(a.ndim, b.ndim)
    of_a, of_b = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    shape = tuple(size for pair in zip(of_a, of_b, strict=True) for size in pair)
    a = lax.broadcast_in_dim(a, shape, range(2 * (ndim - a.ndim), 2 * ndim, 2))
    b = lax.broadcast_in_dim(b, shape, range(2 * (ndim - b.ndim) + 1, 2 * ndim, 2))
    return lax.reshape(a * b, tuple(m * n for m, n in zip(of_a, of_b, strict=True)))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Products of vectors in space; of two vectors in the plane the component across it.

    Args:
        a: an array with vectors of two or three components in one axis; the other axes broadcast.
        b: as `a`.
        axisa: the vectors' axis in `a`.
        axisb: the vectors' axis in `b`.
        axisc: the vectors' axis in the result.
        axis: all three.

    Raises:
        ValueError: vectors of other lengths, or no such axis.
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
    # Put together by component: XLA computes operands that are rolled once for each part, and again in what is chained.
    parts = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
    out = lax.concatenate([lax.transpose(x, (last, *range(last))) for x in parts], 0)
    order = [*range(1, out.ndim)]
    order.insert(canonical_axis(axisc, out.ndim, "cross: axisc"), 0)
    return lax.transpose(out, order)


def _components(x: Any) -> list[Any]:
    last = x.ndim - 1
    return [lax.index_in_dim(x, i, last, keepdims=False) for i in range(x.shape[last])]


def _in_space(x: Any) -> Any:
    """Vectors in the plane with a third component, zero."""
    if x.shape[-1] == 3:
        return x
    return lax.pad(x, like(x, 0), [*[(0, 0, 0)] * (x.ndim - 1), (0, 1, 0)])


def outer(a: Any, b: Any, out: None = None) -> Any:
    """All products of an element of `a` (a row of the result) and one of `b` (a column)."""
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
    """Sums of products over pairs of axes.

    Args:
        a: an array.
        b: an array.
        axes: a number of axes, the last of `a` with the first of `b`; or the axes of `a` and, in the same order,
            those of `b`.
        precision: passed on to the compiler; None leaves it to the backend.
        preferred_element_type: dtype of sums and result; by default the operands' common one.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Returns:
        An array with the other axes of `a`, then those of `b`.

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
        given = sequence("tensordot", axes, "axes")
        if len(given) != 2:
            raise TypeError(f"tensordot: axes are a number, or axes of a and axes of b, got {axes!r}")
        of_a, of_b = (x if isinstance(x, tuple | list) else (x,) for x in given)
        if len(of_a) != len(of_b):
            raise TypeError(f"tensordot: as many axes of a as of b, got {tuple(of_a)} and {tuple(of_b)}")
        pairs = (tuple(canonical_axis(d, a.ndim) for d in of_a), tuple(canonical_axis(d, b.ndim) for d in of_b))
    for d, e in zip(*pairs, strict=True):
        _check_sizes("tensordot", a, d, b, e)
    return lax.place("tensordot", lax.dot_general(a, b, (pairs, ((), ())), precision, dtype), out_sharding)
