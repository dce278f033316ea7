"""Create arrays from Python and NumPy values, or filled with one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, Tracer, as_array, config, dtypes, get_aval, is_array_like
from corejax.extend.devices import is_spread
from corejax.extend.messages import called_function
from corejax.extend.transforms import JitTracer, recording_trace
from corejax.extend.types import array_method
from corejax_lax_basic import lax
from corejax_numpy.arguments import canonical_dtype, canonical_shape, operand, static_int
from corejax_numpy.devices import on_device

# -- from values --------------------------------------------------------------------------------------------------


def array(
    object: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: str | None = "K",
    *,
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Create an array from a value.

    Args:
        object: an array, a NumPy array or scalar, a Python scalar, nested lists and tuples of these, or anything else
            that NumPy converts to an array. The dtype of a NumPy array is kept; Python scalars get the default width.
        dtype: dtype of the result; by default that of `object`.
        copy: whether an array is copied. If True (the default), the result stays valid when `object` is donated to a
            compiled function. If None, an array is returned unchanged, and any other object is copied, so that later
            writes to the object do not change the result. If False, ValueError is raised if a copy is needed.
        order: accepted for compatibility with NumPy and ignored; arrays have no memory layout.
        ndmin: minimum number of axes; new axes of size 1 come first.
        device: device of the result; by default the default device.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        The array. Only a scalar without a `dtype` is weakly typed. While a program is being traced, the result is a
        constant of this program, and therefore a tracer.

    Raises:
        TypeError: `object` cannot be converted to an array of numbers.
        ValueError: `object` has nested sequences of unequal lengths; or `copy` is False, and `object` is not an array
            of that dtype.
        OverflowError: a Python int is out of the range of the dtype.
    """
    if out_sharding is not None:
        return lax.place("array", array(object, dtype, copy, order, ndmin=ndmin, device=device), out_sharding)
    if order not in (None, "K", "A", "C", "F"):
        raise ValueError(f"array: order is one of 'K', 'A', 'C' and 'F', got {order!r}")
    dtype = canonical_dtype(dtype)
    if copy is False and _needs_copy(object, dtype):
        what = f"{dtype.name} from " if dtype is not None else ""
        raise ValueError(
            f"array: making {what}a {type(object).__name__} an array needs a copy, and copy=False was given; "
            "leave `copy` out"
        )
    out = _from_object(object, dtype)
    if copy and out is object:
        out = out.copy()
    if ndmin and out.ndim < (ndmin := _rank(ndmin)):
        out = lax.expand_dims(out, tuple(range(ndmin - out.ndim)))
    return on_device(_traced(out), device)


def _rank(ndmin: Any) -> int:
    rank = static_int("array", ndmin, "ndmin")
    if rank > 64:
        raise ValueError(f"array: an array has 64 axes at most, got ndmin {rank}")
    return rank


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Create an array from a value; an argument that is an array already is returned unchanged.

    A NumPy array is copied, because its owner may write to it; with `copy=False` it raises ValueError. The other
    arguments are as for `array`.
    """
    return lax.place("asarray", array(a, dtype, copy, order, device=device), out_sharding)


def listed(x: Any) -> Any:
    """Return a list or tuple as an array, for the few functions that accept one; anything else unchanged."""
    return asarray(x) if isinstance(x, list | tuple) else x


def copy(a: Any, order: str | None = None) -> Any:
    """Return a copy of `a`, which stays valid when `a` is donated; a traced value is returned unchanged."""
    return array(a, order=order or "K")


def _needs_copy(obj: Any, dtype: Any) -> bool:
    return not isinstance(obj, Array) or dtype not in (None, obj.dtype)


def _from_object(obj: Any, dtype: Any) -> Any:
    if type(obj) is Array or isinstance(obj, Tracer):
        return obj if dtype is None else lax.beside(lax.convert_element_type(obj, dtype), obj)
    if isinstance(obj, list | tuple | range):
        return lax.from_sequence(obj, dtype)
    if lax.is_python_scalar(obj):
        if isinstance(obj, complex) and dtype is not None and not dtypes.is_complex(dtype):
            raise TypeError(f"array: the complex number {obj} does not become {dtype.name}; take its real part")
        if dtype is None:
            return as_array(obj)
        if config.x64_compat and lax.beyond(obj, dtype):  # which wraps in other functions
            np.array(obj, dtype)
        return _host_array(obj, dtype)
    if obj is None or isinstance(obj, str | bytes):
        raise _no_numbers(obj)
    if is_array_like(obj) and not isinstance(obj, np.ndarray | np.generic):
        x = as_array(obj)
        return x if dtype is None else lax.convert_element_type(x, dtype)
    if type(obj) is not np.ndarray and isinstance(obj, np.ndarray):
        get_aval(obj)  # raises TypeError for masked arrays, which would lose the mask
    value = np.asarray(obj)
    if value.dtype.kind == "O" and not isinstance(obj, np.ndarray):
        raise _no_numbers(obj)
    return _host_array(value, dtypes.canonicalize_dtype(value.dtype) if dtype is None else dtype)


def _no_numbers(obj: Any) -> TypeError:
    kind = "" if obj is None or isinstance(obj, str | bytes) else f" of type {type(obj).__name__}"
    return TypeError(f"{called_function() or 'array'}: {obj!r}{kind} is not an array of numbers")


def _host_array(value: Any, dtype: Any) -> Array:
    """Return a NumPy array or a Python number as an array, after a conversion on the host."""
    if lax.is_python_scalar(value):
        scalar: Array = lax.make_scalar(value, dtype)
        return scalar
    with np.errstate(all="ignore"):
        if dtypes.is_complex(value.dtype) and not dtypes.is_complex(dtype):
            value = value.real
        value = np.array(value, dtype)
        return Array(value, get_aval(value))


def _traced(x: Any) -> Any:
    """Return an array as a constant of the program that is being traced, if any (omnistaging)."""
    if isinstance(x, Tracer):
        return x
    # A program is recorded by a StagingTrace, which has `atom`.
    trace: Any = recording_trace()
    return x if trace is None else JitTracer(trace, x.aval, trace.atom(x))


# -- filled with one value ----------------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Create an array filled with one value, or with an array broadcast to `shape`.

    Args:
        shape: sizes of the axes, a sequence or one integer.
        fill_value: the value, a scalar or an array.
        dtype: dtype of the result; by default that of the value, weakly typed for a Python number.
        device: device of the result; by default the default device.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        TypeError: `shape` contains something other than concrete integers.
        ValueError: the value does not broadcast to `shape`.
    """
    if out_sharding is not None:
        return lax.place("full", full(shape, fill_value, dtype, device=device), out_sharding)
    dtype = canonical_dtype(dtype)
    if lax.is_python_scalar(fill_value) and dtype is not None:
        return _filled(shape, _host_array(fill_value, dtype), device)
    fill_value = _from_object(fill_value, dtype)
    if fill_value.ndim == 0:
        return _filled(shape, fill_value, device)
    return on_device(lax.broadcast_to(fill_value, canonical_shape(shape)), device)


