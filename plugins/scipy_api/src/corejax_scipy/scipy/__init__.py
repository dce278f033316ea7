"""`corejax.scipy`: SciPy's functions for arrays that can be differentiated, vectorised and compiled."""

from __future__ import annotations

from corejax_scipy._namespace import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names("scipy", {}, globals())
