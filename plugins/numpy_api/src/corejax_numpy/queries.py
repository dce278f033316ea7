"""Inspect arguments (are they complex, scalars, iterable?), and compare whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes, get_aval, is_array_like
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, like, number_argument, promote
from corejax_numpy.creation import listed
from corejax_numpy.elementwise import isclose
from corejax_numpy.reductions import all


def _compares_imag(name: str, compare: Any, doc: str) -> Any:
    def function(x: Any) -> Any:
        x = number_argument(name, x)
        if not dtypes.is_complex(x.dtype):
            return lax.full_like(x, compare is lax.eq, np.bool_)
        part = lax.imag(x)
        return compare(part, like(part, 0))

    return lax.named(function, name, doc)


iscomplex = _compares_imag("iscomplex", lax.ne, "Test whether elements have a nonzero imaginary part.")
isreal = _compares_imag("isreal", lax.eq, "Test whether elements have no imaginary part; True for real arrays.")


def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype of the argument is complex; the values do not matter."""
    if x is None or isinstance(x, str):
        return False
    if isinstance(x, list | tuple):
        return any(iscomplexobj(part) for part in x)
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        dtype = get_aval(x).dtype if is_array_like(x) else bool
    return bool(np.dtype(dtype).kind == "c")


def isrealobj(x: Any) -> bool:
    """Return whether the dtype of the argument is not complex."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Return whether the argument is a number, a string or an array of rank 0."""
    if np.isscalar(element):
        return True
    if isinstance(element, np.ndarray):  # also of dtypes that no `Array` has, such as strings
        return element.ndim == 0
    return is_array_like(element) and get_aval(element).ndim == 0


def iterable(y: Any) -> bool:
    """Return whether the argument can be iterated over."""
    try:
        iter(y)
    except TypeError:
        return False
    return True


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Test whether all elements of two arrays are close to each other; arguments as for `isclose`."""
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Test whether two arrays have one shape and the same elements.

    Args:
        a1: an array, or a list or tuple that can be converted to one.
        a2: another array.
        equal_nan: whether NaN is equal to NaN; False by default.
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
    """Test whether two arrays broadcast to one shape and are then equal."""
    a1, a2 = array_argument("array_equiv", listed(a1)), array_argument("array_equiv", listed(a2), 1)
    try:
        lax.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return lax.make_scalar(False, dtypes.bool_)
    return all(lax.eq(*promote("array_equiv", a1, a2)))
