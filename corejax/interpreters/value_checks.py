"""`config.debug_nans` and `config.debug_infs`: evaluation that looks at each result, while one of them is on.

Eager operations are looked at one by one, those of eager loops and branches too. Of a compiled program the results are,
and if one has a NaN, its equations are evaluated again to find out which of them makes it first. While both settings
are off, evaluation is what it is without this module: they exchange the functions that run.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import dtypes
from corejax.array import Array, host_value
from corejax.attribution import mark
from corejax.avals import get_aval
from corejax.config import config
from corejax.interpreters import evaluation, host_programs
from corejax.ir.interpret import literal_value
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var, subjaxprs
from corejax.primitive import Primitive
from corejax.restoring import Restoring, run_within
from corejax.source_info import capture, describe
from corejax.trace import Tracer, replaying, set_current_trace, state

_process = evaluation.EvalTrace.process_primitive
_run_program = host_programs._run_program
_bottom = evaluation._bottom


def checks_values() -> bool:
    """Whether results are looked at: `config.debug_nans` or `config.debug_infs` is on."""
    return config.debug_nans or config.debug_infs


def check_values(primitive: Primitive, args: Sequence[Any], params: dict[str, Any], outs: Sequence[Array]) -> None:
    """Look at the results of an application, if a setting asks for it.

    Raises:
        FloatingPointError: a result has a NaN or an infinity. It names the primitive and the user's line: of a program,
            those of its equation that makes it.
    """
    for out in outs:
        kind = _found_in(out)
        if kind is not None:
            why = _find_inside(primitive, args, params)
            raise _error(primitive, args, params, out, kind, why)


def _found_in(x: Any) -> str | None:
    """What a value has that it must not have: "nan", "inf" or nothing."""
    if isinstance(x, Tracer) or not dtypes.is_inexact(get_aval(x).dtype):
        return None
    value = host_value(x)
    if config.debug_nans and np.isnan(value).any():
        return "nan"
    return "inf" if config.debug_infs and np.isinf(value).any() else None


class _State(threading.local):
    """Whether the thread evaluates a program again: what has effects and no results is left out then."""

    finding = False


_state = _State()


class _Finding(Restoring):
    __slots__ = ("earlier",)

    def __init__(self) -> None:
        self.earlier = _state.finding

    def __enter__(self) -> None:
        _state.finding = True

    def restore(self) -> None:
        """As it was before."""
        _state.finding = self.earlier


def _repeatable(program: ClosedJaxpr | Jaxpr) -> bool:
    """Whether the results of a program can be computed again without its effects."""
    eqns = (program.jaxpr if isinstance(program, ClosedJaxpr) else program).eqns
    return not any(eqn.primitive.effects and eqn.outvars for eqn in eqns) and all(
        map(_repeatable, (inner for eqn in eqns for inner in subjaxprs(eqn.params)))
    )


def _find_inside(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> str:
    """Evaluate the equations of a call's program again, which raises where one of them makes a NaN.

    Nothing is evaluated twice that has effects.

    Returns:
        Why nothing was found: a sentence, or nothing where there is no program.

    Raises:
        FloatingPointError: something was.
    """
    if "higher_order" not in primitive.tags or primitive.decomposition is None:
        return ""
    if not all(map(_repeatable, subjaxprs(params))):
        return ". Its program has effects, and is not evaluated again to find out which operation that was"
    try:
        run_within([_Finding(), set_current_trace(_bottom)], primitive.decomposition, *args, **params)
    except FloatingPointError:
        raise
    except Exception as error:  # its arguments are gone, say
        return f". To find out which operation that was it was evaluated again, and failed: {error}"
    return ". Its operations, evaluated one by one, make none: the compiler has rewritten them"


def _error(
    primitive: Primitive, args: Sequence[Any], params: dict[str, Any], out: Array, kind: str, why: str
) -> FloatingPointError:
    value = out._fetch()
    bad = np.isnan(value) if kind == "nan" else np.isinf(value)
    where = "" if not value.ndim else f", {int(bad.sum())} of its elements, the first at {np.argwhere(bad)[0].tolist()}"
    line = describe(state.source if state.source is not None else capture(2))
    name = params.get("name")
    called = f"{primitive.name} of {name!r}" if isinstance(name, str) else primitive.name
    given: list[str] = []
    with contextlib.suppress(Exception):  # arguments that are gone
        given.extend(str(i) for i, x in enumerate(args) if _found_in(x) is not None)
    error = FloatingPointError(
        f"invalid value ({kind}) encountered in {called}, at {line}: in its result {out.aval.str_short()}{where}"
        + (f". It was given such values, as operand {', '.join(given)}" if given else "")
        + why
    )
    mark(error, primitive)
    return error


# -- evaluation that looks -------------------------------------------------------------------------------------------


def _process_and_check(
    self: evaluation.EvalTrace, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    outs = _process(self, primitive, args, params)
    if not checks_values():  # an interrupt has kept a setting's end from being followed
        follow_settings()
    check_values(primitive, args, params, outs)
    return outs


def _run_and_check(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """A program on NumPy arrays, each of its equations given to the trace at the bottom."""
    env: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return env[atom] if type(atom) is Var else literal_value(atom)

    for v, value in zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True):
        env[v] = Array(value, v.aval)
    for eqn in jaxpr.eqns:
        if _state.finding and eqn.primitive.effects and not eqn.outvars:
            continue
        operands = [read(v) for v in eqn.invars]
        outs = run_within([replaying(eqn.source_info)], _bottom.process_primitive, eqn.primitive, operands, eqn.params)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v)._fetch() for v in jaxpr.outvars]


def follow_settings() -> None:
    """Have evaluation look at results, or no longer."""
    on = checks_values()
    process: Callable[..., list[Any]] = _process_and_check if on else _process
    evaluation.EvalTrace.process_primitive = process  # type: ignore[method-assign]
    host_programs._run_program = _run_and_check if on else _run_program


config.changed.connect(follow_settings)
follow_settings()
