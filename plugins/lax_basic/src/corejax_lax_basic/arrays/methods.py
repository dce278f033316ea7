"""Methods and properties of arrays and tracers, as NumPy's arrays have them.

NumPy's functions hand arrays that are not its own to their methods: `np.sum(x)` calls `x.sum(axis=None, out=None)`.
So the methods have NumPy's parameters in NumPy's order, `out` among them, which has to be None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corejax.extend import dtypes, quick_array, quick_host_value, remembered, warn_user
from corejax_lax_basic._base.arguments import refuse_out
from corejax_lax_basic._base.axes import canonical_shape, method_axes, method_axis
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.scalars import beyond
from corejax_lax_basic._promotion import as_operand, promote_operands
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.conversion.identity import copied
from corejax_lax_basic.creation.filled import zeros_like_array
from corejax_lax_basic.elementwise import complex_numbers
from corejax_lax_basic.elementwise.arithmetic import max_p, min_p
from corejax_lax_basic.elementwise.rounding import RoundingMethod, round_p
from corejax_lax_basic.linear.dot import numpy_dot
from corejax_lax_basic.shape import rearranging as shape

# -- shape -------------------------------------------------------------------------------------------------------


def reshape(self: Any, *shape_: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """The same elements in another shape: integers, or one tuple; one size may be -1.

    Args:
        shape_: the shape.
        order: "C", by rows, or "F", by columns.
        out_sharding: where the result is to be, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the shape does not fit, or a size is traced.
        ValueError: `order` is neither "C", by rows, nor "F", by columns.
        NotImplementedError: `order` is "A", by the layout in memory.
    """
    sizes = canonical_shape(shape_[0] if len(shape_) == 1 else shape_)
    if out_sharding is not None:
        return place("reshape", reshape(self, sizes, order=order), out_sharding)
    if order == "C":
        return shape.reshape(self, sizes)
    if order == "F":
        return transpose(shape.reshape(transpose(self), sizes[::-1]))
    if order == "A":
        raise NotImplementedError("reshape: arrays have no memory layout, so order is 'C' or 'F', got 'A'")
    raise ValueError(f"reshape: order is 'C' or 'F', got {order!r}")


def ravel(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements as a vector, row by row or (`order="F"`) column by column; `out_sharding` says where."""
    return reshape(self, -1, order=order, out_sharding=out_sharding)


def transpose(self: Any, *axes: Any) -> Any:
    """Axes reversed, or in the given order: integers, or one tuple.

    Raises:
        TypeError: the axes are not a permutation.
    """
    if not axes and (host := quick_host_value(self)) is not None:
        return quick_array(host.T, self)
    ndim = self.aval.ndim
    given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    if given is None:
        return shape.transpose(self, range(ndim)[::-1])
    order = tuple(method_axis(a, ndim, "transpose: axis") for a in given)
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
    return shape.squeeze(self, None if axis is None else method_axes(axis, self.aval.ndim, "squeeze: axis"))


def swapaxes(self: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged."""
    first, second = (method_axis(axis, self.aval.ndim, "swapaxes: axis") for axis in (axis1, axis2))
    return shape.swapaxes(self, first, second)


# -- elements ----------------------------------------------------------------------------------------------------


def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The elements in another dtype, None being the default floating one; complex numbers give their real part.

    Warns:
        ComplexWarning: complex numbers become real ones, as in NumPy.
    """
    out = _converted(self, dtype)
    if dtypes.is_complex(self.aval.dtype) and out.aval.dtype.kind in "iuf":
        text = f"astype: of {self.aval.str_short()} the imaginary parts are dropped; where that is meant, x.real.astype"
        warn_user(f"{text}({out.aval.dtype.name!r})", np.exceptions.ComplexWarning)
    return out if device is None else out.to_device(device)


@remembered
def _converted(x: Any, dtype: Any) -> Any:
    return convert_element_type(x, dtypes.default_float_dtype() if dtype is None else dtype)


def copy(self: Any) -> Any:
    """The same value in an array of its own, which stays when this one is donated; a traced value itself."""
    return copied(self)


def clip(self: Any, min: Any = None, max: Any = None, out: None = None) -> Any:
    """Elements limited to an interval; None leaves a side open, and so does an integer beyond those of the dtype."""
    refuse_out("clip", out)
    clipped = self
    for bound, primitive, side in ((min, max_p, -1), (max, min_p, 1)):
        if bound is not None and beyond(bound, clipped.aval.dtype) != side:
            clipped = primitive.bind(*promote_operands(clipped, _checked(bound, "clip"), name="clip"))
    return clipped


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
        NotImplementedError: the dtype is bool, or integers are to be rounded to tens.
    """
    refuse_out("round", out)
    decimals = decimals or 0
    dtype = self.aval.dtype
    if dtypes.is_integer(dtype) and decimals >= 0:
        return self
    if dtypes.is_complex(dtype):
        parts = (round_(part(self), decimals) for part in (complex_numbers.real, complex_numbers.imag))
        return complex_numbers.complex(*parts)
    if dtypes.is_extended(dtype):
        raise dtypes.no_numbers(dtype, "round")
    if not dtypes.is_float(dtype):
        raise NotImplementedError(f"round is of floating numbers, this array is {self.aval.str_short()}")
    if not decimals:
        return round_p.bind(self, rounding_method=RoundingMethod.TO_NEAREST_EVEN)
    nearest = round_p.bind(self * 10.0**decimals, rounding_method=RoundingMethod.TO_NEAREST_EVEN)
    return nearest / 10.0**decimals


def _round_to_integers(self: Any, ndigits: int | None = None) -> Any:
    """What `round(x)` is: default integers, as Python has it; floating with `ndigits`."""
    out = round_(self, ndigits)
    if ndigits is not None or not dtypes.is_float(out.aval.dtype):
        return out
    return convert_element_type(out, dtypes.default_int_dtype())


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(reshape, ravel, transpose, squeeze, swapaxes),
    *(astype, copy, clip, conj, dot),
)
METHODS: Mapping[str, Any] = {
    **{f.__name__: f for f in _FUNCTIONS},
    "round": round_,
    "__round__": _round_to_integers,
    "flatten": ravel,
    "conjugate": conj,
    "T": property(transpose),
    "mT": property(matrix_transpose),
    "real": property(real),
    "imag": property(imag),
}
