"""The memo of rules: it replays the equations that a rule recorded before, for operands of the same types.

    replay : (rule, types, parameters) -> (tracers -> tracers)

A rule is a function of its operands, the named axes in scope, the settings and other rules; if the operands are
tracers, it depends only on their types. So if everything that the rule binds is recorded (by a `StagingTrace`, or on
the tape of a linearisation above one), the rule runs once for each list of types, and its results are checked once.
Later calls append the same equations with other variables. The rule itself runs in all cases that could differ: for
known values other than scalars, for parameters that are programs or functions, along named axes or over several
devices, if equations are at lines of the rule's own, if the rule has warned, and while the thread is watched.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Array, JaxprEqn, PartialEvalTrace, Primitive, Trace, Var, config
from corejax.extend.messages import observe
from corejax.extend.programs import Literal
from corejax.extend.speed import PartialEvalTracer, StagingTrace, source_info, state
from corejax.extend.transforms import JitTracer
from corejax_eager.cache import Cache, is_word, kind_of

_UNFIT = frozenset({"higher_order", "collective"})

# (rule, static arguments, operands, parameters) -> `_Recorded`, or False if the rule cannot be replayed.
_remembered = Cache()
_find = _remembered.get
_remembers: bool = config.remember_rules


@config.changed.connect
def _follow_settings() -> None:
    """Drop all recordings, because a rule may depend on any setting."""
    global _remembers
    _remembers = config.remember_rules
    _remembered.clear()


class _Recorded(NamedTuple):
    """The recording of a rule.

    Attributes:
        known: its equations in the program, each as primitive, operands, parameters and type of the result. An operand
            is the place of a tracer (0, 1, ... for values of the program, -1, -2, ... for values on the tape), or a
            constant itself.
        tape: its equations on the tape of a linearisation, in the same form.
        outs: places of its results; None for a result of None.
        static: a further result that does not depend on values.
    """

    known: list[Any]
    tape: list[Any]
    outs: list[int | None]
    static: Any


def records(below: Trace | None) -> bool:
    """Return whether a trace records all that rules bind on it, so that the equations can be replayed."""
    above: Any = below
    return type(above) is StagingTrace or (type(above) is PartialEvalTrace and type(above.parent) is StagingTrace)


def replay(
    primitive: Primitive,
    rule: Callable[..., Any],
    below: Any,
    operands: Sequence[Any],
    static: Any,
    params: dict[str, Any],
) -> list[Any] | Call | None:
    """Append the equations that a rule recorded for operands of the same types; see `Engine.replay`.

    Returns:
        The results and the static result; a `Call` if the rule has to run and may be recorded; None if it has to run.
    """
    recorder: Any = below if type(below) is StagingTrace else below.parent
    if not _remembers or observe.watched or primitive.multiple_results:
        return None
    places: dict[Var, int] = {}
    known: list[Any] = []  # tracers
    unknown: list[Var] = []
    source = state.source
    # While a program is replayed, all equations have its lines, so that the presence of a source is part of the key.
    key: list[Any] = [rule, static, source is None, state.axis_env, state.rule_axis]
    for x in operands:
        kind = type(x)
        if kind is JitTracer and x._trace is recorder:
            var: Any = x._var
            place: Any = places.get(var)
            if place is None:
                if type(var) is Literal:  # a known scalar, by its bytes
                    place = np.asarray(var.val, var.aval.dtype).tobytes()
                else:
                    place = places[var] = len(known)
                    known.append(x)
        elif x is None:
            key.append(None)
            continue
        elif kind is PartialEvalTracer and x._trace is below:
            place = places.get(x._var)
            if place is None:
                place = places[x._var] = ~len(unknown)
                unknown.append(x._var)
        elif kind is Array and _is_scalar(x):
            place = x._host.tobytes()
        else:
            return None
        key += (x.aval, place)
    if params:
        key.extend(params.items())
        key.extend([kind_of(v) if type(v) is tuple else type(v) for v in params.values()])
    exact = tuple(key)
    try:
        recorded: Any = _find(exact)
    except TypeError:  # a parameter has no hash
        return None
    if recorded is False:
        return None
    if source is None:
        source = source_info.capture_source(4, state.scope)
    if recorded is None:
        fit = _UNFIT.isdisjoint(primitive.tags) and all(map(is_word, params.values()))
        return Call(exact, below, recorder, places, len(unknown), source) if fit else None
    for its_primitive, operands, its_params, aval in recorded.known:
        var = Var(aval)
        invars = []
        for i in operands:
            invars.append(known[i]._var if type(i) is int else i)
        recorder.eqns.append(JaxprEqn(its_primitive, invars, [var], its_params, source))
        known.append(JitTracer(recorder, aval, var))
    if unknown:
        return _append_to_tape(recorded, below, known, unknown, source)
    outs: list[Any] = []
    for i in recorded.outs:
        outs.append(None if i is None else known[i])
    outs.append(recorded.static)
    return outs


def _append_to_tape(recorded: _Recorded, above: Any, known: list[Any], unknown: list[Var], source: Any) -> list[Any]:
    """Append the part of a recording that is on the tape above a program; return the rule's results."""
    tape, source = above.tape, above.place_of(source)
    for primitive, operands, params, aval in recorded.tape:
        var = Var(aval)
        invars = []
        for i in operands:
            invars.append(i if type(i) is not int else known[i] if i >= 0 else unknown[~i])
        tape.append(JaxprEqn(primitive, invars, [var], params, source))
        unknown.append(var)
    outs: list[Any] = []
    for i in recorded.outs:
        if i is None or i >= 0:
            outs.append(None if i is None else known[i])
        else:
            outs.append(PartialEvalTracer(above, unknown[~i].aval, unknown[~i]))
    outs.append(recorded.static)
    return outs


