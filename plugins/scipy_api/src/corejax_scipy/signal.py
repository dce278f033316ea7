"""`corejax.scipy.signal`: convolutions, trends and spectra of signals.

A table of names; the functions are written in `corejax_scipy.signals`.
"""

from __future__ import annotations

from corejax_scipy._namespace import lazy_names as _lazy_names

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

__getattr__, __dir__, __all__ = _lazy_names("scipy.signal", _MODULES, globals())
