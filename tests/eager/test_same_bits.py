"""Random programs by the engine and by the kernel's own evaluation: the same bits, types and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from corejax.extend import Array, Var, host_value, load_everything
from corejax.extend.programs import eval_jaxpr
from corejax.extend.speed import bottom, host_literal, set_layer
from corejax.interpreters.engine import engine
from corejax_eager.codegen import RUNS
from corejax_eager.specialise import operations
from corejax_testing.fuzzing.builder import Unfit
from corejax_testing.fuzzing.case import Case
from corejax_testing.fuzzing.generation import generate
from corejax_testing.fuzzing.tables import Table
from corejax_testing.selection import chosen


@contextmanager
def plain() -> Iterator[None]:
    set_layer("engine", None)
    try:
        yield
    finally:
        set_layer("engine", engine().layer)


def one_by_one(case: Case) -> list[Any]:
    """Evaluate each equation as an eager operation."""
    jaxpr = case.program.jaxpr
    env: dict[Var, Any] = dict(
        zip((*jaxpr.constvars, *jaxpr.invars), (*case.program.consts, *case.values), strict=True)
    )

    def read(atom: Any) -> Any:
        return env[atom] if isinstance(atom, Var) else Array(host_literal(atom), atom.aval)

    for eqn in jaxpr.eqns:
        outs = bottom.process_primitive(eqn.primitive, [read(x) for x in eqn.invars], eqn.params)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def as_program(case: Case) -> list[Any]:
    return eval_jaxpr(case.program.jaxpr, case.program.consts, case.values)


def outcome(run: Any, case: Case) -> Any:
    try:
        return [(x.aval, host_value(x).tobytes()) for x in map(_boxed, run(case))]
    except Exception as error:
        return type(error), str(error)


def _boxed(x: Any) -> Any:
    return x if isinstance(x, Array) else Array(np.asarray(x), x.aval)


def differences(seed: int, count: int) -> tuple[int, list[str]]:
    load_everything()
    table, found, compared = Table(chosen([])), [], 0
    for number in range(count):
        try:
            case = generate(table, seed, number, 10)
        except Unfit:
            continue
        compared += 1
        for run in (one_by_one, as_program):
            with plain():
                wanted = outcome(run, case)
            if any(outcome(run, case) != wanted for _ in range(RUNS + 2)):
                found.append(f"{run.__name__} of program {number} of seed {seed}:\n{case.program}")
    return compared, found


def test_random_programs() -> None:
    compared, found = differences(0, 60)
    assert not found, found[0]
    assert compared > 40 and any(type(entry) is not int for entry in operations.values())


@pytest.mark.slow
def test_five_hundred_random_programs() -> None:
    compared, found = differences(1, 600)
    assert compared >= 500 and not found, found[0]
