"""Methods of arrays and tracers that are functions of `corejax.numpy`, with the array as what they work on.

A method has NumPy's parameters in NumPy's order; the function is imported when the method is first called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corejax_numpy import numpy as jnp

# -- sorting and searching ---------------------------------------------------------------------------------------


def sort(
    self: Any,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """A sorted copy along an axis; None: of the flattened array."""
    return jnp.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def argsort(
    self: Any,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """Indices that sort along an axis; None: the flattened array."""
    return jnp.argsort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def argpartition(self: Any, kth: int, axis: int = -1) -> Any:
    """Indices that bring the element of rank `kth` to its place, smaller ones before it, larger ones after it."""
    return jnp.argpartition(self, kth, axis)


def searchsorted(self: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Any:
    """Where to insert values into the sorted array."""
    return jnp.searchsorted(self, v, side, sorter, method=method)


def nonzero(self: Any, *, fill_value: Any = None, size: int | None = None) -> Any:
    """Indices of elements that are not zero, an array for each axis; `size` says how many, to be traced."""
    return jnp.nonzero(self, size=size, fill_value=fill_value)


# -- picking elements --------------------------------------------------------------------------------------------


def take(
    self: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Elements at indices along an axis; None: in the flattened array."""
    return jnp.take(
        self,
        indices,
        axis,
        out,
        mode,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        fill_value=fill_value,
    )


def choose(self: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Elements of the arrays `choices`, each of the one that the element of this array says."""
    return jnp.choose(self, choices, out, mode)


def compress(
    self: Any,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """Slices along an axis where a vector of booleans is true; None: elements of the flattened array."""
    return jnp.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def repeat(
    self: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """Each element several times, along an axis or in the flattened array."""
    return jnp.repeat(self, repeats, axis, total_repeat_length=total_repeat_length, out_sharding=out_sharding)


def diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Diagonals of the matrices in two axes, as the last axis."""
    return jnp.diagonal(self, offset, axis1, axis2)


# -- numbers -----------------------------------------------------------------------------------------------------


def trace(self: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Any:
    """Sums of the diagonals of the matrices in two axes."""
    return jnp.trace(self, offset, axis1, axis2, dtype, out)


def ptp(self: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Distance between the largest and the smallest element over axes."""
    return jnp.ptp(self, axis, out, keepdims)


# -- bits --------------------------------------------------------------------------------------------------------


def view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The same bytes taken for another dtype; where its items are wider or narrower, the last axis is another size.

    Raises:
        NotImplementedError: `type` is given: arrays have one class.
        ValueError: the bytes of the last axis are no whole number of items of the dtype.
    """
    from corejax_numpy.bits import view

    if type is not None:
        raise NotImplementedError(f"view: arrays have one class, type is None, got {type!r}")
    return view(self, dtype)


def byteswap(self: Any) -> Any:
    """The elements with their bytes in reverse order."""
    from corejax_numpy.bits import byteswap

    return byteswap(self)


def array_namespace(self: Any, /, *, api_version: str | None = None) -> Any:
    """`corejax.numpy`, for code that is written against the Array API standard.

    Raises:
        ValueError: a version of the standard that is not supported.
    """
    if api_version not in (None, "2021.12", "2022.12", "2023.12", jnp.__array_api_version__):
        raise ValueError(
            f"__array_namespace__: api_version is {jnp.__array_api_version__!r} or an earlier one, got {api_version!r}"
        )
    return jnp


METHODS: Mapping[str, Any] = {
    **{f.__name__: f for f in (sort, argsort, argpartition, searchsorted, nonzero)},
    **{f.__name__: f for f in (take, choose, compress, repeat, diagonal, trace, ptp, view, byteswap)},
    "__array_namespace__": array_namespace,
}
