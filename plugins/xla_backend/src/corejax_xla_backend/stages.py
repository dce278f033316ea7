"""`corejax.stages`: the steps of compilation, as `jit(f).trace(...)`, `.lower()` and `.compile()` give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from corejax_xla_backend._jit.stages import ArgInfo as ArgInfo
from corejax_xla_backend._jit.stages import Compiled as Compiled
from corejax_xla_backend._jit.stages import Lowered as Lowered
from corejax_xla_backend._jit.stages import Traced as Traced

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

CompilerOptions = Mapping[str, str | bool | int | float]


class Wrapped(Protocol):
    """What `jit` gives, for annotations: a function that can be traced and lowered too."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; what is not compiled yet for such arguments is compiled first."""

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace it for such arguments, or types of them."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace it, and write the program for the compiler."""
