"""Evaluate programs on NumPy arrays without boxing intermediate values.

`eval_jaxpr` uses this path if all values are concrete; impl rules of primitives with programs use it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array, as_array, boxed, host_value, is_spread
from corejax.core.avals import Operands, get_aval
from corejax.core.trace import Tracer, state
from corejax.interpreters import evaluation
from corejax.ir.interpret import concrete_runner
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var

_ndarray = np.ndarray


def eval_jaxpr_on_host(closed: ClosedJaxpr, args: Operands) -> list[Any]:
    """Run a program on NumPy arrays of its argument types; for impl rules of higher-order primitives.

    Returns:
        NumPy arrays.

    Raises:
        TypeError: the number of arguments is wrong, or the program failed and their types are wrong.
    """
    jaxpr = closed.jaxpr
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"eval_jaxpr_on_host: a program of {len(jaxpr.invars)} arguments was given {len(args)}")
    try:
        return evaluation.bottom.run_program(jaxpr, [*(host_value(c) for c in closed.consts), *map(_read_only, args)])
    except Exception as error:
        _check_types(jaxpr.invars, args, error)
        raise


def _check_types(binders: Sequence[Var], values: Operands, error: Exception) -> None:
    """Raise TypeError, from the error of a program that failed, if the values have other types than the binders."""
    expected, actual = [v.aval for v in binders], [get_aval(x) for x in values]
    if any((a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(expected, actual, strict=True)):
        takes, got = (", ".join(a.str_short() for a in avals) for avals in (expected, actual))
        advice = "the abstract-eval rule of a primitive with a program should compare operands with `program.in_avals`"
        raise TypeError(f"a program that takes ({takes}) was given ({got}); {advice}") from error


def _read_only(x: object) -> Any:
    """Return a read-only view of an argument, so that rules of the program cannot write to it."""
    if type(x) is _ndarray and x.flags.writeable:
        x = x.view()
        x.setflags(write=False)
    return x


def _run_concrete(jaxpr: Jaxpr, values: list[Any]) -> list[Any] | None:
    if type(state.trace) is not evaluation.EvalTrace or any(isinstance(x, Tracer) for x in values):
        return None
    if any(type(x) is Array and is_spread(x) for x in values):
        return None  # the backend of a sharded operand evaluates each operation
    try:
        outs = evaluation.run_quietly(evaluation.bottom.run_program, jaxpr, [host_value(as_array(x)) for x in values])
    except Exception as error:
        _check_types(jaxpr.invars, [as_array(x) for x in values[len(jaxpr.constvars) :]], error)
        raise
    return [boxed(o, v.aval) for o, v in zip(outs, jaxpr.outvars, strict=True)]


concrete_runner.provide(_run_concrete)
