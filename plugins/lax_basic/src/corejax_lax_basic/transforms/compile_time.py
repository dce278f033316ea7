"""Evaluation while a function is traced: what does not depend on traced values is computed now, and not recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, Trace, Tracer, bottom_trace, current_trace, new_main
from corejax.extend.messages import Restoring


class CompileTimeTrace(Trace):
    """Evaluates what has no tracers among its operands, and gives the rest to the trace around it.

    Attributes:
        around: the trace that was on top.
    """

    __slots__ = ("around",)

    interpreter = "compile-time evaluation"

    def __init__(self, around: Trace) -> None:
        super().__init__(bottom_trace())
        self.around = around

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Evaluate, or pass on."""
        target = self.around if any(isinstance(x, Tracer) for x in args) else bottom_trace()
        return target.process_primitive(primitive, args, params)


def ensure_compile_time_eval() -> Restoring:
    """Compute what is known while a function is traced, for a `with` block: operations on arrays give arrays.

    What depends on traced values is traced as always. As a `with` block in a function under `jit` it makes tables, or
    decides on shapes, by `corejax.numpy`.
    """
    return new_main(CompileTimeTrace(current_trace()))
