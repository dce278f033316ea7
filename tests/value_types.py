"""Value types that several test files share."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax import lax
from corejax.extend import ShapedArray
from corejax.extend.types import ValueType


class Symmetric(ValueType):
    """Symmetric matrices as upper triangles: numbers in an array of another rank, and their own tangents."""

    def parts(self) -> tuple[ShapedArray, ...]:
        *batch, n, _ = self.shape
        return (ShapedArray((*batch, n * (n + 1) // 2), self.dtype),)


class Columns(ValueType):
    """Matrices of int8 numbers with a scale for each column, with plain matrices as tangents."""

    def parts(self) -> tuple[ShapedArray, ...]:
        *batch, _, n = self.shape
        return ShapedArray(self.shape, "int8"), ShapedArray((*batch, 1, n), self.dtype)

    def tangent_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype)


def symmetric(x: Any) -> Any:
    i, j = np.triu_indices(x.shape[-1])
    return lax.pack(Symmetric(x.shape, x.dtype), x[..., i, j])


def dense(s: Any) -> Any:
    (triangle,) = lax.unpack(s)
    i, j = np.triu_indices(s.shape[-1])
    return jnp.zeros(s.shape, s.dtype).at[..., i, j].set(triangle).at[..., j, i].set(triangle)


def rounded(x: Any) -> Any:
    scale = jnp.max(jnp.abs(x), axis=-2, keepdims=True) / 127
    return lax.pack(Columns(x.shape, x.dtype), jnp.round(x / scale).astype("int8"), scale)


def numbers_in(q: Any) -> Any:
    numbers, scale = lax.unpack(q)
    return numbers.astype(scale.dtype) * scale


class Stacked(ValueType):
    """Two arrays, the second with an axis in front of those of the value."""

    def parts(self) -> tuple[ShapedArray, ...]:
        return ShapedArray(self.shape, self.dtype), ShapedArray((2, *self.shape), self.dtype)

    def part_axes(self, axis: int) -> tuple[int, ...]:
        return axis, axis + 1


def matrix(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))
