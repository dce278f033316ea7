"""NumPy arrays that a function meets while it is traced: one constant of its program each, however often used."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from corejax.extend import Array, as_array, config, get_aval, host_value
from corejax.extend.transforms import recording_trace

__all__ = ["asarray"]

# id of a NumPy array -> the constant made of it, as long as some program or trace holds that.
_copies: WeakValueDictionary[int, Array] = WeakValueDictionary()


def asarray(x: Any) -> Any:
    """`x` as an array; tracers stay as they are, Python scalars become weakly typed arrays.

    A NumPy array is copied, since it may be written to later, and 32 bits wide under `config.x64_compat`. While a
    program is recorded, the same one gives the same array again (unless it was written to in between), so that it is
    one constant of the program.

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
    # By value, too: `x` may have been written to, or be another array in the place of one that is gone.
    if known is not None and known.aval is get_aval(x) and host_value(known).tobytes() == x.tobytes():
        return known
    _copies[id(x)] = copy = as_array(x)
    return copy
