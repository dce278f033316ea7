"""`corejax.experimental.pjit`: the name that `jit` had where it was told shardings."""

from corejax import jit as pjit

__all__ = ["pjit"]
