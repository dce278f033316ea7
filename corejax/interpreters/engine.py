"""The seam of the eager engine: a plugin that makes eager calls and repeated rules faster without changing results.

Evaluating a primitive costs several times what NumPy takes for small arrays. A plugin may export an `Engine` as
`corejax.eager_engine`; it is imported at the first eager operation or the first `remembered` function. Without one,
the defaults of the class below are in force: each primitive is evaluated by `evaluation.evaluate`, each rule is run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from corejax.base.seams import Slot
from corejax.core.array import Array
from corejax.core.avals import ShapedArray
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace
from corejax.interpreters import evaluation
from corejax.ir.jaxpr import ClosedJaxpr

F = TypeVar("F", bound=Callable[..., Any])


class Engine:
    """What an engine does; the methods here do nothing, slowly and right."""

    @property
    def layer(self) -> evaluation.Layer | None:
        """The layer in front of evaluation; None for none."""
        return None

    def remember(self, fun: F, ufunc: np.ufunc | None, ufunc_of: str, numbers: bool) -> F:
        """Wrap a function that was marked `remembered`; the arguments are as there."""
        return fun

    def run_program(self, program: ClosedJaxpr, arrays: Sequence[Array], name: str) -> list[Array] | None:
        """Run a program compiled; None leaves it to its caller, who evaluates it."""
        return None

    def run_compiled(self, primitive: Primitive, arrays: Sequence[Array], params: Mapping[str, Any]) -> Any:
        """Run one primitive compiled, for impl rules that leave some operations to the compiler.

        Returns:
            Its results, as its impl rule for `Array`s would give them; None if nothing compiles it, or runs it here.
        """
        return None

    def comes_again(self, primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> bool:
        """Tell whether the same was asked before: what is computed once is not worth compiling."""
        return False

    def records(self, below: Trace | None) -> bool:
        """Tell whether rules that run on a trace are to be looked up by `replay`."""
        return False

    def replay(
        self,
        primitive: Primitive,
        rule: Callable[..., Any],
        below: Trace | None,
        operands: Sequence[Any],
        static: Any,
        params: dict[str, Any],
    ) -> Any:
        """Append the equations that a rule recorded for operands of the same types.

        Args:
            primitive: whose rule it is.
            rule: the rule, ready to run.
            below: the trace that interprets what the rule binds; `records` holds for it.
            operands: the values that the rule is given; None for zero tangents.
            static: what else it is given, hashable.
            params: the primitive's parameters.

        Returns:
            A list: the values that the rule returns, then what it returns whatever the values are. Or an object whose
            method `learn(outs, static)` is to be called with what the rule, which is to be run, returns. Or None: the
            rule is to be run.
        """
        return None


PLAIN = Engine()

# Finds the engine: an `Engine` of a plugin's, `PLAIN` if no plugin has one, None while plugins are being loaded.
find_engine: Slot[Callable[[], Engine | None]] = Slot("what finds the engine")
_engine: Engine | None = None


def engine() -> Engine:
    """Return the engine of the plugins, or `PLAIN`."""
    global _engine
    if _engine is not None:
        return _engine
    found = find_engine.value() if find_engine.value is not None else None
    if found is None:
        return PLAIN
    if _engine is None:
        _engine = found
        evaluation.set_layer("engine", found.layer)
    return _engine


def _sought(part: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A layer's function in front of evaluation until the engine has been found."""

    def in_front(below: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            layer = getattr(engine().layer, part, None)
            return (below if layer is None else layer(below))(*args)

        return run

    return in_front


evaluation.set_layer("engine", evaluation.Layer(_sought("process"), _sought("run_program")))


@overload
def remembered(fun: F, *, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> F: ...


@overload
def remembered(*, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> Callable[[F], F]: ...


def remembered(fun: Any = None, *, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> Any:
    """Mark a function whose eager calls the engine may record, and then run as one program.

    For pure functions of arrays and static arguments (numbers, strings, None, dtypes, enumerations), lists and tuples
    of these, which give an array or a pytree of arrays. A call with other arguments, and one that needs values or warns
    (`warn_user`), runs the function. One that looks at values only if they are known, or at whether two arguments are
    one object, must not be marked: its program would give something else.

    Args:
        fun: the function; what it returns has to be the same for the same values. Without it, a decorator.
        ufunc: NumPy's ufunc that gives the same bits wherever it gives the same dtypes, special values included: it
            runs in place of the program, whatever rules its primitives have.
        ufunc_of: NumPy's codes of the dtypes of the first operand for which that holds (`"fd"`: float32 and float64);
            by default all.
        numbers: whether floats and complex numbers of Python's are operands as arrays are: nothing but promotion
            depends on them. Calls that differ in these have one program then; otherwise each number has its own.

    Returns:
        The function under its name and with its documentation; `fun` itself if there is no engine.

    Raises:
        TypeError: `fun` is no function, or `ufunc` no ufunc of NumPy's.
    """
    if ufunc is not None and not isinstance(ufunc, np.ufunc):
        raise TypeError(f"remembered: ufunc is one of NumPy's, such as np.copysign, got {ufunc!r}")
    if fun is None:
        return functools.partial(remembered, ufunc=ufunc, ufunc_of=ufunc_of, numbers=numbers)
    if not callable(fun):
        raise TypeError(f"remembered takes a function, got {fun!r} of type {type(fun).__name__}")
    return engine().remember(fun, ufunc, ufunc_of, numbers)
