"""Methods and properties of arrays and tracers, as NumPy's arrays have them.

NumPy's functions hand arrays that are not its own to their methods: `np.sum(x)` calls `x.sum(axis=None, out=None)`.
So the methods have NumPy's parameters in NumPy's order, `out` among them, which has to be None.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic._base.axes import canonical_axes, canonical_axis, canonical_shape
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic._promotion import as_operand, promote_operands
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.creation.filled import zeros_like_array
from corejax_lax_basic.elementwise import complex_numbers
from corejax_lax_basic.elementwise.arithmetic import div_p, max_p, min_p
from corejax_lax_basic.elementwise.comparison import ne_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.elementwise.unary import floor_p, sqrt_p
from corejax_lax_basic.linear.dot import numpy_dot
from corejax_lax_basic.reductions import cumulative
from corejax_lax_basic.reductions import reduce as reductions
from corejax_lax_basic.shape import rearranging as shape
from corejax_lax_basic.shape.broadcasting import expand_dims

# -- shape -------------------------------------------------------------------------------------------------------


def reshape(self: Any, *shape_: Any, order: str = "C") -> Any:
    """The same elements in another shape: integers, or one tuple; one size may be -1.

    Raises:
        TypeError: the shape does not fit, or a size is traced.
        NotImplementedError: another `order` than "C".
    """
    if order != "C":
        raise NotImplementedError(f"reshape: order {order!r} is not supported, only 'C'")
    return shape.reshape(self, canonical_shape(shape_[0] if len(shape_) == 1 else shape_))


def ravel(self: Any, order: str = "C") -> Any:
    """The elements as a vector, in row-major order."""
    return reshape(self, -1, order=order)


def transpose(self: Any, *axes: Any) -> Any:
    """Axes reversed, or in the given order: integers, or one tuple.

    Raises:
        TypeError: the axes are not a permutation.
    """
    ndim = self.aval.ndim
    given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    if given is None:
        return shape.transpose(self, range(ndim)[::-1])
    order = tuple(canonical_axis(a, ndim, "transpose: axis") for a in given)
    return shape.transpose(self, order)


def matrix_transpose(self: Any) -> Any:
    """The last two axes exchanged.

    Raises:
        ValueError: there are fewer than two.
    """
    if self.aval.ndim < 2:
        raise ValueError(f"mT exchanges the last two axes, {self.aval.str_short()} has {self.aval.ndim}")
    return shape.swapaxes(self, -1, -2)


def squeeze(self: Any, axis: Any = None) -> Any:
    """Without axes of size 1: those given, or all."""
    return shape.squeeze(self, axis)


def swapaxes(self: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged."""
    return shape.swapaxes(self, axis1, axis2)


# -- elements ----------------------------------------------------------------------------------------------------


def astype(self: Any, dtype: Any, copy: bool = False) -> Any:
    """The elements in another dtype; a complex array becomes real by its real part."""
    return convert_element_type(self, dtype)


def copy(self: Any) -> Any:
    """The array itself: it cannot be changed."""
    return self


def clip(self: Any, min: Any = None, max: Any = None, out: None = None) -> Any:
    """Elements limited to an interval; None leaves a side open."""
    _refuse_out("clip", out)
    clipped = self
    for bound, primitive in ((min, max_p), (max, min_p)):
        if bound is not None:
            clipped = primitive.bind(*promote_operands(clipped, _checked(bound, "clip"), name="clip"))
    return clipped


def _refuse_out(name: str, out: Any) -> None:
    # Not a TypeError, at which some of NumPy's functions would convert the array to their own and try again.
    if out is not None:
        raise NotImplementedError(f"{name}: `out` has to be None, results are new arrays; take the result instead")


def _checked(x: Any, name: str) -> Any:
    found = as_operand(x)
    if found is NotImplemented:
        raise TypeError(f"{name} takes arrays and Python scalars, got {x!r} of type {type(x).__name__}")
    return found


def real(self: Any) -> Any:
    """Real part."""
    return complex_numbers.real(self) if dtypes.is_complex(self.aval.dtype) else self


def imag(self: Any) -> Any:
    """Imaginary part; zeros of a real array."""
    if dtypes.is_complex(self.aval.dtype):
        return complex_numbers.imag(self)
    return zeros_like_array(self)


