"""What users hold (`Interval`) and what rules see (`Bounds`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Tracer, as_array, dtypes, get_aval, host_value, is_array_like, tree
from corejax_lax_basic import lax


class Interval:
    """All arrays between two bounds, element by element; a pytree whose leaves are the bounds.

    Args:
        lower: array or number, real or bool. Of bools False is below True, so that `Interval(False, True)` is "either".
        upper: array or number, of a shape and dtype that broadcast and promote with those of `lower`.

    Attributes:
        lower, upper: the bounds, of one shape and dtype. NaN in both: nothing is known of the element, it may be NaN.

    Raises:
        TypeError: a bound is not an array, or is complex.
        ValueError: the shapes do not broadcast, or a lower bound is above its upper bound (where both are known).
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
        """`center - radius` to `center + radius`; where both are known, `radius` is not negative.

        Raises:
            ValueError: a radius is negative.
        """
        return cls(as_array(center) - radius, as_array(center) + radius)

    @classmethod
    def of(cls, lower: Any, upper: Any) -> Interval:
        """From bounds that are in order and of one type, without a look at them."""
        new = object.__new__(cls)
        new.lower, new.upper = lower, upper
        return new

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of either bound."""
        return get_aval(self.lower).shape

    @property
    def dtype(self) -> Any:
        """Dtype of either bound."""
        return get_aval(self.lower).dtype

    @property
    def width(self) -> Any:
        """`upper - lower`: how much is left open; of numbers."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> Any:
        """Half-way between the bounds; of floating-point numbers."""
        return self.lower + (self.upper - self.lower) * 0.5

    def contains(self, x: Any) -> Any:
        """Whether each element of `x` is between the bounds, or nothing is known of it: a bool array."""
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
    """Both bounds as arrays of one shape and dtype."""
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
    """An operand or a result, as rules of the kind `interval` take and give them.

    Attributes:
        lower, upper: arrays of the type that the value has in the program. NaN in both: nothing is known.
    """

    lower: Any
    upper: Any

    @property
    def is_point(self) -> bool:
        """Whether the value is known, statically: both bounds are one array."""
        return self.lower is self.upper

    @classmethod
    def point(cls, x: Any) -> Bounds:
        """A known value."""
        x = x if isinstance(x, Tracer) else as_array(x)
        return cls(x, x)
