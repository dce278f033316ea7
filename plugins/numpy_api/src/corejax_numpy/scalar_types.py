"""Dtypes as names: `corejax.numpy.float32` stands for a dtype and makes arrays of it."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes


class ScalarType(type):
    """A dtype that is called like NumPy's scalar types: `float32(x)` is `asarray(x, float32)`, also while tracing.

    It equals NumPy's scalar type and the dtype, stands for them wherever a dtype is expected, and has NumPy's scalars
    of the type as instances; arrays are instances of `Array`.

    Attributes:
        dtype: the NumPy dtype; of `int_`, `float_` and so on the one that is the default now.
    """

    _find: Callable[[], np.dtype[Any]]

    @property
    def dtype(cls) -> np.dtype[Any]:
        """The NumPy dtype."""
        return cls._find()

    __numpy_dtype__ = dtype  # what NumPy 2.4 asks for

    def __call__(cls, x: Any = 0, /, *more: Any) -> Any:
        from corejax_numpy.creation import asarray

        if more:
            raise TypeError(f"{cls.__name__} takes one value, an array or a number, got {1 + len(more)}")
        return asarray(_number_written(x, cls) if isinstance(x, str) else x, cls.dtype)

    def __instancecheck__(cls, instance: Any) -> builtins.bool:
        return isinstance(instance, cls.dtype.type)

    def __eq__(cls, other: object) -> builtins.bool:
        if isinstance(other, ScalarType):
            return cls.dtype == other.dtype
        return isinstance(other, np.dtype | type) and builtins.bool(cls.dtype.type == other)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"corejax.numpy.{cls.__name__}"


def _number_written(text: str, kind: ScalarType) -> complex:
    """The number that a text says, as Python reads it: `float32("nan")`.

    Raises:
        TypeError: the dtype is that of booleans.
        ValueError: it says none of this kind.
    """
    if dtypes.is_bool(kind.dtype):
        raise TypeError(f"{kind.__name__}: a text is neither true nor false, got {text!r}")
    read = int if dtypes.is_integer(kind.dtype) else complex if dtypes.is_complex(kind.dtype) else float
    try:
        return read(text)
    except ValueError:
        raise ValueError(f"{kind.__name__}: {text!r} is not written as a number of this kind") from None


def _scalar_type(name: str, find: Callable[[], np.dtype[Any]], doc: str) -> ScalarType:
    return ScalarType(name, (), {"_find": staticmethod(find), "__module__": "corejax.numpy", "__doc__": doc})


def _fixed(name: str) -> ScalarType:
    found = dtypes.dtype(name)
    return _scalar_type(name, lambda: found, f"The dtype {name}; called, it makes an array of that dtype.")


def _default(name: str, find: Callable[[], np.dtype[Any]]) -> ScalarType:
    return _scalar_type(name, find, "The default dtype of its kind, 32 or 64 bits wide by the settings.")


# `float32 = ...`, and so on: all dtypes that the installed release of ml_dtypes has. `bool` is one of them here.
globals().update({name: _fixed(name) for name in dtypes.LONG_NAMES})

bool_ = globals()["bool"]
single = globals()["float32"]
double = globals()["float64"]
csingle = globals()["complex64"]
cdouble = globals()["complex128"]

int_ = _default("int_", dtypes.default_int_dtype)
uint = _default("uint", dtypes.default_uint_dtype)
float_ = _default("float_", dtypes.default_float_dtype)
complex_ = _default("complex_", dtypes.default_complex_dtype)
