"""Parts of arrays that are NumPy views, computed without a primitive.

A view costs less than binding a primitive. It is taken only if no trace, observer or check would see the primitive
(`host_of` does not return None), so that the result is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray
from corejax.extend.devices import checks_values
from corejax.extend.messages import observe
from corejax.extend.speed import bottom, state


def host_of(x: Any) -> Any:
    """Return the NumPy array of an `Array` if an operation on it would be evaluated unobserved; else None."""
    if type(x) is not Array or state.trace is not bottom or observe.watched or checks_values():
        return None
    return x._host


def part_of(x: Array, value: Any) -> Array:
    """Return a NumPy array or scalar as an `Array`; weakly typed if `x` is."""
    value = np.asarray(value)
    return Array(value, ShapedArray(value.shape, x.aval.dtype, x.aval.weak_type))