def _filled(shape: Any, value: Any, device: Any = None) -> Any:
    return on_device(lax.broadcast_in_dim(value, shape, ()), device)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Create an array of zeros, of the default floating dtype unless `dtype` is given; arguments as for `full`."""
    if isinstance(dtype, np.dtype) and dtype == dtypes.float0:
        return np.zeros(canonical_shape(shape), dtype)  # the tangent dtype of integers; arrays do not have it
    return lax.place("zeros", _filled(shape, lax.fill_scalar(0, _or_float(dtype)), device), out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Create an array of ones, of the default floating dtype unless `dtype` is given; arguments as for `full`."""
    return lax.place("ones", _filled(shape, lax.make_scalar(1, _or_float(dtype)), device), out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Create an array of unspecified values (in fact zeros); arguments as for `zeros`."""
    return lax.place("empty", zeros(shape, dtype, device=device), out_sharding)


def _or_float(dtype: Any) -> Any:
    return dtypes.default_float_dtype() if dtype is None else canonical_dtype(dtype)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Create an array filled with one value, of the shape and dtype of another array.

    The result is weakly typed if the other array is. It has the other array's device or sharding, if that is explicit.

    Args:
        a: the other array, or any object with `shape` and `dtype`.
        fill_value: a scalar, or an array that broadcasts to the shape.
        dtype: dtype of the result; by default that of `a`.
        shape: shape of the result; by default that of `a`.
        device: device of the result; by default that of `a`.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`; by default that of `a`.
    """
    aval = _aval_of(a)
    if shape is device is out_sharding is None and aval.explicit_sharding is not None:
        return aval.explicit_sharding.place(full_like(a, fill_value, dtype, aval.shape))
    if shape is device is out_sharding is None and type(a) is Array and is_spread(a):
        out_sharding = a.sharding
    if out_sharding is not None:
        shape = aval.shape if shape is None else shape
        return lax.place("full_like", full_like(a, fill_value, dtype, shape, device=device), out_sharding)
    shape = aval.shape if shape is None else canonical_shape(shape)
    weak = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else canonical_dtype(dtype)
    if lax.is_python_scalar(fill_value):
        out = _filled(shape, lax.fill_scalar(fill_value, dtype, weak), device)
    else:
        value = lax.convert_element_type(_from_object(fill_value, None), dtype)
        out = on_device(lax.broadcast_to(value, shape), device)
    return lax.beside(out, a) if device is None else out


def _aval_of(a: Any) -> ShapedArray:
    described = not isinstance(a, type) and hasattr(a, "shape") and hasattr(a, "dtype")
    if is_array_like(a) and not (described and array_method(type(a))):
        return get_aval(a)
    if described:  # shape and dtype are enough; the values are not read
        return ShapedArray(tuple(a.shape), a.dtype, bool(getattr(a, "weak_type", False)))
    name = called_function() or "full_like"
    advice = f"; for a pytree use corejax.tree.map(jnp.{name}, x)" if isinstance(a, dict | list | tuple) else ""
    raise TypeError(f"{name} takes an array, or an object with shape and dtype, got {type(a).__name__}{advice}")


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Create an array of zeros of the shape and dtype of another array; arguments as for `full_like`."""
    return lax.place("zeros_like", full_like(a, 0, dtype, shape, device=device), out_sharding)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Create an array of ones of the shape and dtype of another array; arguments as for `full_like`."""
    return lax.place("ones_like", full_like(a, 1, dtype, shape, device=device), out_sharding)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Create an array of unspecified values (in fact zeros), of the shape and dtype of another array."""
    return full_like(prototype, 0, dtype, shape, device=device)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """Convert an array to another dtype: floats are truncated to integers, complex numbers to their real parts.

    Args:
        x: the array.
        dtype: the dtype; None is the default floating dtype.
        copy: accepted for compatibility with NumPy and ignored; arrays are immutable.
        device: device of the result; by default that of `x`.

    Warns:
        ComplexWarning: complex numbers are converted to real ones, as in NumPy.
    """
    x = as_array(operand("astype", x))
    out = x.astype(dtype)
    return lax.beside(out, x) if device is None else on_device(out, device)
