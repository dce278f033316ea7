"""`corejax.scipy.sparse`: solvers of linear equations that use only products with a matrix."""

from __future__ import annotations

from corejax_scipy.sparse import linalg

__all__ = ["linalg"]
