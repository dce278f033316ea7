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
_remembers: bool = config.remember_rules


@config.changed.connect
def _follow_settings() -> None:
    """Drop all recordings, because a rule may depend on any setting."""
    global _remembers
    _remembers = config.remember_rules
    _remembered.clear()


class _Recorded(NamedTuple):
    """The recording of a rule.

    Its equations are tuples of a primitive, operands, parameters and the type of the result. An operand is a place in
    the list of all values: the operands of the rule that are in the program, the constants, the results in the program,
    the operands on the tape, and the results on the tape.

    Attributes:
        constants: values that do not depend on the operands; among them the static result of the rule.
        known: the equations in the program.
        tape: the equations on the tape of a linearisation.
        outs: places of the rule's results.
    """

    constants: list[Any]
    known: list[Any]
    tape: list[Any]
    outs: list[int]


def records(below: Trace | None) -> bool:
    """Return whether a trace records all that rules bind on it, so that the equations can be replayed."""
    above: Any = below
    return type(above) is StagingTrace or (type(above) is PartialEvalTrace and type(above.parent) is StagingTrace)


def replay(
    primitive: Primitive,
    rule: Callable[..., Any],
    below: Trace | None,
    operands: Sequence[Any],
    static: Any,
    params: dict[str, Any],
) -> list[Any] | Call | None:
    """Append the equations that a rule recorded for operands of the same types; see `Engine.replay`.

    Returns:
        The results and the static result; a `Call` if the rule has to run and may be recorded; None if it has to run.
    """
    above: Any = below
    recorder: Any = above if type(below) is StagingTrace else above.parent
    if not _remembers or observe.watched or primitive.multiple_results:
        return None
    places: dict[Any, int] = {}  # of the operands: 0, 1, ... in the program, -1, -2, ... on the tape
    known: list[Any] = []  # tracers
    atoms: list[Any] = []  # their variables
    unknown: list[Var] = []
    source = state.source
    # While a program is replayed, all equations have its lines, so that the presence of a source is part of the key.
    key: list[Any] = [rule, static, source is None, state.axis_env, state.rule_axis]
    for x in operands:
        kind = type(x)
        if kind is JitTracer and x._trace is recorder:
            var: Any = x._var
            place: Any = places.get(var)
            if place is None and type(var) is Literal:  # a known scalar, by its bytes
                place = np.asarray(var.val, var.aval.dtype).tobytes()
            elif place is None:
                place = places[var] = len(known)
                known.append(x)
                atoms.append(var)
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
        recorded: Any = _remembered.get(exact)
    except TypeError:  # a parameter has no hash
        return None
    if recorded is False:
        return None
    if source is None:
        source = source_info.capture_source(4, state.scope)
    if recorded is None:
        if not _UNFIT.isdisjoint(primitive.tags) or not all(map(is_word, params.values())):
            return None
        starts = len(recorder.eqns), len(above.tape) if recorder is not below else 0
        warnings = source_info.warnings_given[0]
        return Call(exact, below, recorder, places, len(unknown), source, starts, warnings, _remembered.clearings)
    return _append(recorded, recorder, above, known, atoms, unknown, source)


def _append(
    recorded: _Recorded,
    recorder: StagingTrace,
    above: Any,
    values: list[Any],
    atoms: list[Any],
    unknown: list[Var],
    source: Any,
) -> list[Any]:
    """Append a recording to a program, and to the tape above it if there is one; return the rule's results."""
    constants, known, tape, outs = recorded
    eqns = recorder.eqns
    values += constants
    atoms += constants
    for primitive, operands, params, aval in known:
        atoms.append(var := Var(aval))
        values.append(JitTracer(recorder, aval, var))
        eqns.append(JaxprEqn(primitive, [*map(atoms.__getitem__, operands)], [var], params, source))
    if not unknown:
        return [*map(values.__getitem__, outs)]
    values += unknown
    eqns, source = above.tape, above.place_of(source)
    for primitive, operands, params, aval in tape:
        values.append(var := Var(aval))
        eqns.append(JaxprEqn(primitive, [*map(values.__getitem__, operands)], [var], params, source))
    results = [*map(values.__getitem__, outs)]
    return [PartialEvalTracer(above, x.aval, x) if type(x) is Var else x for x in results]


