"""How arrays are written: NumPy's options, which hold for this library's arrays as well."""

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
    """The text of an array that says what it is, `Array([1., 2.], dtype=float32)`.

    Args:
        arr: an array.
        max_line_width: where lines break; by default the option `linewidth`.
        precision: digits after the point; by default the option `precision`.
        suppress_small: write numbers that round to zero as zero; by default the option `suppress`.
    """
    x = array_argument("array_repr", arr)
    if type(x) is not Array:
        return repr(x)
    changed = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{name: value for name, value in changed.items() if value is not None}):  # type: ignore[arg-type]
        return repr(x)


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The text of an array's values; arguments as of `array_repr`."""
    x = array_argument("array_str", a)
    if type(x) is not Array:
        return str(x)
    return np.array_str(host_value(x), max_line_width, precision, suppress_small)
