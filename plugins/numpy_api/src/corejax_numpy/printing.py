"""Text representations of arrays; NumPy's print options apply."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import get_printoptions as get_printoptions
from numpy import printoptions as printoptions
from numpy import set_printoptions as set_printoptions

from corejax.extend import Array, host_value
from corejax_numpy.arguments import array_argument


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """Return the string representation of an array, such as `Array([1., 2.], dtype=float32)`.

    Args:
        arr: an array.
        max_line_width: maximum number of characters per line; by default the print option `linewidth`.
        precision: number of decimals; by default the print option `precision`.
        suppress_small: whether numbers that round to zero are printed as zero; by default the print option `suppress`.
    """
    x = array_argument("array_repr", arr)
    if type(x) is not Array:
        return repr(x)
    changed: dict[str, Any] = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{name: value for name, value in changed.items() if value is not None}):
        return repr(x)


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """Return a string representation of an array's values; arguments as for `array_repr`."""
    x = array_argument("array_str", a)
    if type(x) is not Array:
        return str(x)
    return np.array_str(host_value(x), max_line_width, precision, suppress_small)
