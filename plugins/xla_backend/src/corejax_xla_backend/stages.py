"""`corejax.stages`: the steps of compilation, as `jit(f).trace(...)`, `.lower()` and `.compile()` give them."""

from __future__ import annotations

from corejax_xla_backend._jit.stages import ArgInfo as ArgInfo
from corejax_xla_backend._jit.stages import Compiled as Compiled
from corejax_xla_backend._jit.stages import Lowered as Lowered
from corejax_xla_backend._jit.stages import Traced as Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced"]
