"""Create arrays that follow a pattern: ranges, identity matrices, triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, dtypes
from corejax.extend.types import SymbolicDim, as_dim, max_dim
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axis, canonical_dtype, concrete, like, operand, static_int
from corejax_numpy.devices import on_device
from corejax_numpy.elementwise import divide, log10, multiply, power
from corejax_numpy.manipulation import moveaxis


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Return evenly spaced numbers in the interval [`start`, `stop`).

    Args:
        start: the first number; the end of the interval if `stop` is not given, and the first number is then 0.
        stop: the end of the interval, which is not included.
        step: the distance between neighbours, 1 by default; may be negative.
        dtype: dtype of the result; by default the promoted dtype of the arguments, the default integer for Python
            ints.
        device: device of the result; by default the default device.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Raises:
        ConcretizationTypeError: an argument is traced; the length of the result is static.
        ValueError: an argument is complex or not finite.
        ZeroDivisionError: `step` is 0.
    """
    return lax.place("arange", on_device(_arange(start, stop, step, dtype), device), out_sharding)


def _arange(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    if any(isinstance(x, SymbolicDim) for x in (start, stop, step)):
        first, bound = (0, start) if stop is None else (start, stop)
        return _symbolic_range(first, bound, 1 if step is None else step, dtype)
    given = [operand("arange", x, i) for i, x in enumerate((start, stop, step)) if x is not None]
    dtype = dtypes.result_type(*given) if dtype is None else canonical_dtype(dtype)
    first, bound, distance = (
        None
        if x is None
        else concrete("arange", x, "bounds and step must be static, as the length of the result depends on them")
        for x in (start, stop, step)
    )
    if any(isinstance(x, complex) for x in (first, bound, distance)):
        raise ValueError(f"arange: bounds and step are real numbers, got {start!r}, {stop!r}, {step!r}")
    if bound is None:
        first, bound = 0, first
    if first is None or any(x is not None and not math.isfinite(x) for x in (first, bound, distance)):
        raise ValueError(f"arange: bounds and step are finite numbers, got {start!r}, {stop!r}, {step!r}")
    if distance == 0:
        raise ZeroDivisionError(f"arange: the step is not 0, got {start!r}, {stop!r}, {step!r}")
    # NumPy computes in double precision and rounds once; `i * step` in the dtype would round twice.
    if distance is not None and not dtypes.is_integer(dtype):
        return Array(np.arange(first, bound, distance).astype(dtype))
    size = max(0, math.ceil((bound - first) / (1 if distance is None else distance)))
    if dtypes.is_bool(dtype):
        return Array(np.arange(first, bound, distance, dtype=bool))
    out = lax.iota(dtype, size)
    if distance not in (None, 1):
        out = lax.mul(out, lax.make_scalar(distance, dtype))
    return lax.add(out, lax.make_scalar(first, dtype)) if first else out


def _symbolic_range(first: Any, bound: Any, distance: Any, dtype: Any) -> Any:
    """Return a range of integers, some of which are symbolic; the step is a positive integer."""
    first, bound, distance = (as_dim(x) for x in (first, bound, distance))
    if isinstance(distance, SymbolicDim) or distance < 1:
        raise ValueError(f"arange: with symbolic bounds the step must be a positive integer, got {distance!r}")
    dtype = dtypes.default_int_dtype() if dtype is None else canonical_dtype(dtype)
    size = max_dim((bound - first + distance - 1) // distance, 0)
    out = lax.iota(dtype, size)
    out = out if distance == 1 else lax.mul(out, lax.make_scalar(distance, dtype))
    starts_at_zero = isinstance(first, int) and first == 0
    return out if starts_at_zero else lax.add(out, lax.make_scalar(first, dtype))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop`.

    Args:
        start: the first number; an array gives several ranges at once.
        stop: the last number, or the end of the interval if `endpoint` is False.
        num: the number of samples, a static integer; 50 by default.
        endpoint: whether `stop` is the last sample; True by default.
        retstep: whether to return the distance between samples as well; it is NaN if there are no two samples.
        dtype: dtype of the result; samples are rounded down to integers if it is an integer dtype.
        axis: the axis of the result along which the samples lie, 0 by default.
        device: device of the result; by default the default device.

    Raises:
        ValueError: `num` is negative, or the axis does not exist.
    """
    num = _size("linspace", num, "the number of samples")
    if lax.is_python_scalar(start) and lax.is_python_scalar(stop):
        return _linspace_of_scalars(start, stop, num, endpoint, retstep, dtype, axis, device)
    bounds, dtype = _bounds("linspace", start, stop, dtype)
    out, intervals = _evenly(*bounds, num, endpoint, exact=dtypes.is_integer(dtype))
    if dtypes.is_integer(dtype):
        out = out // like(out, 1)
    out = _move_first("linspace", lax.convert_element_type(out, dtype), axis)
    if not retstep:
        return on_device(out, device)
    if num > 1 or (num == 1 and not endpoint):
        first, last = lax.broadcast_operands(*bounds)
        distance = lax.div(lax.sub(last, first), like(first, intervals))
    else:
        distance = lax.make_scalar(math.nan, bounds[0].dtype)
    return on_device(out, device), lax.convert_element_type(distance, dtypes.inexact_dtype_of(dtype))


def evenly(start: Any, stop: Any, num: int, dtype: Any) -> Any:
    """Return evenly spaced numbers as `linspace` does, but integers are exact (where bins of integers meet, say)."""
    bounds, dtype = _bounds("linspace", start, stop, dtype)
    return lax.convert_element_type(_evenly(*bounds, num, True, exact=True)[0], dtype)


def _linspace_of_scalars(
    start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int, device: Any
) -> Any:
    """Compute `linspace` between Python numbers as a constant, rounded once."""
    canonical_axis(axis, 1, name="linspace")
    dtype = dtypes.inexact_dtype_of(dtypes.result_type(start, stop)) if dtype is None else canonical_dtype(dtype)
    with np.errstate(all="ignore"):
        first, last = (x if isinstance(x, complex) else float(x) for x in (start, stop))
        out: Any
        distance: Any
        out, distance = np.linspace(first, last, num, endpoint, retstep=True)
        if dtypes.is_integer(dtype):
            out = np.floor(out)
        if np.iscomplexobj(out) and not dtypes.is_complex(dtype):
            out, distance = out.real, np.real(distance)
        numbers = on_device(Array(out.astype(dtype)), device)
        if not retstep:
            return numbers
        return numbers, Array(np.asarray(distance).astype(dtypes.inexact_dtype_of(dtype)))


def _bounds(name: str, start: Any, stop: Any, dtype: Any) -> tuple[tuple[Any, Any], Any]:
    """Return the ends of a range in the dtype of the computation, and the dtype to which the result is rounded once.

    Floats of 16 bits or fewer are computed in float32, and integers in float64: a rounded exponent gives a wrong
    power.
    """
    bounds = [operand(name, start), operand(name, stop, 1)]
    lax.check_dtype_promotion(name, bounds)
    inexact = dtypes.inexact_dtype_of(dtypes.result_type(*bounds))
    dtype = inexact if dtype is None else canonical_dtype(dtype)
    least = dtypes.canonicalize_dtype(np.float32 if dtypes.is_inexact(dtype) else np.float64)
    inexact = dtypes.promote_types(dtypes.promote_types(inexact, dtypes.inexact_dtype_of(dtype)), least)
    first, last = (lax.convert_element_type(lax.convert_operand(x, inexact), inexact) for x in bounds)
    return (first, last), dtype


def _evenly(first: Any, last: Any, num: int, endpoint: bool, exact: bool = False) -> tuple[Any, int]:
    """Return samples along a new first axis, and the number of intervals between `first` and `last`.

    With `exact`, a sample that is an integer is exact, not a number slightly below the integer.
    """
    shape = lax.broadcast_shapes(first.shape, last.shape)
    first, last = lax.broadcast_to(first, shape), lax.broadcast_to(last, shape)
    intervals = num - 1 if endpoint else num
    return _between(first, last, num, intervals, endpoint, exact), intervals


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return numbers that are evenly spaced on a logarithmic scale: `base` to the power of evenly spaced exponents.

    Args:
        start: the first exponent; an array gives several ranges at once.
        stop: the last exponent, or the end of the interval if `endpoint` is False.
        num: the number of samples, a static integer; 50 by default.
        endpoint: whether `stop` is the last exponent; True by default.
        base: the base, 10 by default; a number, or an array that broadcasts with the result.
        dtype: dtype of the result.
        axis: the axis of the result along which the samples lie, 0 by default.

    Raises:
        ValueError: `num` is negative, or the axis does not exist.
    """
    num = _size("logspace", num, "the number of samples")
    bounds, dtype = _bounds("logspace", start, stop, dtype)
    exponents = _move_first("logspace", _evenly(*bounds, num, endpoint)[0], axis)
    return _powers_as(power(base, exponents), dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Return a geometric progression: `num` numbers from `start` to `stop` with a constant ratio.

    Args:
        start: the first number, not 0; an array gives several ranges at once.
        stop: the last number, or the end of the interval if `endpoint` is False; it has the sign of `start`.
        num: the number of samples, a static integer; 50 by default.
        endpoint: whether `stop` is the last sample; True by default.
        dtype: dtype of the result.
        axis: the axis of the result along which the samples lie, 0 by default.

    Raises:
        ValueError: `num` is negative, or the axis does not exist.
    """
    num = _size("geomspace", num, "the number of samples")
    (first, last), dtype = _bounds("geomspace", start, stop, dtype)
    sign = lax.sign(first)
    exponents = _evenly(log10(lax.div(first, sign)), log10(divide(last, sign)), num, endpoint)[0]
    out = multiply(sign, power(like(exponents, 10), exponents))
    if num:  # the ends are exact
        ends = [lax.broadcast_to(lax.expand_dims(v, (0,)), (1, *out.shape[1:])) for v in (first, last)]
        end = num - 1 if endpoint and num > 1 else num
        out = lax.concatenate([ends[0], lax.slice_in_dim(out, 1, end, axis=0), *ends[1:][: num - end]], 0)
    return _move_first("geomspace", _powers_as(out, dtype), axis)


def _powers_as(x: Any, dtype: Any) -> Any:
    """Convert powers to a dtype; those that are integers up to rounding are rounded to integers first."""
    if not dtypes.is_inexact(dtype) and dtypes.is_float(x.dtype):
        whole = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
        slack = lax.mul(lax.abs(x), like(x, 32 * float(dtypes.finfo(x.dtype).eps)))
        x = lax.select(lax.le(lax.abs(lax.sub(x, whole)), slack), whole, x)
    return lax.convert_element_type(x, dtype)


def _between(first: Any, last: Any, num: int, intervals: int, endpoint: bool, exact: bool) -> Any:
    """Return samples along a new first axis; if the end is included, the last sample is exactly `last`."""
    shape = (num, *first.shape)
    if num == 0 or (num == 1 and endpoint):
        return lax.broadcast_to(lax.expand_dims(first, (0,)), shape)
    real = dtypes.real_dtype_of(first.dtype)
    count = num - 1 if endpoint else num
    place, divisor = lax.iota(real, count), lax.make_scalar(intervals, real)
    place = lax.broadcast_in_dim(place if exact else place / divisor, (count, *first.shape), (0,))
    start, stop = lax.expand_dims(first, (0,)), lax.expand_dims(last, (0,))
    if exact:
        way = (stop - start) * place
        part = way / divisor
        # XLA divides by multiplying with a rounded reciprocal, and fuses the sum, so an integer may come out slightly
        # off. `change` is zero, and carries the tangent that the rounded number lacks.
        if not dtypes.is_complex(first.dtype):
            whole = lax.round(part, lax.RoundingMethod.TO_NEAREST_EVEN)
            change = (way - lax.stop_gradient(way)) / divisor
            part = lax.select(lax.eq(whole * divisor, way), whole + change, part)
        out = start + part
    else:
        out = start * (like(place, 1) - place) + stop * place
    return lax.concatenate([out, lax.expand_dims(last, (0,))], 0) if endpoint else out


def _move_first(name: str, x: Any, axis: int) -> Any:
    return moveaxis(x, 0, canonical_axis(axis, x.ndim, name=name))


# -- matrices ----------------------------------------------------------------------------------------------------


def _indices(shape: tuple[Any, ...], axis: int, offset: Any = 0) -> Any:
    out = lax.broadcasted_iota(np.int32, shape, axis)
    if isinstance(offset, Tracer):
        return lax.add(out, offset)
    return lax.add(out, lax.make_scalar(offset, out.dtype)) if offset else out


def _diagonal(name: str, k: Any, rows: Any, columns: Any) -> Any:
    """Return the number of a diagonal, clamped to the nearest one outside the matrix, so that int32 holds it."""
    traced = isinstance(k, Tracer) and k.ndim == 0 and dtypes.is_integer(k.dtype)
    k = k if traced else static_int(name, k, "k")
    if isinstance(k, SymbolicDim):
        return k
    rows, columns = (2**30 if isinstance(n, SymbolicDim) else n for n in (rows, columns))
    if traced:
        low = 0 if dtypes.is_unsigned(k.dtype) else -rows
        return lax.convert_element_type(lax.clamp(like(k, low), k, like(k, columns)), np.int32)
    return min(max(k, -rows), columns)


def _size(name: str, n: Any, what: str = "a size") -> int:
    return static_int(name, n, what, least=0)


def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: number of rows.
        M: number of columns; by default `N`.
        k: the diagonal, 0 by default; positive diagonals lie above the main diagonal, negative ones below.
        dtype: dtype of the result; by default the default floating dtype.
        device: device of the result; by default the default device.
    """
    rows, columns = (n if isinstance(n, SymbolicDim) else _size("eye", n) for n in (N, N if M is None else M))
    shape = (rows, columns)
    dtype = dtypes.default_float_dtype() if dtype is None else canonical_dtype(dtype)
    k = _diagonal("eye", k, rows, columns)
    return on_device(lax.convert_element_type(lax.eq(_indices(shape, 0, k), _indices(shape, 1)), dtype), device)


def identity(n: Any, dtype: Any = None) -> Any:
    """Return the identity matrix with `n` rows."""
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
    """Return a matrix with ones on and below the `k`-th diagonal, and zeros above; arguments as for `eye`."""
    rows = _size("tri", N)
    dtype = dtypes.default_float_dtype() if dtype is None else canonical_dtype(dtype)
    return lax.convert_element_type(_lower((rows, rows if M is None else _size("tri", M)), k), dtype)


def _lower(shape: tuple[int, ...], k: Any) -> Any:
    return lax.ge(_indices(shape, 0, _diagonal("tri", k, *shape)), _indices(shape, 1))


def tril(m: Any, k: int = 0) -> Any:
    """Return the lower triangles of the matrices in the last two axes: zeros above the `k`-th diagonal.

    Raises:
        ValueError: the array has fewer than two axes.
    """
    m, mask = _masked("tril", m, k)
    return lax.select(mask, m, like(m, 0))


def triu(m: Any, k: int = 0) -> Any:
    """Return the upper triangles of the matrices in the last two axes: zeros below the `k`-th diagonal.

    Raises:
        ValueError: the array has fewer than two axes.
    """
    m, mask = _masked("triu", m, k - 1 if isinstance(k, Tracer) else static_int("triu", k, "k") - 1)
    return lax.select(mask, like(m, 0), m)


def _masked(name: str, m: Any, k: int) -> tuple[Any, Any]:
    m = array_argument(name, m)
    if m.ndim < 2:
        raise ValueError(f"{name} takes an array of at least 2 dimensions, got {m.aval.str_short()}")
    return m, lax.broadcast_to(_lower(m.shape[-2:], k), m.shape)
