"""`corejax.nn.initializers`: functions `(key, shape, dtype)` that make parameters.

Those that draw random numbers come with `corejax.random`.
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
    found = None if name.startswith("_") else _exported(f"nn.initializers.{name}")
    if found is None:
        raise _missing_name(f"nn.initializers.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    exports = _exported_names("nn.initializers")
    return sorted({*__all__, *exports, *(n for n in globals() if n.startswith("__"))})


class Initializer(Protocol):
    """What makes an array of a shape and dtype; `key` is where randomness would come from."""

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        """The array."""


def _floating(dtype: Any) -> Any:
    return dtypes.default_float_dtype() if dtype is None else dtype


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros, whatever the key; floating by default."""
    return _creation.zeros(shape, _floating(dtype), out_sharding=out_sharding)


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones, whatever the key; floating by default."""
    return _creation.ones(shape, _floating(dtype), out_sharding=out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """An initializer that gives `value` everywhere.

    Args:
        value: a scalar, or what broadcasts to the shapes that are asked for.
        dtype: the default dtype of what it gives; floating if None.
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        return _creation.full(shape, value, _floating(default if dtype is None else dtype), out_sharding=out_sharding)

    return init
