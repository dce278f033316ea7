"""`corejax.nn.initializers`: functions `(key, shape, dtype)` that create initial parameters.

The initializers that draw random numbers are exported by the plugin of `corejax.random`.
"""

from __future__ import annotations

from typing import Any, Protocol

from corejax.extend import dtypes
from corejax.extend.plugins import exported as _exported
from corejax.extend.plugins import exported_names as _exported_names
from corejax.extend.plugins import missing_name as _missing_name
from corejax_numpy import creation as _creation

__all__ = ["Initializer", "constant", "ones", "zeros"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # never exported by a plugin
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    initializer = _exported(f"nn.initializers.{name}")
    if initializer is None:
        raise _missing_name(f"nn.initializers.{name}")
    globals()[name] = initializer
    return initializer


def __dir__() -> list[str]:
    exports = _exported_names("nn.initializers")
    return sorted({*__all__, *exports, *(n for n in globals() if n.startswith("__"))})


class Initializer(Protocol):
    """A function that creates an array of a shape and dtype; `key` is the key of random initializers."""

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        """Return an array of initial values."""


def _floating(dtype: Any) -> Any:
    return dtypes.default_float_dtype() if dtype is None else dtype


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Return zeros, of the default floating dtype unless `dtype` is given; the key is ignored."""
    return _creation.zeros(shape, _floating(dtype), out_sharding=out_sharding)


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Return ones, of the default floating dtype unless `dtype` is given; the key is ignored."""
    return _creation.ones(shape, _floating(dtype), out_sharding=out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Return an initializer that fills arrays with `value`.

    Args:
        value: a scalar, or an array that broadcasts to the requested shapes.
        dtype: dtype of the result if a call gives none; None stands for the default floating dtype.
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        return _creation.full(shape, value, _floating(default if dtype is None else dtype), out_sharding=out_sharding)

    return init
