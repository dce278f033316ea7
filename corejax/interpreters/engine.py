"""The interface of the eager engine, which a plugin provides to make eager calls and repeated rules faster.

For small arrays, evaluating a primitive takes several times as long as the NumPy function. A plugin may export an
`Engine` as `corejax.eager_engine`; it is imported at the first eager operation or the first `remembered` function.
Without a plugin, the defaults of the class below apply: `evaluation.evaluate` evaluates each primitive, and each rule
runs. Invariant: an engine changes how fast results are computed, never the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax.arrays.array import Array
from corejax.base.plugin_access import plugin_access
from corejax.core.avals import Avals, Operands, Params
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace
from corejax.interpreters import evaluation
from corejax.ir.jaxpr import ClosedJaxpr
from corejax.rules import RuleFn

F = TypeVar("F", bound=Callable[..., Any])


class Engine:
    """The base class of engines; its methods provide no acceleration."""

    @property
    def layer(self) -> evaluation.Layer | None:
        """The layer in front of evaluation, or None."""
        return None

    def remember(self, fun: F, ufunc: np.ufunc | None, ufunc_of: str, numbers: bool) -> F:
        """Wrap a function for `remembered`, which has the same arguments."""
        return fun

    def run_program(self, program: ClosedJaxpr, arrays: Sequence[Array], name: str) -> list[Array] | None:
        """Compile and run a program; return None if the caller should evaluate it."""
        return None

    def run_compiled(self, primitive: Primitive, arrays: Sequence[Array], params: Mapping[str, object]) -> Any:
        """Compile and run one primitive, for impl rules that delegate some operations to the compiler.

        Returns:
            The results, in the form in which its impl rule for `Array`s returns them; None if it cannot be compiled.
        """
        return None

    def comes_again(self, primitive: Primitive, avals: Avals, params: Mapping[str, object]) -> bool:
        """Whether the method was called with the same arguments before: compiling pays only for repeated operations."""
        return False

    def records(self, below: Trace | None) -> bool:
        """Whether traces above `below` should call `replay` before they run a rule."""
        return False

    def replay(
        self, primitive: Primitive, rule: RuleFn, below: Trace | None, operands: Operands, static: Any, params: Params
    ) -> Any:
        """Append the equations that a rule has bound before for operands of the same types, instead of running it.

        Args:
            primitive: the primitive that the rule belongs to.
            rule: the rule, ready to run.
            below: the trace that interprets the rule's primitives; `records(below)` is True.
            operands: the values that the rule takes; None for zero tangents.
            static: its other arguments, hashable.
            params: the primitive's parameters.

        Returns:
            A list of the rule's results: the values, then the results that do not depend on the operands' values. Or a
            recording: the caller runs the rule and passes its results to the method `learn(outs, static)`. Or None:
            the caller runs the rule.
        """
        return None


PLAIN = Engine()

_engine: Engine | None = None


def engine() -> Engine:
    """Return the engine of a plugin, or `PLAIN`; a plugin that is not loaded yet may still export one."""
    global _engine
    if _engine is not None:
        return _engine
    access = plugin_access()
    provided = access.exported_to_kernel("eager_engine") or (PLAIN if access.loaded else None)
    if provided is None:
        return PLAIN
    if _engine is None:
        _engine = provided
        evaluation.set_layer("engine", provided.layer)
    return _engine


def _finding_engine(part: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a layer function that finds the engine at the first evaluation; the engine's own layer replaces it."""

    def wrap(below: Callable[..., object]) -> RuleFn:
        def run(*args: object) -> Any:
            layer = getattr(engine().layer, part, None)
            return (below if layer is None else layer(below))(*args)

        return run

    return wrap


evaluation.set_layer("engine", evaluation.Layer(_finding_engine("process"), _finding_engine("run_program")))
