"""Evaluation while a function is traced: operations on concrete values are computed at once and not recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, Trace, Tracer, bottom_trace, current_trace, new_main
from corejax.extend.messages import Restoring


class CompileTimeTrace(Trace):
    """A trace that evaluates primitives without tracers among their operands, and passes others to the trace around it.

    Attributes:
        around: the trace that was on top.
    """

    __slots__ = ("around",)

    interpreter = "compile-time evaluation"

    def __init__(self, around: Trace) -> None:
        super().__init__(bottom_trace())
        self.around = around

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Evaluate a primitive, or pass it to the trace around."""
        target = self.around if any(isinstance(x, Tracer) for x in args) else bottom_trace()
        return target.process_primitive(primitive, args, params)


def ensure_compile_time_eval() -> Restoring:
    """Evaluate operations on concrete arrays at once while a function is traced, in a `with` block.

    Operations on traced values are traced as usual. In a function under `jit`, such a block computes tables, or decides
    on shapes, by `corejax.numpy`.
    """
    return new_main(CompileTimeTrace(current_trace()))
