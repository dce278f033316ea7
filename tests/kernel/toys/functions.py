"""The toys as functions that take numbers and broadcast as NumPy does, and what they provide to the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import jvp, vjp, vmap
from corejax.extend import Array, ShapedArray, get_aval
from tests.kernel.toys.primitives import (
    add_p,
    broadcast_p,
    complex_p,
    convert_p,
    cos_p,
    greater_p,
    imag_p,
    mul_p,
    neg_p,
    real_p,
    reshape_p,
    sin_p,
    slice_p,
    sum_p,
    transpose_p,
)

__all__ = [
    "add", "astype", "complex_", "cos", "dot", "greater", "hessian", "imag", "jacfwd", "jacrev", "mul", "neg", "real",
    "reshape", "sin", "spread", "sub", "sum_", "transpose",
]  # fmt: skip


def _like(x: Any, other: Any) -> Any:
    """A Python number as a scalar of the other operand's dtype."""
    if type(x) in (bool, int, float, complex) and type(other) not in (bool, int, float, complex):
        aval = get_aval(other)
        return x if aval.weak_type and get_aval(x).dtype == aval.dtype else np.asarray(x, aval.dtype)[()]
    return x


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """NumPy's broadcasting: leading axes, and axes of length 1."""
    old = get_aval(x).shape
    lead = len(shape) - len(old)
    axes = tuple(range(lead)) + tuple(i + lead for i, d in enumerate(old) if d != shape[i + lead])
    kept = tuple(d for i, d in enumerate(old) if d == shape[i + lead])
    x = x if kept == old else reshape(x, kept)
    return broadcast_p.bind(x, shape=tuple(shape), axes=axes) if axes else x


def _binary(primitive: Any) -> Any:
    def function(x: Any, y: Any) -> Any:
        x, y = _like(x, y), _like(y, x)
        a, b = get_aval(x).shape, get_aval(y).shape
        if a != b and a and b:
            shape = np.broadcast_shapes(a, b)
            x, y = spread(x, shape), spread(y, shape)
        return primitive.bind(x, y)

    return function


add, mul, greater = map(_binary, (add_p, mul_p, greater_p))
neg, sin, cos, real, imag, complex_ = (p.bind for p in (neg_p, sin_p, cos_p, real_p, imag_p, complex_p))


def sub(x: Any, y: Any) -> Any:
    """`x - y`."""
    return add(x, neg(y) if hasattr(y, "aval") else -y)


def sum_(x: Any, axes: Any = None) -> Any:
    """Sum over axes, all by default."""
    ndim = get_aval(x).ndim
    return sum_p.bind(x, axes=tuple(range(ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes))


def dot(x: Any, y: Any) -> Any:
    """Inner product over the last axis."""
    return sum_(mul(x, y), get_aval(x).ndim - 1)


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    """The same elements in another shape."""
    return reshape_p.bind(x, shape=tuple(shape))


def transpose(x: Any, perm: Any = None) -> Any:
    """Axes permuted, reversed by default."""
    return transpose_p.bind(x, perm=tuple(range(get_aval(x).ndim))[::-1] if perm is None else tuple(perm))


def astype(x: Any, dtype: Any) -> Any:
    """Converted elements."""
    return convert_p.bind(x, dtype=np.dtype(dtype))


# -- what the kernel asks a plugin for ------------------------------------------------------------------------


def _zeros(aval: ShapedArray) -> Any:
    zero = Array(np.zeros((), aval.dtype), aval.update(shape=()))
    return broadcast_p.bind(zero, shape=aval.shape, axes=tuple(range(aval.ndim))) if aval.shape else zero


def _broadcast_axis(x: Any, size: int, axis: int) -> Any:
    shape = get_aval(x).shape
    return broadcast_p.bind(x, shape=(*shape[:axis], size, *shape[axis:]), axes=(axis,))


def _move_axis(x: Any, source: int, destination: int) -> Any:
    perm = [i for i in range(get_aval(x).ndim) if i != source]
    perm.insert(destination, source)
    return transpose(x, perm)


def _getitem(x: Any, index: Any) -> Any:
    """Integers and slices of step 1."""
    taken = []
    for axis, i in enumerate(index if isinstance(index, tuple) else (index,)):
        size = get_aval(x).shape[axis]
        start, stop, _ = i.indices(size) if isinstance(i, slice) else (i % size, i % size + 1, 1)
        x = slice_p.bind(x, start=start, stop=stop, axis=axis)
        taken += [] if isinstance(i, slice) else [axis]
    return reshape(x, [d for axis, d in enumerate(get_aval(x).shape) if axis not in taken]) if taken else x


def _basis(x: Any) -> Any:
    """The standard basis of the space of an array, along a leading axis."""
    return np.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)


def jacfwd(f: Any) -> Any:
    """The Jacobian of a function of one array, forward; for a matrix, its elements are along one last axis."""
    return lambda x: vmap(lambda t: jvp(f, (x,), (t,))[1], out_axes=-1)(_basis(x))


def jacrev(f: Any) -> Any:
    """The Jacobian of a function of one array that returns a vector or a scalar, in reverse."""

    def jacobian(x: Any) -> Any:
        out, pullback = vjp(f, x)
        rows = vmap(lambda ct: pullback(ct)[0])(_basis(out))
        return rows if out.ndim else rows[0]

    return jacobian


def hessian(f: Any) -> Any:
    """The Hessian of a scalar function of one vector."""
    return jacfwd(jacrev(f))


OPERATIONS = {
    "add": add_p.bind,
    "zeros": _zeros,
    "broadcast_axis": _broadcast_axis,
    "move_axis": _move_axis,
    "reshape": reshape,
    "astype": astype,
}
OPERATORS = {
    "__add__": lambda x, y: add(x, y),
    "__radd__": lambda x, y: add(y, x),
    "__sub__": lambda x, y: sub(x, y),
    "__mul__": lambda x, y: mul(x, y),
    "__rmul__": lambda x, y: mul(y, x),
    "__neg__": lambda x: neg(x),
    "__gt__": lambda x, y: greater(x, y),
    "__getitem__": _getitem,
}
