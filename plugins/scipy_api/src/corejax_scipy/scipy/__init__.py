"""`corejax.scipy`: SciPy's functions for arrays that can be differentiated, vectorised and compiled."""

from __future__ import annotations

from corejax_lax_basic import lax as _lax

__getattr__, __dir__, __all__ = _lax.lazy_names("scipy", "corejax_scipy", {}, globals())
