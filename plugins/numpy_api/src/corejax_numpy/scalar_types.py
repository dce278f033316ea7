"""Scalar types: `corejax.numpy.float32` stands for a dtype, and creates arrays of this dtype when called."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes


class ScalarType(type):
    """The type of scalar types, which are called as NumPy's: `float32(x)` is `asarray(x, float32)`, also while tracing.

    A scalar type is equal to NumPy's scalar type and to the dtype, and can be passed as a dtype. NumPy's scalars of
    the type are its instances; arrays are instances of `Array`.

    Attributes:
        dtype: the NumPy dtype; for `int_`, `float_` and so on the current default dtype.
    """

    _find: Callable[[], np.dtype[Any]]

    @property
    def dtype(cls) -> np.dtype[Any]:
        """The NumPy dtype."""
        return cls._find()

    __numpy_dtype__ = dtype  # the attribute that NumPy 2.4 looks up

    def __call__(cls, x: Any = 0, /, *more: Any) -> Any:
        """Return `x` as an array of the dtype."""
        from corejax_numpy.creation import asarray

        if more:
            raise TypeError(f"{cls.__name__} takes one value, an array or a number, got {1 + len(more)}")
        return asarray(_parse_number(x, cls) if isinstance(x, str) else x, cls.dtype)

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


def _parse_number(text: str, kind: ScalarType) -> complex:
    """Parse a number in a string as Python does: `float32("nan")`.

    Raises:
        TypeError: the dtype is boolean.
        ValueError: the string is not a number of this kind.
    """
    if dtypes.is_bool(kind.dtype):
        raise TypeError(f"{kind.__name__}: a string cannot be converted to a boolean, got {text!r}")
    read = int if dtypes.is_integer(kind.dtype) else complex if dtypes.is_complex(kind.dtype) else float
    try:
        return read(text)
    except ValueError:
        raise ValueError(f"{kind.__name__}: {text!r} cannot be parsed as a number of this kind") from None


def _scalar_type(name: str, find: Callable[[], np.dtype[Any]], doc: str) -> ScalarType:
    return ScalarType(name, (), {"_find": staticmethod(find), "__module__": "corejax.numpy", "__doc__": doc})


def _fixed(name: str) -> ScalarType:
    dtype = dtypes.dtype(name)
    return _scalar_type(name, lambda: dtype, f"The dtype {name}; a call creates an array of this dtype.")


def _default(name: str, find: Callable[[], np.dtype[Any]]) -> ScalarType:
    return _scalar_type(name, find, "The default dtype of its kind, 32 or 64 bits wide depending on the settings.")


# Define `float32` and so on: a name for every dtype of the installed release of ml_dtypes, and `bool`.
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
