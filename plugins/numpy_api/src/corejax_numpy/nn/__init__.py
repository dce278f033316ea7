"""`corejax.nn`: activation functions and what classifiers are made of.

A table of names; the functions are written in the modules that they stand beside.
"""

from __future__ import annotations

from corejax_numpy._namespace import lazy_names as _lazy_names
from corejax_numpy.nn import initializers as initializers

_MODULES = {
    "nn.activations": """
        celu elu gelu glu hard_sigmoid hard_silu hard_swish=hard_silu hard_tanh identity leaky_relu log1mexp
        log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus
        swish=silu tanh
    """,
    "nn.attention": """
        dot_product_attention
    """,
    "nn.scaled_products": """
        get_scaled_dot_general_config scaled_dot_general scaled_matmul
    """,
    "nn.classes": """
        log_softmax logmeanexp logsumexp one_hot softmax standardize
    """,
}

_COMPOSITE = """
    celu dot_product_attention elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log1mexp
    log_sigmoid log_softmax logmeanexp logsumexp mish one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus
    sparse_plus sparse_sigmoid squareplus standardize swish
"""

# Nothing but promotion depends on a float among their arguments.
_OF_NUMBERS = "celu elu leaky_relu standardize"

__getattr__, __dir__, __all__ = _lazy_names("nn", _MODULES, globals(), _COMPOSITE, numbers=_OF_NUMBERS)
