"""`corejax.scipy.cluster`: clusters of points."""

from __future__ import annotations

from corejax_scipy.cluster import vq

__all__ = ["vq"]
