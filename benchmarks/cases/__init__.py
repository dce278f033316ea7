"""The cases: the same work written for corejax and for jax, and the ratio that the project wants."""

from cases import basic, callbacks, compiled, custom, draws, large, loops, matrices, models, parallel, small, special
from cases.registry import CASES, Case

__all__ = [
    "CASES", "Case", "basic", "callbacks", "compiled", "custom", "draws", "large", "loops", "matrices", "models",
    "parallel", "small", "special",
]  # fmt: skip
