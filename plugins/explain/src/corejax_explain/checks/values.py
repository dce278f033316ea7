"""`config.debug_nans` and `config.debug_infs`: a layer of evaluation that checks results while one of them is on.

It checks the results of functions that user code calls, and of compiled programs. If one has a NaN, the error names the
operation that made it. To find that operation, each eager operation with a NaN is noted until the user's function
returns, and the equations of a compiled program are evaluated again.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    ClosedJaxpr,
    Jaxpr,
    Primitive,
    Tracer,
    Var,
    bottom_trace,
    config,
    dtypes,
    get_aval,
    host_value,
    set_current_trace,
    tree,
)
from corejax.extend.devices import checks_values
from corejax.extend.messages import Changed, called_frame, capture_source, describe_source, not_of_rule, run_within
from corejax.extend.programs import subjaxprs
from corejax.extend.speed import Evaluate, Layer, host_literal, set_layer
from corejax.extend.transforms import replayed_source, replaying
from corejax.extend.types import Packed


class _State(threading.local):
    """The operations with a NaN or infinity in this thread.

    Attributes:
        calls: frame of a running function that user code called -> its suspects.
        finding: suspects of a program that is evaluated again, or None. Operations without results are then skipped if
            they have effects.
    """

    finding: _Suspects | None = None

    def __init__(self) -> None:
        self.calls: dict[FrameType, _Suspects] = {}


class _Suspects(dict[int, tuple[Array, FloatingPointError]]):
    """Results of operations with a NaN, by id, with the error of the operation that made it."""

    def note(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], out: Array, kind: str) -> None:
        """Note a result. A NaN of an operand has the operand's error; a NaN of an eager loop that of its body."""
        known = next((self[id(x)][1] for x in args if id(x) in self), None)
        if known is None and self and "higher_order" in primitive.tags:
            known = self._first()
        self[id(out)] = out, known or _error(primitive, args, params, out, kind)

    def error_of(self, value: Any) -> FloatingPointError | None:
        """Return the error of the operation that made a NaN in a result, or None if the result has no NaN."""
        for x in _arrays_in(value):
            if _invalid_kind(x) is not None:
                return self[id(x)][1] if id(x) in self else self._first()
        return None

    def _first(self) -> FloatingPointError:
        return next(iter(self.values()))[1]


_state = _State()