class Call(NamedTuple):
    """The first call of a rule with operands of some types, with the state before the rule ran.

    Attributes:
        key: the key of the recording.
        below: the trace that interprets what the rule binds.
        recorder: the trace that records it.
        places: the places of the operands; after the rule has run, also of constants (by id) and of results.
        unknown: the number of operands on the tape.
        source: the line of the equations.
        starts: the lengths of the program and of the tape.
        warnings: the number of warnings so far.
        clearings: how often the memo was cleared so far.
    """

    key: Any
    below: Any
    recorder: StagingTrace
    places: dict[Any, int]
    unknown: int
    source: Any
    starts: tuple[int, int]
    warnings: int
    clearings: int

    def learn(self, outs: Sequence[Any], static: Any = None) -> None:
        """Store the recording after the rule has run and returned `outs` and `static`."""
        if self.clearings == _remembered.clearings:  # otherwise a rule or a setting has changed meanwhile
            _remembered.store(self.key, self._read(outs, static) or False)

    def _read(self, outs: Sequence[Any], static: Any) -> _Recorded | None:
        """Return the recording; None if the rule cannot be replayed."""
        if source_info.warnings_given[0] != self.warnings or any(v.aval.refinement is not None for v in self.places):
            return None
        start, tape_start = self.starts
        eqns, on_tape, tape_source = self.recorder.eqns[start:], [], None
        if self.below is not self.recorder:
            on_tape, tape_source = self.below.tape[tape_start:], self.below.place_of(self.source)
        operands = [x for eqn in (*eqns, *on_tape) for x in eqn.invars if _is_constant(x)]
        constants = {id(x): x for x in (None, static, *operands)}
        numbers = itertools.count(len(self.places) - self.unknown)
        unknown = {v: ~place for v, place in self.places.items() if place < 0}
        self.places.update(zip(constants, numbers, strict=False))
        known = self._equations(eqns, self.source, numbers)
        first = next(numbers)
        self.places.update((v, first + i) for v, i in unknown.items())
        tape = self._equations(on_tape, tape_source, itertools.count(first + self.unknown))
        places: list[Any] = [self._place(x) for x in (*outs, static)]
        if known is None or tape is None or None in places or any(map(_is_constant, outs)):
            return None
        # New arrays, because the rule's own may be deleted.
        values = [Array(x._host, x.aval) if type(x) is Array else x for x in constants.values()]
        return _Recorded(values, known, tape, places)

    def _equations(self, eqns: Sequence[JaxprEqn], source: Any, numbers: Iterator[int]) -> list[Any] | None:
        """Return equations in recorded form, and assign places to their results; None if one cannot be replayed."""
        recorded = []
        for eqn, place in zip(eqns, numbers, strict=False):
            operands = [self._place(x) for x in eqn.invars]
            if None in operands or not _is_repeatable(eqn, source):
                return None
            self.places[eqn.outvars[0]] = place
            recorded.append((eqn.primitive, operands, eqn.params, eqn.outvars[0].aval))
        return recorded

    def _place(self, x: Any) -> int | None:
        """Return the place of a variable, tracer or constant; None if it cannot be recorded."""
        kind = type(x)
        if kind is JitTracer or kind is PartialEvalTracer:
            return self.places.get(x._var) if x._trace is self.recorder or x._trace is self.below else None
        return self.places.get(x if kind is Var else id(x))


def _is_constant(x: Any) -> bool:
    """Return whether an operand or a result is the same at each call of a rule with operands of the same types."""
    return type(x) is Literal or (type(x) is Array and _is_scalar(x))


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
