"""`corejax.nn`: activation functions and what classifiers are made of.

A table of names; the functions are written in the modules that they stand beside.
"""

from __future__ import annotations

from corejax_numpy._namespace import lazy_names as _lazy_names

_MODULES = {
    "nn.activations": """
        elu gelu leaky_relu log_sigmoid relu sigmoid silu softplus swish=silu tanh
    """,
    "nn.classes": """
        log_softmax logsumexp one_hot softmax
    """,
}

__getattr__, __dir__, __all__ = _lazy_names("nn", _MODULES, globals())
