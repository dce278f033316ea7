"""`corejax.stages`: the stages of compilation that `jit(f).trace(...)`, `.lower()` and `.compile()` return."""

from __future__ import annotations

from collections.abc import Mapping

from corejax_xla_backend._jit.stages import ArgInfo as ArgInfo
from corejax_xla_backend._jit.stages import Compiled as Compiled
from corejax_xla_backend._jit.stages import Lowered as Lowered
from corejax_xla_backend._jit.stages import Traced as Traced
from corejax_xla_backend._jit.stages import Wrapped as Wrapped

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

CompilerOptions = Mapping[str, str | bool | int | float]
