"""`corejax.scipy.signal`: convolutions, trends and spectra of signals.

This module is a table of names; the functions are in `corejax_scipy.signals`.
"""

from __future__ import annotations

from corejax_lax_basic import lax as _lax

_MODULES = {
    "signals.convolution": """
        convolve convolve2d correlate correlate2d fftconvolve
    """,
    "signals.spectra": """
        csd istft stft welch
    """,
    "signals.trends": """
        detrend
    """,
}

__getattr__, __dir__, __all__ = _lax.lazy_names("scipy.signal", "corejax_scipy", _MODULES, globals())
