"""`corejax.experimental.pjit`: the former name of `jit` with shardings."""

from corejax import jit as pjit

__all__ = ["pjit"]