def conj(self: Any) -> Any:
    """Complex conjugate; a real array is its own."""
    return complex_numbers.conj(self) if dtypes.is_complex(self.aval.dtype) else self


def dot(self: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """`numpy.dot`: sums of products over the last axis and the other operand's last but one (or only) axis."""
    return numpy_dot(self, _checked(b, "dot"), precision, preferred_element_type)


def round_(self: Any, decimals: int | None = None, out: None = None) -> Any:
    """The nearest number with so many decimals, ties to the even one; the derivative is zero.

    Raises:
        NotImplementedError: the dtype is complex or bool, or integers are to be rounded to tens.
    """
    _refuse_out("round", out)
    decimals = decimals or 0
    dtype = self.aval.dtype
    if dtypes.is_integer(dtype) and decimals >= 0:
        return self
    if not dtypes.is_float(dtype):
        raise NotImplementedError(f"round is of floating numbers, this array is {self.aval.str_short()}")
    x = self * 10.0**decimals if decimals else self
    whole = floor_p.bind(x)
    rest = x - whole
    odd = whole % 2.0 != 0.0
    up = (rest > 0.5) | ((rest == 0.5) & odd)
    nearest = select_n_p.bind(up, whole, whole + 1.0)
    return nearest / 10.0**decimals if decimals else nearest


# -- reductions --------------------------------------------------------------------------------------------------

Axis = int | tuple[int, ...] | None


def _reduced(x: Any, primitive: Any, axis: Axis, keepdims: bool, name: str, out: None = None) -> Any:
    _refuse_out(name, out)
    axes = canonical_axes(axis, x.aval.ndim, f"{name}: axis")
    reduced = primitive.bind(x, axes=tuple(sorted(axes)))
    return expand_dims(reduced, tuple(sorted(axes))) if keepdims and axes else reduced


def _accumulated(x: Any, dtype: Any) -> Any:
    """An array in the dtype that sums of it have: small integers and booleans are summed as default integers."""
    d = x.aval.dtype
    if dtype is not None:
        return convert_element_type(x, dtype)
    if dtypes.is_bool(d):
        return convert_element_type(x, dtypes.default_int_dtype())
    if dtypes.is_integer(d):
        default = dtypes.default_uint_dtype() if dtypes.is_unsigned(d) else dtypes.default_int_dtype()
        return convert_element_type(x, default) if d.itemsize < default.itemsize else x
    return x


def sum(self: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Sum over axes; None is all of them."""
    return _reduced(_accumulated(self, dtype), reductions.reduce_sum_p, axis, keepdims, "sum", out)


def prod(self: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Product over axes; None is all of them."""
    return _reduced(_accumulated(self, dtype), reductions.reduce_prod_p, axis, keepdims, "prod", out)


def _extreme(x: Any, primitive: Any, axis: Axis, keepdims: bool, name: str, out: None) -> Any:
    axes = canonical_axes(axis, x.aval.ndim, f"{name}: axis")
    if any(x.aval.shape[a] == 0 for a in axes):
        raise ValueError(f"{name}: {x.aval.str_short()} has no elements along the reduced axes {axes}")
    return _reduced(x, primitive, axis, keepdims, name, out)


def max(self: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
    """Largest element over axes.

    Raises:
        ValueError: there are no elements.
    """
    return _extreme(self, reductions.reduce_max_p, axis, keepdims, "max", out)


def min(self: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
    """Smallest element over axes.

    Raises:
        ValueError: there are no elements.
    """
    return _extreme(self, reductions.reduce_min_p, axis, keepdims, "min", out)


def _as_bool(x: Any) -> Any:
    return x if dtypes.is_bool(x.aval.dtype) else ne_p.bind(x, make_scalar(0, x.aval.dtype))


def any_(self: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
    """Whether any element over axes is nonzero."""
    return _reduced(_as_bool(self), reductions.reduce_or_p, axis, keepdims, "any", out)


def all_(self: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
    """Whether all elements over axes are nonzero."""
    return _reduced(_as_bool(self), reductions.reduce_and_p, axis, keepdims, "all", out)


def _count(x: Any, axis: Axis, name: str) -> int:
    return math.prod(x.aval.shape[a] for a in canonical_axes(axis, x.aval.ndim, f"{name}: axis"))


def mean(self: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Arithmetic mean over axes; of integers and booleans in the default floating dtype."""
    d = dtypes.inexact_dtype_of(self.aval.dtype) if dtype is None else dtypes.dtype(dtype)
    # Sixteen bits and fewer are summed in float32, and rounded once.
    wide = np.dtype(np.float32) if dtypes.is_float(d) and d.itemsize < 4 else d
    x = self if self.aval.dtype == wide else convert_element_type(self, wide)
    total = _reduced(x, reductions.reduce_sum_p, axis, keepdims, "mean", out)
    quotient = div_p.bind(total, make_scalar(float(_count(self, axis, "mean")), wide))
    return quotient if wide == d else convert_element_type(quotient, d)


def var(
    self: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False
) -> Any:
    """Variance over axes: the mean squared distance from the mean, with divisor `count - ddof`."""
    _refuse_out("var", out)
    x = self if dtype is None else convert_element_type(self, dtype)
    d = dtypes.inexact_dtype_of(x.aval.dtype)
    x = x if x.aval.dtype == d else convert_element_type(x, d)
    centred = x - mean(x, axis, keepdims=True)
    if dtypes.is_complex(d):
        squares = complex_numbers.real(centred) ** 2 + complex_numbers.imag(centred) ** 2
    else:
        squares = centred**2
    total = sum(squares, axis, keepdims=keepdims)
    return total / builtins.max(_count(self, axis, "var") - ddof, 0)


def std(
    self: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False
) -> Any:
    """Standard deviation over axes: the square root of `var`."""
    _refuse_out("std", out)
    return sqrt_p.bind(var(self, axis, dtype, ddof=ddof, keepdims=keepdims))


def _arg_extreme(x: Any, primitive: Any, axis: int | None, keepdims: bool, name: str, out: None) -> Any:
    _refuse_out(name, out)
    ndim = x.aval.ndim
    flat = ravel(x) if axis is None else x
    index = 0 if axis is None else canonical_axis(axis, ndim, f"{name}: axis")
    if flat.aval.shape[index] == 0:
        raise ValueError(f"{name}: {x.aval.str_short()} has no elements along axis {axis}")
    found = primitive.bind(flat, axes=(index,), index_dtype=dtypes.default_int_dtype())
    if not keepdims:
        return found
    return expand_dims(found, tuple(range(ndim)) if axis is None else index)


def argmax(self: Any, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Any:
    """Index of the first largest element along an axis, or in the flattened array."""
    return _arg_extreme(self, reductions.argmax_p, axis, keepdims, "argmax", out)


def argmin(self: Any, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Any:
    """Index of the first smallest element along an axis, or in the flattened array."""
    return _arg_extreme(self, reductions.argmin_p, axis, keepdims, "argmin", out)


def _running(x: Any, primitive: Any, axis: int | None, dtype: Any, out: None) -> Any:
    _refuse_out(primitive.name, out)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    axis = canonical_axis(axis, x.aval.ndim, f"{primitive.name}: axis")
    if dtype is not None or dtypes.is_bool(x.aval.dtype):
        x = convert_element_type(x, dtypes.default_int_dtype() if dtype is None else dtype)
    return primitive.bind(x, axis=axis, reverse=False)


def cumsum(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Sums of the elements so far along an axis, or in the flattened array."""
    return _running(self, cumulative.cumsum_p, axis, dtype, out)


def cumprod(self: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Products of the elements so far along an axis, or in the flattened array."""
    return _running(self, cumulative.cumprod_p, axis, dtype, out)


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(reshape, ravel, transpose, squeeze, swapaxes),
    *(astype, copy, clip, conj, dot),
    *(sum, prod, max, min, mean, var, std, argmax, argmin, cumsum, cumprod),
)
METHODS: Mapping[str, Any] = {
    **{f.__name__: f for f in _FUNCTIONS},
    "round": round_,
    "__round__": round_,
    "any": any_,
    "all": all_,
    "flatten": ravel,
    "conjugate": conj,
    "T": property(transpose),
    "mT": property(matrix_transpose),
    "real": property(real),
    "imag": property(imag),
}
