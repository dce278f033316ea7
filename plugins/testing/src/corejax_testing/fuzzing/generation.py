"""Generate random programs: primitives applied to each other's results, with nests around sub-programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from corejax.extend import Primitive, Var
from corejax_testing.arrays import is_inexact
from corejax_testing.fuzzing.builder import Builder, Choose, Raised, Unfit, whole
from corejax_testing.fuzzing.case import Case
from corejax_testing.fuzzing.nests import NESTS, nest
from corejax_testing.fuzzing.relations import quiet
from corejax_testing.fuzzing.tables import Table
from corejax_testing.outcomes import NotApplicable

# The main dtypes of programs and their frequencies. Finite differences are most precise in double precision.
_DTYPES: tuple[tuple[Any, float], ...] = (
    (np.float64, 0.38),
    (np.float32, 0.38),
    (np.float16, 0.06),
    (ml_dtypes.bfloat16, 0.08),
    (np.complex64, 0.05),
    (np.complex128, 0.05),
)


def generate(table: Table, seed: int, number: int, most: int, choose: Choose = whole) -> Case:
    """Build a random program, which is the same for the same seed, number and installed primitives.

    Args:
        table: the primitives and examples to build from.
        seed: the seed of a session.
        number: the number of the program in the session.
        most: the maximal number of equations, including sub-programs, before glue and nests add theirs.
        choose: chooses which parts to keep, see `Builder`.

    Raises:
        Raised: an impl rule, or a transformation of a sub-program, raises an error.
        Unfit: the program has no equations.
    """
    rng = np.random.default_rng([seed, number])
    dtypes, weights = zip(*_DTYPES, strict=True)
    dtype = np.dtype(dtypes[int(rng.choice(len(dtypes), p=weights))])
    salt = int(rng.integers(2**31))
    builder = Builder(rng, salt if choose() else 0, choose, choose())
    with quiet():
        _grow(builder, table, dtype, int(rng.integers(2, most + 1)), 0)
    results = int(rng.integers(1, 4))
    return builder.finish(results if choose() else 1)


def _grow(builder: Builder, table: Table, dtype: np.dtype[Any], budget: int, depth: int) -> None:
    rng = builder.rng
    for _ in range(4 * budget):
        if budget <= 0:
            return
        try:
            if depth < 2 and budget > 1 and builder.pool and rng.random() < 0.2:
                size = int(rng.integers(1, min(budget, 5) + 1))
                _nested(builder, table, dtype, size, depth)
                budget -= size
            else:
                _applied(builder, table.primitives, table, dtype)
                budget -= 1
        except (Unfit, NotApplicable):
            continue


def _applied(builder: Builder, primitives: Sequence[Primitive], table: Table, dtype: np.dtype[Any]) -> None:
    primitive = primitives[int(builder.rng.integers(len(primitives)))]
    builder.apply(primitive, table.draw(primitive, dtype, builder.rng))


def _nested(outer: Builder, table: Table, dtype: np.dtype[Any], size: int, depth: int) -> None:
    """Build a sub-program on some values of the outer program, wrap it in a nest, and inline the result."""
    rng = outer.rng
    names = list(NESTS)
    name = names[int(rng.integers(len(names)))]
    inner = Builder(rng, int(rng.integers(2**31)), outer.choose, outer.digits)
    floats = [(v, x) for v, x in outer.pool if is_inexact(x.dtype)] or outer.pool
    chosen = [floats[int(rng.integers(len(floats)))] for _ in range(int(rng.integers(1, 3)))]
    outside: dict[Var, Var] = {}
    for var, x in dict.fromkeys((v, id(x)) for v, x in chosen):
        value = next(y for v, y in chosen if v is var and id(y) == x)
        outside[inner.argument(value)] = var
    _grow(inner, table, dtype, size, depth + 1)
    case = inner.finish(int(rng.integers(1, 3)))
    wrapped = _wrapped(case, name) if outer.choose() else case
    there = {id(value): outside[v] for v, value in zip(inner.invars, inner.values, strict=True) if v in outside}
    operands = []
    for v, value in zip(wrapped.program.jaxpr.invars, wrapped.values, strict=True):
        same = there.get(id(value))
        operands.append(same if same is not None and same.aval is v.aval else outer.argument(value))
    outer.inline(wrapped.program, operands)


def _wrapped(case: Case, name: str) -> Case:
    try:
        return nest(case, name)
    except NotApplicable:
        raise
    except Exception as error:
        raise Raised(case, f"types of {name}", error) from error
