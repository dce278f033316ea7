"""`corejax.scipy.integrate`: integrate samples."""

from __future__ import annotations

from typing import Any

import corejax.numpy as _jnp

__all__ = ["trapezoid"]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate along an axis by the trapezoidal rule, as `corejax.numpy.trapezoid` does.

    Args:
        y: the values.
        x: the points of the values; by default equidistant.
        dx: the distance of the points if `x` is None.
        axis: the axis to integrate along.
    """
    return _jnp.trapezoid(y, x, dx=dx, axis=axis)
