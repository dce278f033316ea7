"""NumPy arrays in traced functions: each becomes one constant of the program, however often it is used."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from corejax.extend import Array, as_array, config, get_aval, host_value
from corejax.extend.transforms import recording_trace

__all__ = ["asarray"]

# id of a NumPy array -> its constant, as long as a program or trace refers to the constant.
_copies: WeakValueDictionary[int, Array] = WeakValueDictionary()


def asarray(x: Any) -> Any:
    """Return `x` as an array; tracers stay unchanged, Python scalars become weakly typed arrays.

    A NumPy array is copied, because it may be modified later; under `config.x64_compat` it becomes 32 bits wide. While
    a program is recorded, the same NumPy array gives the same array again (unless it was modified in between), so that
    it is one constant of the program.

    Raises:
        TypeError: `x` is not an array.
    """
    if type(x) is not np.ndarray:
        return as_array(x)
    if config.x64_compat:
        x = host_value(x)
    if recording_trace() is None:
        return as_array(x)
    known = _copies.get(id(x))
    # Compare values: `x` may have been modified, or have the id of an array that was freed.
    if known is not None and known.aval is get_aval(x) and host_value(known).tobytes() == x.tobytes():
        return known
    _copies[id(x)] = copy = as_array(x)
    return copy
