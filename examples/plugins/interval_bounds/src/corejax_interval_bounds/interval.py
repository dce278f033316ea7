"""The public class `Interval`, and the `Bounds` that rules use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Tracer, as_array, dtypes, get_aval, host_value, is_array_like, tree
from corejax_lax_basic import lax


class Interval:
    """The set of arrays between two bounds, element by element; a pytree whose leaves are the bounds.

    Args:
        lower: array or number, real or bool. False is below True, so that `Interval(False, True)` contains both.
        upper: array or number that broadcasts and promotes with `lower`.

    Attributes:
        lower, upper: the bounds, of the same shape and dtype. NaN in both bounds means that the element may have any
            value, including NaN.

    Raises:
        TypeError: a bound is not an array, or is complex.
        ValueError: the shapes do not broadcast, or a known lower bound is above its upper bound.
    """

    __slots__ = ("lower", "upper")

    lower: Any
    upper: Any

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower, self.upper = _same_type(lower, upper)
        if not (isinstance(self.lower, Tracer) or isinstance(self.upper, Tracer)):
            _check_order(host_value(self.lower), host_value(self.upper))

    @classmethod
    def around(cls, center: Any, radius: Any) -> Interval:
        """Return the interval from `center - radius` to `center + radius`.

        Raises:
            ValueError: a known radius is negative.
        """
        return cls(as_array(center) - radius, as_array(center) + radius)

    @classmethod
    def of(cls, lower: Any, upper: Any) -> Interval:
        """Create an interval from bounds of the same type, without checks."""
        new = object.__new__(cls)
        new.lower, new.upper = lower, upper
        return new

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of both bounds."""
        return get_aval(self.lower).shape

    @property
    def dtype(self) -> Any:
        """The dtype of both bounds."""
        return get_aval(self.lower).dtype

    @property
    def width(self) -> Any:
        """`upper - lower`, for numbers."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> Any:
        """The point half-way between the bounds, for floating-point numbers."""
        return self.lower + (self.upper - self.lower) * 0.5

    def contains(self, x: Any) -> Any:
        """Return a bool array: whether each element of `x` is between the bounds, or its bounds are NaN."""
        x = x if isinstance(x, Tracer) else as_array(x)
        unknown = (self.lower != self.lower) | (self.upper != self.upper)
        return unknown | ((self.lower <= x) & (x <= self.upper))

    def __repr__(self) -> str:
        return f"Interval({self.lower!r}, {self.upper!r})"


tree.register_pytree_with_keys(
    Interval,
    lambda interval: (
        ((tree.GetAttrKey("lower"), interval.lower), (tree.GetAttrKey("upper"), interval.upper)),
        None,
    ),
    lambda _, bounds: Interval.of(*bounds),
)


def _same_type(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Convert both bounds to arrays of the same shape and dtype."""
    for name, x in (("lower", lower), ("upper", upper)):
        if not isinstance(x, Tracer) and not is_array_like(x):
            raise TypeError(f"Interval: the {name} bound is an array or a number, got {x!r} of type {type(x).__name__}")
        if dtypes.is_complex(get_aval(x).dtype):
            raise TypeError(
                f"Interval: complex numbers have no order, got {get_aval(x).str_short(short_dtypes=False)} as the "
                f"{name} bound; bound the real and the imaginary part"
            )
    lower, upper = (x if isinstance(x, Tracer) else as_array(x) for x in (lower, upper))
    if lower.aval is upper.aval:
        return lower, upper
    try:
        shape = np.broadcast_shapes(lower.shape, upper.shape)
    except ValueError:
        raise ValueError(
            f"Interval: bounds of shapes {lower.shape} and {upper.shape} do not broadcast to one shape"
        ) from None
    dtype = dtypes.result_type(lower, upper)

    def converted(x: Any) -> Any:
        x = x if x.dtype == dtype else lax.convert_element_type(x, dtype)
        return x if x.shape == shape else lax.broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))

    return converted(lower), converted(upper)


def _check_order(lower: Any, upper: Any) -> None:
    known = ~(np.isnan(lower) | np.isnan(upper)) if dtypes.is_float(lower.dtype) else True
    wrong = np.argwhere((lower > upper) & known)
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])
        where = f" at index {at}" if at else ""
        raise ValueError(
            f"Interval: the lower bound {lower[at]} is above the upper bound {upper[at]}{where}"
            f"{f', and at {len(wrong) - 1} more' if len(wrong) > 1 else ''}"
        )


class Bounds(NamedTuple):
    """The bounds of an operand or a result of a rule of the kind `interval`.

    Attributes:
        lower, upper: arrays of the value's type in the program. NaN in both means that the value is unknown.
    """

    lower: Any
    upper: Any

    @property
    def is_point(self) -> bool:
        """Whether the value is known statically, that is, both bounds are the same array."""
        return self.lower is self.upper

    @classmethod
    def point(cls, x: Any) -> Bounds:
        """Return the bounds of a known value."""
        x = x if isinstance(x, Tracer) else as_array(x)
        return cls(x, x)
