"""Whether two arrays are equal, or close to each other, as a whole."""

from __future__ import annotations

from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, promote
from corejax_numpy.creation import listed
from corejax_numpy.elementwise import isclose
from corejax_numpy.reductions import all


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are close to each other; see `isclose`."""
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have one shape and the same elements.

    Args:
        a1: an array, or a list or tuple of which one can be made.
        a2: another.
        equal_nan: whether a NaN is equal to a NaN.
    """
    a1, a2 = array_argument("array_equal", listed(a1)), array_argument("array_equal", listed(a2), 1)
    if a1.shape != a2.shape:
        return lax.make_scalar(False, dtypes.bool_)
    x, y = promote("array_equal", a1, a2)
    same = lax.eq(x, y)
    if equal_nan:
        same = lax.bitwise_or(same, lax.bitwise_and(lax.ne(x, x), lax.ne(y, y)))
    return all(same)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two arrays broadcast to one shape, and then have the same elements."""
    a1, a2 = array_argument("array_equiv", listed(a1)), array_argument("array_equiv", listed(a2), 1)
    try:
        lax.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return lax.make_scalar(False, dtypes.bool_)
    return all(lax.eq(*promote("array_equiv", a1, a2)))
