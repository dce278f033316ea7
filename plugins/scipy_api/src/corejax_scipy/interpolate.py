"""`corejax.scipy.interpolate`: interpolate values on a grid."""

from __future__ import annotations

import itertools as _itertools
import math as _math
from typing import Any as _Any

import corejax.numpy as _jnp
from corejax.extend import dtypes as _dtypes
from corejax.extend import tree as _tree
from corejax_scipy._arguments import array as _array
from corejax_scipy._arguments import increases as _increases
from corejax_scipy._arguments import inexact as _inexact
from corejax_scipy._arguments import one_of as _one_of

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """A function of several variables that interpolates values on a grid; a pytree.

    Args:
        points: for each variable the coordinates of the grid, an increasing vector of two numbers or more.
        values: the values on the grid; further axes are axes of the results.
        method: "linear" or "nearest".
        bounds_error: must be False, since compiled programs cannot raise errors about coordinates.
        fill_value: the result outside of the grid; None extrapolates.

    Raises:
        TypeError: an argument is not an array.
        ValueError: `method` is unknown, `points` do not match `values`, known `points` do not increase, or `fill_value`
            cannot be converted to the dtype of `values`.
        NotImplementedError: `bounds_error` is true.
    """

    def __init__(
        self,
        points: _Any,
        values: _Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: _Any = _math.nan,
    ) -> None:
        name = "RegularGridInterpolator"
        _one_of(name, method, "method", _METHODS)
        if bounds_error:
            raise NotImplementedError(f"{name}: bounds_error must be False; programs cannot raise errors")
        (self.values,) = _inexact(name, values)
        self.grid = tuple(_array(name, p, f"points[{i}]") for i, p in enumerate(points))
        if len(self.grid) > self.values.ndim:
            raise ValueError(f"{name}: points has {len(self.grid)} axes, but values has {self.values.ndim}")
        for i, p in enumerate(self.grid):
            if p.ndim != 1 or p.shape[0] != self.values.shape[i] or p.shape[0] < 2:
                raise ValueError(
                    f"{name}: points[{i}] must be a vector of 2 numbers or more, with the length "
                    f"{self.values.shape[i]} of axis {i} of values; got {p.aval.str_short()}"
                )
            if not _increases(p, strictly=True):
                raise ValueError(f"{name}: points[{i}] must increase strictly, got {p}")
        self.fill_value = None if fill_value is None else _array(name, fill_value, "fill_value")
        if self.fill_value is not None and _dtypes.is_complex(self.fill_value.dtype) > _dtypes.is_complex(
            self.values.dtype
        ):
            raise ValueError(
                f"{name}: fill_value of dtype {self.fill_value.dtype} does not fit values of dtype {self.values.dtype}"
            )
        self.method, self.bounds_error = method, bounds_error

    def __call__(self, xi: _Any, method: str | None = None) -> _Any:
        """Evaluate the interpolator at points.

        Args:
            xi: an array with a coordinate for each variable along its last axis, or a tuple of arrays of coordinates
                that broadcast.
            method: overrides the interpolator's method.

        Raises:
            ValueError: `method` is unknown, or the number of coordinates is not the number of variables.
        """
        chosen = self.method if method is None else method
        _one_of("RegularGridInterpolator", chosen, "method", _METHODS)
        points = self._coordinates(xi)
        shape = points.shape[:-1]
        flat = points.reshape(-1, len(self.grid))
        lower, part, outside = [], [], _jnp.zeros(flat.shape[:1], bool)
        for i, grid in enumerate(self.grid):
            x = flat[:, i]
            index = _jnp.clip(_jnp.searchsorted(grid, x) - 1, 0, grid.shape[0] - 2)
            lower.append(index)
            part.append((x - grid[index]) / (grid[index + 1] - grid[index]))
            outside = outside | (x < grid[0]) | (x > grid[-1])
        out = self._linear(lower, part) if chosen == "linear" else self._nearest(lower, part)
        if self.fill_value is not None:
            out = _jnp.where(outside.reshape(-1, *[1] * (out.ndim - 1)), self.fill_value, out)
        return out.reshape(*shape, *self.values.shape[len(self.grid) :])

    def _coordinates(self, xi: _Any) -> _Any:
        name = "RegularGridInterpolator"
        if isinstance(xi, tuple):
            xi = xi[0] if len(xi) == 1 else _jnp.stack(_jnp.broadcast_arrays(*_inexact(name, *xi)), axis=-1)
        points = _array(name, xi)
        if points.ndim < 2:
            points = points.reshape(-1, len(self.grid))
        if points.shape[-1] != len(self.grid):
            raise ValueError(
                f"{name}: the last axis of xi must have a coordinate for each of {len(self.grid)} variables, got "
                f"{points.aval.str_short()}"
            )
        return points

    def _linear(self, lower: list[_Any], part: list[_Any]) -> _Any:
        rest = self.values.ndim - len(lower)
        out: _Any = 0.0
        for corner in _itertools.product((0, 1), repeat=len(lower)):
            weight: _Any = 1.0
            for upper, p in zip(corner, part, strict=True):
                weight = weight * (p if upper else 1 - p)
            values = self.values[tuple(i + upper for i, upper in zip(lower, corner, strict=True))]
            out = out + values * weight.reshape(-1, *[1] * rest)
        return out

    def _nearest(self, lower: list[_Any], part: list[_Any]) -> _Any:
        index = tuple(_jnp.where(p <= 0.5, i, i + 1) for i, p in zip(lower, part, strict=True))
        return self.values[index]


def _flatten(f: RegularGridInterpolator) -> tuple[_Any, _Any]:
    return (f.grid, f.values, f.fill_value), (f.method, f.bounds_error)


def _unflatten(aux: _Any, children: _Any) -> RegularGridInterpolator:
    found = object.__new__(RegularGridInterpolator)
    found.grid, found.values, found.fill_value = children
    found.method, found.bounds_error = aux
    return found


_tree.register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)
