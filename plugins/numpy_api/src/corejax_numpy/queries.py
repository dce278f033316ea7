"""What arguments are: complex or real, scalars, iterable."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes, get_aval, is_array_like
from corejax_lax_basic import lax
from corejax_numpy.arguments import like, number_argument


def _differs_from_real(name: str, x: Any, compare: Any) -> Any:
    x = number_argument(name, x)
    if not dtypes.is_complex(x.dtype):
        return lax.full_like(x, compare is lax.eq, np.bool_)
    part = lax.imag(x)
    return compare(part, like(part, 0))


def iscomplex(x: Any) -> Any:
    """Whether elements have an imaginary part that is not zero."""
    return _differs_from_real("iscomplex", x, lax.ne)


def isreal(x: Any) -> Any:
    """Whether elements have an imaginary part of zero; all of a real array's."""
    return _differs_from_real("isreal", x, lax.eq)


def iscomplexobj(x: Any) -> bool:
    """Whether the argument's dtype is complex, whatever its values."""
    if x is None or isinstance(x, str):
        return False
    if isinstance(x, list | tuple):
        return any(iscomplexobj(part) for part in x)
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        dtype = get_aval(x).dtype if is_array_like(x) else bool
    return bool(np.dtype(dtype).kind == "c")


def isrealobj(x: Any) -> bool:
    """Whether the argument's dtype is not complex."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether the argument is a number, a string or an array of rank 0."""
    if np.isscalar(element):
        return True
    if isinstance(element, np.ndarray):  # of strings, say
        return element.ndim == 0
    return is_array_like(element) and get_aval(element).ndim == 0


def iterable(y: Any) -> bool:
    """Whether `iter` takes the argument."""
    try:
        iter(y)
    except TypeError:
        return False
    return True
