"""`pad`, in all modes of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from corejax.extend import Tracer, dtypes
from corejax.extend.types import SymbolicDim, as_dim
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, concrete, like
from corejax_numpy.creation import asarray
from corejax_numpy.manipulation import slice_along
from corejax_numpy.moments import mean
from corejax_numpy.ranges import linspace
from corejax_numpy.reductions import max as maximum_over
from corejax_numpy.reductions import min as minimum_over

Widths = list[tuple[int, int]]

# The keyword argument of each mode.
_ARGUMENT = {
    "constant": "constant_values",
    "edge": "",
    "empty": "",
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": "",
}


def pad(array: Any, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Any:
    """Pad an array along its axes.

    Args:
        array: the array.
        pad_width: the widths before and after, a pair for each axis; or one pair or one number for all axes.
        mode: the values of the padding, `"constant"` by default.

            * `"constant"`: `constant_values` (0 by default): a number, or values before and after as for `pad_width`.
            * `"edge"`: the element at the edge.
            * `"linear_ramp"`: a linear ramp between `end_values` (0 by default) at the end and the edge value.
            * `"maximum"`, `"mean"`, `"median"`, `"minimum"`: the statistic of the `stat_length` elements next to the
              edge (all by default).
            * `"reflect"`: the elements mirrored about the edge element; `"symmetric"`: mirrored including the edge
              element. With `reflect_type="odd"` the values are mirrored about the edge value as well.
            * `"wrap"`: the elements from the opposite end.
            * `"empty"`: unspecified values (in fact zeros).
            * a function `f(vector, widths, axis, kwargs)`, called for vectors along each axis with zeros as padding,
              that returns the padded vector.
        kwargs: the keyword argument of the mode; for a function, the dict passed as `kwargs`.

    Raises:
        ValueError: the widths do not match the array's axes, or are negative; the mode or a keyword argument is
            unknown; or an axis without elements is padded in a mode that needs some.
        TypeError: the widths are not integers.
    """
    x = array_argument("pad", array)
    widths = _widths(pad_width, x)
    if callable(mode):
        return _pad_with_function(x, widths, mode, kwargs)
    if not isinstance(mode, str) or mode not in _ARGUMENT:
        raise ValueError(f"pad: mode is one of {', '.join(map(repr, _ARGUMENT))} or a function, got {mode!r}")
    if unknown := sorted(set(kwargs) - {_ARGUMENT[mode]}):
        known = f"takes {_ARGUMENT[mode]!r}" if _ARGUMENT[mode] else "takes no argument"
        raise ValueError(f"pad: mode {mode!r} {known}, got {', '.join(map(repr, unknown))}")
    if not x.ndim:
        return x
    if mode in ("constant", "empty"):
        return _constant(x, widths, kwargs.get("constant_values", 0))
    return _MODES[mode](x, widths, mode, **kwargs)


def _widths(pad_width: Any, x: Any) -> Widths:
    if type(pad_width) is int and pad_width >= 0:
        return [(pad_width, pad_width)] * x.ndim
    pairs = _pairs("pad_width", pad_width, x)
    are_sizes = pairs.dtype.kind in "iu" or all(isinstance(width, int | SymbolicDim) for width in pairs.flat)
    if not are_sizes and pairs.size:
        raise TypeError(f"pad: `pad_width` must be integers, got {pad_width!r}")
    if any(width < 0 for width in pairs.flat):
        raise ValueError(f"pad: widths are not negative, got {pad_width!r}")
    return [(as_dim(before), as_dim(after)) for before, after in pairs]


def _pairs(what: str, value: Any, x: Any) -> np.ndarray:
    """Return an argument as an array of pairs, one for each axis.

    Raises:
        ConcretizationTypeError: the argument is traced.
        ValueError: the argument has another shape.
    """
    try:
        pairs = np.asarray(_known(value))
        if pairs.shape in ((), (1,), (2,), (1, 2), (x.ndim, 2)):
            return np.broadcast_to(pairs, (x.ndim, 2))
        if not pairs.size and not x.ndim:
            return np.zeros((0, 2), int)
    except ValueError:
        pass  # ragged
    raise ValueError(
        f"pad: `{what}` is a number, a pair, or pairs for the {x.ndim} axes of {x.aval.str_short()}; got {value!r}"
    )


def _known(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_known(v) for v in value]
    return concrete("pad", value) if isinstance(value, Tracer) else value


def _repeat(x: Any, axis: int, width: int) -> Any:
    """Repeat an array of size 1 along an axis."""
    return lax.broadcast_in_dim(x, (*x.shape[:axis], width, *x.shape[axis + 1 :]), tuple(range(x.ndim)))


def _concatenate(x: Any, axis: int, before: Any, after: Any) -> Any:
    """Concatenate `x` and the padding on both sides; None stands for no padding."""
    parts = [part for part in (before, x, after) if part is not None]
    return lax.concatenate(parts, axis) if len(parts) > 1 else x


# -- constants ----------------------------------------------------------------------------------------------------


def _constant(x: Any, widths: Widths, values: Any) -> Any:
    if not any(isinstance(width, SymbolicDim) or width for pair in widths for width in pair):
        return x
    if not lax.is_python_scalar(values):
        values = asarray(values)
        if values.size == 1:
            values = lax.reshape(values, ())
    if lax.is_python_scalar(values) or not values.ndim:
        known = type(values) is int or (type(values) is float and dtypes.is_inexact(x.dtype))
        value = lax.make_scalar(values, x.dtype) if known else lax.convert_element_type(values, x.dtype)
        return lax.pad(x, value, [(*pair, 0) for pair in widths])
    if values.shape not in ((2,), (1, 2), (x.ndim, 2)):
        raise ValueError(
            f"pad: `constant_values` is a number, a pair, or pairs for the {x.ndim} axes of {x.aval.str_short()}; "
            f"got {values.aval.str_short()}"
        )
    values = lax.broadcast_to(lax.convert_element_type(values, x.dtype), (x.ndim, 2))
    for axis, pair in enumerate(widths):
        for side, width in enumerate(pair):
            if width:
                config = [(0, 0, 0)] * x.ndim
                config[axis] = (0, width, 0) if side else (width, 0, 0)
                x = lax.pad(x, values[axis, side], config)
    return x


def _linear_ramp(x: Any, widths: Widths, mode: str, end_values: Any = 0) -> Any:
    ends = _pairs("end_values", end_values, x)
    for axis, before, after in _padded_axes(x, widths, mode):
        ramps = []
        for side, width in enumerate((before, after)):
            edge = lax.index_in_dim(x, -1 if side else 0, axis, keepdims=False)
            end = asarray(ends[axis, side].item(), x.dtype)
            ramp = linspace(end, edge, width, endpoint=False, dtype=x.dtype, axis=axis) if width else None
            ramps.append(lax.rev(ramp, (axis,)) if side and width else ramp)
        x = _concatenate(x, axis, *ramps)
    return x


# -- padding with the array's elements ----------------------------------------------------------------------------


def _padded_axes(x: Any, widths: Widths, mode: str) -> Iterator[tuple[int, int, int]]:
    """Yield each axis that is padded, and the widths of its padding.

    Raises:
        ValueError: the axis has no elements.
    """
    for axis, (before, after) in enumerate(widths):
        if before or after:
            if not x.shape[axis]:
                raise ValueError(f"pad: axis {axis} of {x.aval.str_short()} has no elements for mode {mode!r}")
            yield axis, before, after


def _edge(x: Any, widths: Widths, mode: str) -> Any:
    for axis, before, after in _padded_axes(x, widths, mode):
        front = _repeat(slice_along(x, axis, 0, 1), axis, before) if before else None
        x = _concatenate(x, axis, front, _repeat(slice_along(x, axis, -1, None), axis, after) if after else None)
    return x


def _wrap(x: Any, widths: Widths, mode: str) -> Any:
    for axis, before, after in _padded_axes(x, widths, mode):
        size = x.shape[axis]
        front = [slice_along(x, axis, size - before % size, None)] if before % size else []
        back = [slice_along(x, axis, 0, after % size)] if after % size else []
        x = lax.concatenate([*front, *[x] * (before // size + 1 + after // size), *back], axis)
    return x


def _mirror(x: Any, widths: Widths, mode: str, reflect_type: str = "even") -> Any:
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: `reflect_type` is 'even' or 'odd', got {reflect_type!r}")
    for axis, before, after in _padded_axes(x, widths, mode):
        size = x.shape[axis]
        skip = int(mode == "reflect" and size > 1)  # a single element is repeated
        if max(before, after) > size - skip:
            x = _mirror_repeatedly(x, axis, before, after, skip, reflect_type)
            continue
        front = _mirrored(x, axis, skip, skip + before, 0, reflect_type) if before else None
        back = _mirrored(x, axis, size - skip - after, size - skip, size - 1, reflect_type) if after else None
        x = _concatenate(x, axis, front, back)
    return x


def _mirror_repeatedly(x: Any, axis: int, before: int, after: int, skip: int, reflect_type: str) -> Any:
    """Pad an axis by more than its size: mirror the whole axis repeatedly, then crop the result."""
    size = x.shape[axis]
    front = back = 0
    while front < before or back < after:
        length = x.shape[axis]
        if front < before:
            x = _concatenate(x, axis, _mirrored(x, axis, skip, length, 0, reflect_type), None)
            front += length - skip
        else:
            x = _concatenate(x, axis, None, _mirrored(x, axis, 0, length - skip, length - 1, reflect_type))
            back += length - skip
    return slice_along(x, axis, front - before, front + size + after)


def _mirrored(x: Any, axis: int, start: int, stop: int, edge: int, reflect_type: str) -> Any:
    part = lax.rev(slice_along(x, axis, start, stop), (axis,))
    if reflect_type == "even":
        return part
    at_edge = slice_along(x, axis, edge, edge + 1)
    return lax.sub(_repeat(lax.mul(at_edge, like(at_edge, 2)), axis, stop - start), part)


# -- statistics ---------------------------------------------------------------------------------------------------


def _median(x: Any, axis: int, keepdims: bool) -> Any:
    from corejax_numpy.quantiles import median

    return median(x, axis, keepdims=keepdims)


_STATISTICS: Mapping[str, Callable[..., Any]] = {
    "maximum": maximum_over,
    "mean": mean,
    "median": _median,
    "minimum": minimum_over,
}


def _statistic(x: Any, widths: Widths, mode: str, stat_length: Any = None) -> Any:
    lengths = None if stat_length is None else _pairs("stat_length", stat_length, x)
    if lengths is not None and (lengths.dtype.kind not in "iu" or lengths.min() < 1):
        raise ValueError(f"pad: `stat_length` must be positive integers, got {stat_length!r}")
    for axis, before, after in _padded_axes(x, widths, mode):
        size = x.shape[axis]
        length = [size, size] if lengths is None else [min(int(n), size) for n in lengths[axis]]
        front = _summary(slice_along(x, axis, 0, length[0]), axis, mode)
        back = front if length == [size, size] else _summary(slice_along(x, axis, size - length[1], None), axis, mode)
        x = _concatenate(
            x,
            axis,
            _repeat(front, axis, before) if before else None,
            _repeat(back, axis, after) if after else None,
        )
    return x


def _summary(x: Any, axis: int, mode: str) -> Any:
    out = _STATISTICS[mode](x, axis, keepdims=True)
    if dtypes.is_integer(x.dtype) and dtypes.is_inexact(out.dtype):
        out = out.round()
    return lax.convert_element_type(out, x.dtype)


_MODES: Mapping[str, Callable[..., Any]] = {
    "edge": _edge,
    "linear_ramp": _linear_ramp,
    "reflect": _mirror,
    "symmetric": _mirror,
    "wrap": _wrap,
    **dict.fromkeys(_STATISTICS, _statistic),
}


def _pad_with_function(x: Any, widths: Widths, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    from corejax_numpy.mapping import apply_along_axis

    x = _constant(x, widths, 0)
    for axis, pair in enumerate(widths):
        x = apply_along_axis(function, axis, x, pair, axis, kwargs)
    return x
