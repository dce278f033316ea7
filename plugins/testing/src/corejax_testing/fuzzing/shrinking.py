"""Making a failing program small: delta debugging on equations (Zeller and Hildebrandt, 2002), to a fixed point.

Reductions, the strongest first: one result only; the equations up to one of them; an equation's results made
arguments, with the values that they had; a nested program in place of the program; inside nested programs an
equation's result replaced by something of its type; smaller shapes; rounder numbers. Each is kept if what failed
still fails in the same way. The order is fixed and the number of attempts bounded, so the same comes out each time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Var, dce, get_aval, stage_closed
from corejax_testing.arrays import Array, is_inexact
from corejax_testing.fuzzing.builder import without_unused
from corejax_testing.fuzzing.case import Case, map_programs, nested, size_of, values_of
from corejax_testing.fuzzing.relations import ask, quiet
from corejax_testing.outcomes import NotApplicable

ATTEMPTS = 400
SECONDS = 60.0  # a safeguard: what is bounded is the number of attempts


def shrink(case: Case, relation: str, attempts: int = ATTEMPTS) -> Case:
    """A small case of which the relation does not hold either.

    Args:
        case: one of which it does not hold.
        relation: as for `ask`.
        attempts: at most so many smaller programs are tried.
    """
    failure = ask(Case(case.program, case.values, case.salt), relation)
    if failure is None:
        return case
    kind = _kind(failure)
    deadline = time.monotonic() + SECONDS
    left = attempts

    def fails(candidate: Case) -> bool:
        try:
            with quiet():
                found = ask(candidate, relation)
        except NotApplicable:
            return False
        return found is not None and _kind(found) == kind

    progress = True
    while progress and left > 0:
        progress = False
        for reductions in REDUCTIONS:
            for candidate in _safely(reductions, case):
                left -= 1
                if left < 0 or time.monotonic() > deadline:
                    return case
                if _smaller(candidate, case) and fails(candidate):
                    case, progress = candidate, True
                    break
            if progress:
                break
    return case


def _kind(failure: tuple[str, bool]) -> str:
    """What has to stay the same: the type of what is raised; else that something differs."""
    return failure[0].split(":")[0] if failure[1] else ""


def _safely(reductions: Callable[[Case], Iterator[Case]], case: Case) -> Iterator[Case]:
    """Candidates; a reduction that meets what it cannot reduce gives no more of them."""
    found = reductions(case)
    while True:
        try:
            with quiet():
                candidate = next(found)
        except Exception:  # StopIteration, or a rule that raises: the very mistake that is looked for, perhaps
            return
        yield candidate


def _measure(case: Case) -> tuple[int, ...]:
    numbers = sum(x.size for x in case.values)
    digits = sum(len(repr(v)) for x in case.values for v in np.ravel(x).tolist())
    return size_of(case.program), case.salt, len(case.program.jaxpr.outvars), numbers, digits


def _smaller(new: Case, old: Case) -> bool:
    return _measure(new) < _measure(old)


def _program(case: Case, eqns: list[JaxprEqn], outs: list[Any], more: dict[Var, Array] | None = None) -> Case:
    """The equations that these results need, with further arguments."""
    extra = more or {}
    jaxpr = dce(Jaxpr((), [*case.program.jaxpr.invars, *extra], eqns, outs))
    closed = ClosedJaxpr(jaxpr, ())
    return without_unused(Case(closed, (*case.values, *extra.values()), case.salt))


def _unsalted(case: Case) -> Iterator[Case]:
    """All operands batched in front, all differentiated by."""
    if case.salt:
        yield Case(case.program, case.values, 0)


def _single_results(case: Case) -> Iterator[Case]:
    outs = case.program.jaxpr.outvars
    if len(outs) > 1:
        for out in outs:
            yield _program(case, case.program.eqns, [out])


def _prefixes(case: Case) -> Iterator[Case]:
    eqns = case.program.eqns
    for k in range(len(eqns) - 1):
        for out in eqns[k].outvars:
            yield _program(case, eqns[: k + 1], [out])


def _cuts(case: Case) -> Iterator[Case]:
    eqns, values = case.program.eqns, values_of(case)
    width = len(eqns) // 2
    while width >= 1:  # many equations at once, then fewer
        for start in range(0, len(eqns), width):
            gone = eqns[start : start + width]
            kept = eqns[:start] + eqns[start + width :]
            yield _program(case, kept, case.program.jaxpr.outvars, {v: values[v] for eqn in gone for v in eqn.outvars})
        width //= 2


def _unnested(case: Case) -> Iterator[Case]:
    values = values_of(case)
    for eqn in case.program.eqns:
        operands = [values[v] if isinstance(v, Var) else np.asarray(v.val, v.aval.dtype) for v in eqn.invars]
        for sub in nested(eqn.params):
            if isinstance(sub, ClosedJaxpr) and not sub.consts:
                fitting = _fitting(sub, operands)
                if fitting is not None:
                    yield without_unused(Case(sub, tuple(fitting), case.salt))


def _fitting(sub: ClosedJaxpr, operands: list[Array]) -> list[Array] | None:
    """Operands of a nested program from those of the equation: its last ones, whole or their first rows."""
    count = len(sub.in_avals)
    if count > len(operands):
        return None
    found = []
    for aval, x in zip(sub.in_avals, operands[len(operands) - count :], strict=True):
        if x.shape[1:] == aval.shape and x.ndim == aval.ndim + 1 and len(x):
            x = x[0]
        if x.shape != aval.shape or x.dtype != aval.dtype:
            return None
        found.append(np.ascontiguousarray(x).reshape(aval.shape))
    return found


def _inside(case: Case) -> Iterator[Case]:
    for k, eqn in enumerate(case.program.eqns):
        for number, sub in enumerate(nested(eqn.params)):
            for smaller in _shortened(sub):
                params = _with_program(eqn.params, number, smaller)
                eqns = list(case.program.eqns)
                eqns[k] = eqn.replace(params=params)
                yield _program(case, eqns, case.program.jaxpr.outvars)


def _with_program(params: dict[str, Any], number: int, program: Any) -> dict[str, Any]:
    """Parameters with one of their programs replaced."""
    count = itertools.count()
    return map_programs(params, lambda old: program if next(count) == number else old)


def _shortened(program: Any) -> Iterator[Any]:
    """A nested program, of the same type, without one of its equations."""
    closed = isinstance(program, ClosedJaxpr)
    jaxpr = program.jaxpr if closed else program
    bound = [*jaxpr.constvars, *jaxpr.invars]
    for k, eqn in enumerate(jaxpr.eqns):
        instead = [next((v for v in reversed(bound) if v.aval is out.aval), None) for out in eqn.outvars]
        if all(v is not None for v in instead):
            env = dict(zip(eqn.outvars, instead, strict=True))
            rest = [
                e.replace(invars=[env.get(a, a) if isinstance(a, Var) else a for a in e.invars])
                for e in jaxpr.eqns[k + 1 :]
            ]
            outs = [env.get(a, a) if isinstance(a, Var) else a for a in jaxpr.outvars]
            new = dce(Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns[:k] + rest, outs))
            yield ClosedJaxpr(new, program.consts) if closed else new
        for number, sub in enumerate(nested(eqn.params)):
            for smaller in _shortened(sub):
                params = _with_program(eqn.params, number, smaller)
                eqns = list(jaxpr.eqns)
                eqns[k] = eqn.replace(params=params)
                new = Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars)
                yield ClosedJaxpr(new, program.consts) if closed else new
        bound += eqn.outvars


def _shapes(case: Case) -> Iterator[Case]:
    """The same equations on smaller arrays, where they take them."""
    sizes = sorted({d for x in case.values for d in x.shape if d > 1}, reverse=True)
    for size in sizes:
        for smaller in (1, 2) if size > 2 else (1,):
            values = [
                np.ascontiguousarray(x[tuple(slice(smaller if d == size else d) for d in x.shape)]) for x in case.values
            ]
            values = [x.reshape(y.shape) for x, y in zip(values, values, strict=True)]
            try:
                program = stage_closed(lambda *xs: case(*xs), [get_aval(x) for x in values])
            except Exception:  # equations whose parameters name the old size
                continue
            if not program.consts:
                yield Case(program, tuple(values), case.salt)
    for i, x in enumerate(case.values):
        if x.ndim and x.size:
            values = list(case.values)
            values[i] = np.ascontiguousarray(x[(0,) * x.ndim]).reshape(())
            try:
                yield Case(stage_closed(lambda *xs: case(*xs), [get_aval(y) for y in values]), tuple(values), case.salt)
            except Exception:
                continue


def _numbers(case: Case) -> Iterator[Case]:
    """Rounder numbers."""
    for i, x in enumerate(case.values):
        for digits in (0, 1, 2):
            if is_inexact(x.dtype):
                wide: Any = x.astype(complex if x.dtype.kind == "c" else float)
                values = list(case.values)
                values[i] = np.asarray(np.round(wide, digits)).astype(x.dtype).reshape(x.shape)
                yield case.at(values)


REDUCTIONS = (_unsalted, _single_results, _prefixes, _cuts, _unnested, _inside, _shapes, _numbers)
