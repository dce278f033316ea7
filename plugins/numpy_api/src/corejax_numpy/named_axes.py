"""Names of mapped axes (`vmap(axis_name="i")`) among the axes of a reduction; collectives reduce over these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend.messages import called_function
from corejax.extend.transforms import axis_size_of
from corejax_lax_basic import lax
from corejax_numpy.arguments import to_bool

_COLLECTIVES = {
    "reduce_sum": "psum",
    "reduce_max": "pmax",
    "reduce_min": "pmin",
    "reduce_or": "pmax",
    "reduce_and": "pmin",
}


def split_axes(axis: Any) -> tuple[Any, tuple[str, ...]]:
    """Split the argument `axis` into positional axes, in the form given, and names."""
    if isinstance(axis, str):
        return (), (axis,)
    if not isinstance(axis, (tuple, list)):
        return axis, ()
    names = tuple([a for a in axis if isinstance(a, str)])
    return (tuple([a for a in axis if not isinstance(a, str)]), names) if names else (axis, ())


def reduce_over_names(name: str, fold: str, x: Any, names: tuple[str, ...]) -> Any:
    """Reduce an array, which is reduced over positional axes already, over mapped axes.

    Args:
        name: the function, for messages.
        fold: name of the primitive that reduces over positional axes.
        x: the array.
        names: the names of the mapped axes.

    Raises:
        NameError: no mapped axis in scope has such a name.
        NotImplementedError: no collective computes this reduction.
    """
    if fold not in _COLLECTIVES:
        raise NotImplementedError(f"{name}: not supported over mapped axes, got the names {names}")
    _sizes(name, names)
    collective = getattr(lax, _COLLECTIVES[fold])
    if x.dtype != bool:
        return collective(x, names)
    return to_bool(collective(lax.convert_element_type(x, np.int32), names))


def elements_along(name: str, shape: tuple[int, ...], axes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    """Return the number of elements that are reduced to one.

    Raises:
        NameError: no mapped axis in scope has such a name.
    """
    return math.prod([*(shape[d] for d in axes), *_sizes(name, names)])


def _sizes(name: str, names: tuple[str, ...]) -> list[int]:
    called = (called_function() or name) if names else name
    return [axis_size_of(axis_name, called) for axis_name in names]