class Call:
    """The first call of a rule with operands of some types, with the state before the rule ran.

    Attributes:
        key: the key of the recording.
        below: the trace that interprets what the rule binds.
        recorder: the trace that records it.
        places: the places of the operands.
        unknown: the number of operands on the tape.
        source: the line of the equations.
        starts: the lengths of the program and of the tape.
        warnings: the number of warnings so far.
        clearings: how often the memo was cleared so far.
    """

    def __init__(
        self, key: Any, below: Any, recorder: StagingTrace, places: dict[Var, int], unknown: int, source: Any
    ) -> None:
        self.key, self.below, self.recorder = key, below, recorder
        self.places, self.unknown, self.source = places, unknown, source
        self.starts = len(recorder.eqns), len(below.tape) if recorder is not below else 0
        self.warnings, self.clearings = source_info.warnings_given[0], _remembered.clearings

    def learn(self, outs: Sequence[Any], static: Any = None) -> None:
        """Store the recording after the rule has run and returned `outs` and `static`."""
        if self.clearings == _remembered.clearings:  # otherwise a rule or a setting has changed meanwhile
            _remembered.store(self.key, self._read(outs, static) or False)

    def _read(self, outs: Sequence[Any], static: Any) -> _Recorded | None:
        """Return the recording; None if the rule cannot be replayed."""
        if source_info.warnings_given[0] != self.warnings or any(v.aval.refinement is not None for v in self.places):
            return None
        start, tape_start = self.starts
        places = itertools.count(len(self.places) - self.unknown)
        known = self._equations(self.recorder.eqns[start:], self.source, places)
        tape: list[Any] | None = []
        if self.below is not self.recorder:
            eqns = self.below.tape[tape_start:]
            tape = self._equations(eqns, self.below.place_of(self.source), itertools.count(~self.unknown, -1))
        out_places = [None if x is None else self._place(x) for x in outs]
        found = all(x is None or type(i) is int for i, x in zip(out_places, outs, strict=True))
        return _Recorded(known, tape, out_places, static) if found and known is not None and tape is not None else None

    def _equations(self, eqns: Sequence[JaxprEqn], source: Any, places: Iterator[int]) -> list[Any] | None:
        """Return equations in recorded form, and assign places to their results; None if one cannot be replayed."""
        recorded = []
        for eqn, place in zip(eqns, places, strict=False):
            operands = [self._place(x) for x in eqn.invars]
            if any(x is None for x in operands) or not _is_repeatable(eqn, source):
                return None
            self.places[eqn.outvars[0]] = place
            recorded.append((eqn.primitive, operands, eqn.params, eqn.outvars[0].aval))
        return recorded

    def _place(self, x: Any) -> Any:
        """Return the place of an operand or a result, or a constant itself; None if it cannot be recorded."""
        kind = type(x)
        if kind is Var:
            return self.places.get(x)
        if kind is JitTracer or kind is PartialEvalTracer:
            return self.places.get(x._var) if x._trace is self.recorder or x._trace is self.below else None
        if kind is Array and _is_scalar(x):
            return Array(x._host, x.aval)  # a new array, because the rule's own may be deleted
        return x if kind is Literal else None


def _is_scalar(x: Array) -> bool:
    """Return whether an array is a scalar of numbers on the host."""
    return x._host is not None and x.aval.ndim == 0 and x.aval.dtype.names is None


def _is_repeatable(eqn: JaxprEqn, source: Any) -> bool:
    """Return whether a rule would record an equation at each call, at the line of the rule's caller."""
    primitive = eqn.primitive
    return (
        len(eqn.outvars) == 1
        and not primitive.effects
        and _UNFIT.isdisjoint(primitive.tags)
        and eqn.outvars[0].aval.refinement is None
        and eqn.source_info == source
    )
