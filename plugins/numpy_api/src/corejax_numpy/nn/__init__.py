"""`corejax.nn`: activation functions, attention, and functions for classification.

This module is a table of names. The modules beside it define the functions, and are imported on first use.
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

# A Python float among the arguments influences only the promotion, so its value is not part of the cache key.
_FLOAT_OPERANDS = "celu elu leaky_relu standardize"

__getattr__, __dir__, __all__ = _lazy_names("nn", _MODULES, globals(), _COMPOSITE, numbers=_FLOAT_OPERANDS)
