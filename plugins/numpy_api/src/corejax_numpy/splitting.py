"""One array made several: parts along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Tracer
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, canonical_axis, static_int

Sections = int | Sequence[int]


def split(ary: Any, indices_or_sections: Sections, axis: int = 0) -> list[Any]:
    """An array cut into parts along an axis.

    Args:
        ary: the array.
        indices_or_sections: a number of equal parts, or the indices at which parts begin.
        axis: the axis.

    Raises:
        ValueError: the axis does not divide into that many equal parts.
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Sections, axis: int = 0) -> list[Any]:
    """As `split`; where the axis does not divide evenly the first parts are longer by one."""
    return _split("array_split", ary, indices_or_sections, axis, evenly=False)


def hsplit(ary: Any, indices_or_sections: Sections) -> list[Any]:
    """As `split`, along the second axis (the only one of a vector)."""
    x = array_argument("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Sections) -> list[Any]:
    """As `split`, along the first axis."""
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Sections) -> list[Any]:
    """As `split`, along the third axis."""
    return _split("dsplit", ary, indices_or_sections, 2)


def _split(name: str, ary: Any, indices_or_sections: Any, axis: int, evenly: bool = True) -> list[Any]:
    x = array_argument(name, ary)
    axis = canonical_axis(axis, x.ndim, name=name)
    size = x.shape[axis]
    if lax.is_several(indices_or_sections) and not isinstance(indices_or_sections, set | frozenset | dict):
        cuts = [static_int(name, i, "indices_or_sections") for i in indices_or_sections]
        cuts = [max(0, min(size, i + size if i < 0 else i)) for i in cuts]
    else:
        cuts = _cuts(name, size, indices_or_sections, axis, evenly)
    bounds = list(zip([0, *cuts], [*cuts, size], strict=True))
    if all(start <= stop for start, stop in bounds):
        return list(lax.split(x, [stop - start for start, stop in bounds], axis))
    return [lax.slice_in_dim(x, start, max(start, stop), axis=axis) for start, stop in bounds]


def _cuts(name: str, size: int, number: Any, axis: int, evenly: bool) -> list[int]:
    try:
        sections = static_int(name, number, "indices_or_sections")
    except TypeError:
        if isinstance(number, Tracer):
            raise
        raise TypeError(f"{name}: a number of parts or indices at which they begin, got {number!r}") from None
    if sections <= 0:
        raise ValueError(f"{name}: the number of parts is positive, got {sections}")
    part, longer = divmod(size, sections)
    if evenly and longer:
        raise ValueError(
            f"{name}: axis {axis} of size {size} does not divide into {sections} equal parts; see array_split"
        )
    return [i * part + min(i, longer) for i in range(1, sections)]


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The elements along an axis, one array each.

    Raises:
        ValueError: the array has no axis, or not that one.
    """
    x = array_argument("unstack", x)
    axis = canonical_axis(axis, x.ndim, name="unstack")
    return lax.unstack(x, axis)
