"""The interface of the eager engine, which a plugin provides to make eager calls and repeated rules faster.

For small arrays, evaluating a primitive takes several times as long as the NumPy function. A plugin may export an
`Engine` as `corejax.eager_engine`; it is imported at the first eager operation or the first `remembered` function.
Without a plugin, the defaults of the class below apply: `evaluation.evaluate` evaluates each primitive, and each rule
runs. Invariant: an engine changes how fast results are computed, never the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from corejax.base.seams import Slot
from corejax.core.array import Array
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

# Finds the engine: a plugin's `Engine`, `PLAIN` if no plugin has one, None while plugins are being loaded.
find_engine: Slot[Callable[[], Engine | None]] = Slot("what finds the engine")
_engine: Engine | None = None


def engine() -> Engine:
    """Return the engine of a plugin, or `PLAIN`."""
    global _engine
    if _engine is not None:
        return _engine
    provided = find_engine.value() if find_engine.value is not None else None
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


@overload
def remembered(fun: F, *, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> F: ...


@overload
def remembered(*, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> Callable[[F], F]: ...


def remembered(fun: object = None, *, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> Any:
    """Mark a pure function, so that the engine may record its eager calls and run each as one program.

    The arguments may be arrays and static values (numbers, strings, None, dtypes, enumerations), and lists and tuples
    of these; the result is an array or a pytree of arrays. A call with other arguments, or one that reads values or
    warns (`warn_user`), runs the function. Do not mark a function that branches on whether values are known or on
    whether two arguments are the same object: its program would compute something else.

    Args:
        fun: the function; equal arguments must give equal results. If omitted, return a decorator.
        ufunc: a NumPy ufunc that computes the same bits for all dtypes for which it returns the same dtype, including
            special values. It runs instead of the program, whatever rules the function's primitives have.
        ufunc_of: the NumPy codes of the first operand's dtypes to which `ufunc` applies (`"fd"`: float32 and float64);
            by default all.
        numbers: whether Python floats and complex numbers are operands of the program rather than constants. This is
            right if only promotion depends on them; calls with different numbers then share one program.

    Returns:
        The function with its name and documentation; `fun` itself if no engine is installed.

    Raises:
        TypeError: `fun` is not callable, or `ufunc` is not a NumPy ufunc.
    """
    if ufunc is not None and not isinstance(ufunc, np.ufunc):
        raise TypeError(f"remembered: ufunc has to be a NumPy ufunc, such as np.copysign, got {ufunc!r}")
    if fun is None:
        return functools.partial(remembered, ufunc=ufunc, ufunc_of=ufunc_of, numbers=numbers)
    if not callable(fun):
        raise TypeError(f"remembered takes a function, got {fun!r} of type {type(fun).__name__}")
    return engine().remember(fun, ufunc, ufunc_of, numbers)
