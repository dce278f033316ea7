"""`corejax.scipy.spatial`: rotations in space."""

from __future__ import annotations

from corejax_scipy.spatial import transform

__all__ = ["transform"]
