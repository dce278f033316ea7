"""Methods and properties of arrays and tracers that `corejax.numpy` has no function for, or that it calls itself.

corejax-numpy provides the other methods, which are its functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corejax.extend import dtypes, remembered
from corejax.extend.messages import warn_user
from corejax_lax_basic._base.axes import canonical_shape, method_axis
from corejax_lax_basic._base.placing import place
from corejax_lax_basic.arrays._at_once import host_of, part_of
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.conversion.identity import copied
from corejax_lax_basic.creation.filled import zeros_like_array
from corejax_lax_basic.elementwise import complex_numbers
from corejax_lax_basic.shape import rearranging as shape

# -- shape -------------------------------------------------------------------------------------------------------


def reshape(self: Any, *shape_: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """Give an array another shape, passed as integers or as one tuple; one size may be -1.

    Args:
        self: the array.
        shape_: the shape.
        order: "C" to read and write elements by rows, or "F" by columns.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: the shape does not fit, or a size is traced.
        ValueError: `order` is neither "C" nor "F".
        NotImplementedError: `order` is "A", the layout in memory.
    """
    sizes = canonical_shape(shape_[0] if len(shape_) == 1 else shape_)
    if out_sharding is not None:
        return place("reshape", reshape(self, sizes, order=order), out_sharding)
    if order == "C":
        return shape.reshape(self, sizes)
    if order == "F":
        return transpose(shape.reshape(transpose(self), sizes[::-1]))
    if order == "A":
        raise NotImplementedError("reshape: order must be 'C' or 'F', got 'A': arrays have no memory layout")
    raise ValueError(f"reshape: order must be 'C' or 'F', got {order!r}")


def transpose(self: Any, *axes: Any) -> Any:
    """Reverse the axes, or permute them to an order passed as integers or as one tuple.

    Raises:
        TypeError: the axes are not a permutation.
    """
    if not axes and (host := host_of(self)) is not None:
        return part_of(self, host.T)
    ndim = self.aval.ndim
    permutation = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    if permutation is None:
        return shape.transpose(self, range(ndim)[::-1])
    order = tuple(method_axis(a, ndim, "transpose: axis") for a in permutation)
    return shape.transpose(self, order)


def matrix_transpose(self: Any) -> Any:
    """Exchange the last two axes.

    Raises:
        ValueError: the array has fewer than two axes.
    """
    if self.aval.ndim < 2:
        raise ValueError(f"mT exchanges the last two axes, {self.aval.str_short()} has {self.aval.ndim}")
    return shape.swapaxes(self, -1, -2)


# -- elements ----------------------------------------------------------------------------------------------------


def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """Convert the elements to another dtype (None for the default floating-point dtype).

    Warns:
        ComplexWarning: complex numbers are converted to real ones, which drops the imaginary part, as in NumPy.
    """
    out = _converted(self, dtype)
    if dtypes.is_complex(self.aval.dtype) and out.aval.dtype.kind in "iuf":
        text = f"astype: of {self.aval.str_short()} the imaginary parts are dropped; to drop them silently, use "
        warn_user(f"{text}x.real.astype({out.aval.dtype.name!r})", np.exceptions.ComplexWarning)
    return out if device is None else out.to_device(device)


@remembered
def _converted(x: Any, dtype: Any) -> Any:
    return convert_element_type(x, dtypes.default_float_dtype() if dtype is None else dtype)


def copy(self: Any) -> Any:
    """Copy the array, so that the copy stays valid if the array is donated; a traced value is returned itself."""
    return copied(self)


def real(self: Any) -> Any:
    """Return the real part."""
    return complex_numbers.real(self) if dtypes.is_complex(self.aval.dtype) else self


def imag(self: Any) -> Any:
    """Return the imaginary part; zeros for a real array."""
    if dtypes.is_complex(self.aval.dtype):
        return complex_numbers.imag(self)
    return zeros_like_array(self)


def conj(self: Any) -> Any:
    """Return the complex conjugate; a real array itself."""
    return complex_numbers.conj(self) if dtypes.is_complex(self.aval.dtype) else self


METHODS: Mapping[str, Any] = {
    **{f.__name__: f for f in (reshape, transpose, astype, copy, conj)},
    "conjugate": conj,
    "T": property(transpose),
    "mT": property(matrix_transpose),
    "real": property(real),
    "imag": property(imag),
}