def check_values(primitive: Primitive, args: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> None:
    """Check the results of an operation, if a setting turns the check on.

    A NaN is an error only if it is in the result of the function that user code called; the library may compute and
    discard one. A profile function sees the result when the function's frame returns. Wrappers around all functions
    would be slower while the settings are off. While another profiler runs, the results of each operation are checked.

    Raises:
        FloatingPointError: a result has a NaN or an infinity, and no running function may discard it. The error names
            the primitive and the user's line; for a compiled program those of the equation that makes the NaN.
    """
    for out in [part for x in outs for part in (x.parts if type(x) is Packed else (x,))]:
        kind = _invalid_kind(out)
        if kind is None:
            continue
        if _state.finding is not None:
            _state.finding.note(primitive, args, params, out, kind)
            continue
        frame = called_frame()
        if frame in (None, sys._getframe(1)) or sys.getprofile() not in (None, _look_at_result):
            raise _error(primitive, args, params, out, kind)
        _state.calls.setdefault(frame, _Suspects()).note(primitive, args, params, out, kind)
        sys.setprofile(_look_at_result)


def _look_at_result(frame: FrameType, event: str, value: Any) -> None:
    """Raise the error of a NaN in a function's result. This is the thread's profile function while it has suspects."""
    if event != "return" or frame not in _state.calls:
        return
    suspects = _state.calls.pop(frame)
    if not _state.calls:
        sys.setprofile(None)
    error = suspects.error_of(value)
    if error is not None:
        raise error


def _arrays_in(value: Any) -> Iterator[Any]:
    """Yield the arrays in a result; for a tracer, the arrays that are known."""
    for leaf in tree.leaves(value):
        if isinstance(leaf, Tracer):
            for part in ("primal", "tangent", "val"):
                yield from _arrays_in(getattr(leaf, part, None))
        elif type(leaf) is Packed:
            yield from leaf.parts
        elif isinstance(leaf, Array | np.ndarray | np.generic):
            yield leaf


def _invalid_kind(x: Any) -> str | None:
    """Return "nan" or "inf" if a value has one that a setting makes an error, else None."""
    if type(x) is Packed:
        return next(filter(None, map(_invalid_kind, x.parts)), None)
    if isinstance(x, Tracer) or not dtypes.is_inexact(get_aval(x).dtype):
        return None
    value = host_value(x)
    if config.debug_nans and np.isnan(value).any():
        return "nan"
    return "inf" if config.debug_infs and np.isinf(value).any() else None


def _repeatable(program: ClosedJaxpr | Jaxpr) -> bool:
    """Return True if the results of a program can be computed again without its effects."""
    eqns = (program.jaxpr if isinstance(program, ClosedJaxpr) else program).eqns
    return not any(eqn.primitive.effects and eqn.outvars for eqn in eqns) and all(
        map(_repeatable, (inner for eqn in eqns for inner in subjaxprs(eqn.params)))
    )


def _find_inside(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> FloatingPointError | str:
    """Evaluate the equations of a call's program again, to find the one that made a NaN in its results.

    Equations with effects are not evaluated again.

    Returns:
        The equation's error; or a sentence that tells why none was found, "" if the operation has no program.
    """
    decomposition = primitive.decomposition
    if "higher_order" not in primitive.tags or decomposition is None:
        return ""
    if not all(map(_repeatable, subjaxprs(params))):
        return ". Its program has effects, so it is not evaluated again to find the operation that made it"

    def evaluate() -> FloatingPointError | None:
        outs = decomposition(*args, **params)
        return _state.finding.error_of(outs) if _state.finding else None

    try:
        error = run_within([Changed(_state, "finding", _Suspects()), set_current_trace(bottom_trace())], evaluate)
    except Exception as failure:  # for example, its arguments were donated
        return f". To find the operation that made it, its program was evaluated again, and failed: {failure}"
    return error or ". Its operations, evaluated one by one, make none: the compiler has rewritten them"


def _error(
    primitive: Primitive, args: Sequence[Any], params: dict[str, Any], out: Array, kind: str
) -> FloatingPointError:
    """Return the error of the operation that made a NaN; for a program, that of its equation."""
    why = _find_inside(primitive, args, params)
    if isinstance(why, FloatingPointError):
        return why
    value = out._fetch()
    bad = np.isnan(value) if kind == "nan" else np.isinf(value)
    where = "" if not value.ndim else f", {int(bad.sum())} of its elements, the first at {np.argwhere(bad)[0].tolist()}"
    line = describe_source(replayed_source() or capture_source(2))
    name = params.get("name")
    called = f"{primitive.name} of {name!r}" if isinstance(name, str) else primitive.name
    operands: list[str] = []
    with contextlib.suppress(Exception):  # donated arguments cannot be read
        operands.extend(str(i) for i, x in enumerate(args) if _invalid_kind(x) is not None)
    return not_of_rule(
        FloatingPointError(
            f"invalid value ({kind}) encountered in {called}, at {line}: in its result {out.aval.str_short()}{where}"
            + (f". It has such values in operand {', '.join(operands)}" if operands else "")
            + why
        )
    )


# -- the layer -------------------------------------------------------------------------------------------


def _checking(below: Evaluate) -> Evaluate:
    def process(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        outs = below(primitive, args, params)
        if not checks_values():  # an interrupt may have stopped `follow_settings` when the setting was turned off
            follow_settings()
        check_values(primitive, args, params, outs)
        return outs

    return process


def _run_and_check(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on NumPy arrays by the bottom trace, an equation at a time, so that each is checked."""
    env: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return env[atom] if type(atom) is Var else Array(host_literal(atom), atom.aval)

    for v, value in zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True):
        env[v] = Array(value, v.aval)
    for eqn in jaxpr.eqns:
        if _state.finding is not None and eqn.primitive.effects and not eqn.outvars:
            continue
        operands = [read(v) for v in eqn.invars]
        outs = run_within(
            [replaying(eqn.source_info)], bottom_trace().process_primitive, eqn.primitive, operands, eqn.params
        )
        env.update(zip(eqn.outvars, outs, strict=True))
    return [host_value(read(v)) for v in jaxpr.outvars]


_LAYER = Layer(_checking, lambda below: _run_and_check)


def follow_settings() -> None:
    """Add the layer to evaluation if a setting turns the checks on, and remove it otherwise."""
    set_layer("values", _LAYER if checks_values() else None)
