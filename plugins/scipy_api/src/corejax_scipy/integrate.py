"""`corejax.scipy.integrate`: integrals of samples."""

from __future__ import annotations

from typing import Any

import corejax.numpy as _jnp

__all__ = ["trapezoid"]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule: `corejax.numpy.trapezoid`.

    Args:
        y: values.
        x: where they are; by default equidistant.
        dx: the distance, without `x`.
        axis: the axis.
    """
    return _jnp.trapezoid(y, x, dx=dx, axis=axis)
