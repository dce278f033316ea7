"""Dtypes as names: `corejax.numpy.float32` stands for a dtype and makes arrays of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes


class ScalarType:
    """A dtype that is called like NumPy's scalar types: `float32(x)` is `asarray(x, float32)`, also while tracing.

    Attributes:
        dtype: the NumPy dtype.
    """

    __slots__ = ("dtype",)

    dtype: np.dtype[Any]

    def __init__(self, name: str) -> None:
        self.dtype = dtypes.dtype(name)

    def __call__(self, x: Any = 0) -> Any:
        from corejax_numpy.creation import asarray

        return asarray(x, self.dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScalarType):
            return self.dtype == other.dtype
        return isinstance(other, np.dtype | type | str) and bool(self.dtype == other)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"corejax.numpy.{'bool_' if self.dtype.name == 'bool' else self.dtype.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (ScalarType, (self.dtype.name,))


bool_ = ScalarType("bool")
int4 = ScalarType("int4")
int8 = ScalarType("int8")
int16 = ScalarType("int16")
int32 = ScalarType("int32")
int64 = ScalarType("int64")
uint4 = ScalarType("uint4")
uint8 = ScalarType("uint8")
uint16 = ScalarType("uint16")
uint32 = ScalarType("uint32")
uint64 = ScalarType("uint64")
bfloat16 = ScalarType("bfloat16")
float8_e4m3fn = ScalarType("float8_e4m3fn")
float8_e5m2 = ScalarType("float8_e5m2")
float16 = ScalarType("float16")
float32 = ScalarType("float32")
float64 = ScalarType("float64")
complex64 = ScalarType("complex64")
complex128 = ScalarType("complex128")
