"""Matrices of int8 numbers with a scale for each column: a quarter of the memory of float32.

A quantised matrix is one value in programs, of a type of its own. Its tangents and cotangents are plain matrices: for
derivatives, quantisation counts as the identity (the straight-through estimator of Bengio, Leonard and Courville,
"Estimating or propagating gradients through stochastic neurons for conditional computation", 2013).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, add_tangents, dtypes, jvp_rules, tree
from corejax.extend.types import ValueType

__all__ = ["QuantisedMatrix", "quantise"]


class Quantised(ValueType):
    """The type of quantised matrices; leading axes are batches."""

    def parts(self) -> tuple[ShapedArray, ...]:
        """Return the types of the int8 numbers and of the scales, one for each column."""
        *batch, _, columns = self.shape
        return ShapedArray(self.shape, "int8"), ShapedArray((*batch, 1, columns), self.dtype)

    def tangent_type(self) -> ShapedArray:
        """Return the type of plain matrices."""
        return ShapedArray(self.shape, self.dtype)


def _quantise(x: Any) -> Any:
    """Round a matrix to int8 numbers times a scale for each column."""
    import corejax.numpy as jnp
    from corejax.lax import pack

    if x.ndim < 2 or not dtypes.is_float(x.dtype):
        raise TypeError(f"quantised.quantise takes a matrix of floating-point numbers, got {x.aval.str_short()}")
    largest = jnp.max(jnp.abs(x), axis=-2, keepdims=True, initial=0)
    scale = jnp.where(largest > 0, largest, 1).astype(x.dtype) / 127
    return pack(Quantised(x.shape, x.dtype), jnp.round(x / scale).astype("int8"), scale)


def _dequantise(q: Any) -> Any:
    """Return the matrix of floating-point numbers that a quantised matrix stands for."""
    from corejax.lax import unpack

    numbers, scale = unpack(q)
    return numbers.astype(scale.dtype) * scale


def _matmul(x: Any, q: Any) -> Any:
    """Multiply by a quantised matrix, x @ q; the scales are applied to the product, and not to the matrix."""
    import corejax.numpy as jnp
    from corejax.lax import unpack

    numbers, scale = unpack(q)
    if x.dtype != scale.dtype or q.ndim != 2:
        raise TypeError(f"quantised.matmul takes operands of one dtype, got {x.aval.str_short()} and {q.aval}")
    return jnp.matmul(x, numbers.astype(x.dtype)) * scale[0]


quantise_p = Primitive("quantised.quantise", decomposition=_quantise)
dequantise_p = Primitive("quantised.dequantise", decomposition=_dequantise)
matmul_p = Primitive("quantised.matmul", decomposition=_matmul)


@jvp_rules.register(quantise_p)
def _quantise_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    return quantise_p.bind(*primals), tangents[0]


@jvp_rules.register(dequantise_p)
def _dequantise_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    return dequantise_p.bind(*primals), tangents[0]


@jvp_rules.register(matmul_p, symbolic_zeros=True)
def _matmul_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (x, q), (x_dot, q_dot) = primals, tangents
    first = None if x_dot is None else matmul_p.bind(x_dot, q)
    second = None if q_dot is None else x @ q_dot
    return matmul_p.bind(x, q), add_tangents(first, second)


@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class QuantisedMatrix:
    """A quantised matrix with its operators: what users hold, also in functions that are traced.

    Attributes:
        value: a value of the type `Quantised`, concrete or traced.
    """

    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix."""
        return tuple(self.value.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers that it stands for."""
        return self.value.dtype

    def dequantise(self) -> Any:
        """Return the matrix of floating-point numbers."""
        return dequantise_p.bind(self.value)

    def __rmatmul__(self, x: Any) -> Any:
        import corejax.numpy as jnp

        return matmul_p.bind(jnp.asarray(x), self.value)

    def __repr__(self) -> str:
        return f"QuantisedMatrix({self.value.aval})"


def quantise(x: Any) -> QuantisedMatrix:
    """Quantise a matrix.

    Args:
        x: matrix of floating-point numbers, shape (..., k, n).

    Returns:
        A quantised matrix of that shape; each of its numbers differs from that of `x` by at most 1/254 of the largest
        absolute value in its column.

    Raises:
        TypeError: `x` is not a matrix of floating-point numbers.
    """
    import corejax.numpy as jnp

    return QuantisedMatrix(quantise_p.bind(jnp.asarray(x)))
