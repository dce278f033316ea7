"""A fuzzing session: generate programs, check relations of each, and reduce the failures."""

from __future__ import annotations

import functools
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corejax.extend import Example, Primitive
from corejax.extend.plugins import exported
from corejax_testing.fuzzing.builder import Raised, Unfit
from corejax_testing.fuzzing.case import CALLS, Case
from corejax_testing.fuzzing.generation import generate
from corejax_testing.fuzzing.nests import NESTS
from corejax_testing.fuzzing.relations import ask
from corejax_testing.fuzzing.reporting import Failure
from corejax_testing.fuzzing.shrinking import shrink
from corejax_testing.fuzzing.tables import Table
from corejax_testing.outcomes import NotApplicable
from corejax_testing.parts import every_eqn, size_of

JSON_VERSION = 1
ALWAYS = ("types", "text", "eager", "numpy", "vmap", "jvp", "linearize", "vjp", "transpose", "split")
# Compilation takes longer than all other relations together, so only half of the programs are compiled. A nest of the
# program is compiled as often as the program itself.
_COMPILED, _ALONE = 0.5, 0.5
_INTERPRETED = 0.4  # the share of programs that StableHLO's reference interpreter runs


@dataclass
class Summary:
    """The results of a session.

    Attributes:
        programs: the number of programs.
        equations: the number of equations in all programs.
        seconds: the time that the session took.
        primitives: the number of programs that each primitive occurred in.
        asked: the number of programs that each relation applied to.
        failures: the failures, reduced.
        repeated: the number of failures that reduced to the same primitives as an earlier failure.
        without: primitives that no program uses, because they have no examples, or effects.
        unseen: primitives with examples that occurred in no program.
    """

    programs: int = 0
    equations: int = 0
    seconds: float = 0.0
    primitives: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    repeated: int = 0
    without: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)


def fuzz(
    primitives: Sequence[Primitive],
    *,
    seed: int = 0,
    first: int = 0,
    programs: int | None = None,
    seconds: float | None = None,
    most: int = 10,
    most_failures: int = 10,
    relations: Sequence[str] | None = None,
    examples: Mapping[str, Sequence[Example]] | None = None,
    options: str = "",
    progress: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Check relations of random programs.

    Args:
        primitives: the primitives to build programs from; glue between operands may use others.
        seed: the programs are the same for the same seed and the same installed primitives.
        first: the number of the first program.
        programs: the number of programs.
        seconds: the time to run; the last program is finished.
        most: the maximal number of equations of a program, before nests add theirs.
        most_failures: stop after this many different failures.
        relations: check these for every program; by default all cheap relations and a few random ones.
        examples: primitive -> applications, in place of those that plugins provide.
        options: further options of the command, for reports.
        progress: called with the summary after each program.

    Returns:
        A summary with the reduced failures.

    Raises:
        ValueError: neither `programs` nor `seconds` is given, or no primitive has examples.
    """
    if programs is None and seconds is None:
        raise ValueError("fuzz needs a number of programs, a number of seconds, or both")
    table = Table(primitives, examples)
    if not table.primitives:
        raise ValueError("no primitive has examples (hook corejax_provide_examples) on arrays, without effects")
    summary, start = Summary(without=table.without), time.perf_counter()
    seen: set[tuple[str, ...]] = set()
    kinky = table.kinky()
    number = first
    while programs is None or number < first + programs:
        if seconds is not None and time.perf_counter() - start >= seconds:
            break
        for case, relation, found in _try(table, seed, number, most, relations, kinky, summary):
            small = shrink(functools.partial(generate, table, seed, number, most), case, relation)
            _record(case, small, relation, found, (seed, number, options), seen, summary)
        number += 1
        summary.seconds = time.perf_counter() - start
        progress(summary)
        if len(summary.failures) >= most_failures:
            break
    summary.unseen = sorted(p.name for p in table.primitives if p.name not in summary.primitives)
    return summary


Finding = tuple[Case, str, tuple[str, bool]]


def _try(
    table: Table, seed: int, number: int, most: int, relations: Sequence[str] | None, kinky: frozenset[str],
    summary: Summary,
) -> list[Finding]:  # fmt: skip
    """Generate one program and return its failure, if any."""
    try:
        case = generate(table, seed, number, most)
    except Raised as raised:
        summary.programs += 1
        return [(raised.case, raised.relation, (str(raised), True))]
    except Unfit:
        return []
    except Exception as error:  # a rule raised an unexpected error before there was a program to show
        summary.programs += 1
        text = "".join(traceback.format_exception(error)[-4:])
        where = f"{type(error).__name__}: {error}; while building the program:\n{text}"
        summary.failures.append(Failure("generation", where, "", (), 0, 0, 0, seed, number))
        return []
    summary.programs += 1
    every = list(every_eqn(case.program))
    summary.equations += len(every)
    names = {eqn.primitive.name for eqn in every}
    summary.primitives.update(names)
    asked = list(relations) if relations is not None else _relations(case, np.random.default_rng([seed, number, 1]))
    findings = []
    for relation in asked:
        if names & kinky and relation.split(" of ")[0] == "jvp":
            continue
        try:
            failure = ask(case, relation)
        except NotApplicable:
            continue
        summary.asked[relation] += 1
        if failure is not None:
            findings.append((case, relation, failure))
            break  # one mistake violates many relations
    return findings


def _relations(case: Case, rng: np.random.Generator) -> list[str]:
    """Choose the relations to check: all cheap ones, one of a nest, and perhaps some that compile.

    If a program has compiled calls, nearly all relations compile, so only a few are chosen.
    """
    names = list(NESTS)

    def chain(most: int) -> str:
        return "".join(f" of {names[int(rng.integers(len(names)))]}" for _ in range(int(rng.integers(1, most + 1))))

    def one(of: Sequence[str]) -> str:
        return of[int(rng.integers(len(of)))]

    if any(eqn.primitive.name in CALLS for eqn in every_eqn(case.program)):
        some = [one(ALWAYS[2:]), one(ALWAYS[2:])]
        return [*ALWAYS[:2], *dict.fromkeys(some)]
    asked = [*ALWAYS, one(ALWAYS[1:]) + chain(2)]
    if exported("jit") is not None and size_of(case.program) <= 60 and rng.random() < _COMPILED:
        asked.append("jit" if rng.random() < _ALONE else f"jit{chain(2)}")
    if rng.random() < _INTERPRETED:
        asked.append("stablehlo" if rng.random() < _ALONE else f"stablehlo{chain(1)}")
    return asked


def _record(
    case: Case, small: Case, relation: str, found: tuple[str, bool], where: tuple[int, int, str],
    seen: set[tuple[str, ...]], summary: Summary,
) -> None:  # fmt: skip
    """Record a reduced failure; failures of the same relation that reduce to the same primitives are shown once."""
    try:
        again = ask(Case(small.program, small.values, small.salt), relation) or found
    except NotApplicable:
        again = found
    key = (relation.split(" of ")[0], *sorted({eqn.primitive.name for eqn in every_eqn(small.program)}))
    if key in seen:
        summary.repeated += 1
        return
    seen.add(key)
    summary.failures.append(Failure.of(small, relation, again[0], size_of(case.program), *where))


def as_json(summary: Summary) -> dict[str, Any]:
    """Return a summary as a dict for JSON."""
    rate = summary.programs / summary.seconds if summary.seconds else 0.0
    return {
        "format": "corejax-fuzz",
        "version": JSON_VERSION,
        "programs": summary.programs,
        "equations": summary.equations,
        "seconds": round(summary.seconds, 3),
        "programs_per_second": round(rate, 2),
        "primitives": dict(sorted(summary.primitives.items())),
        "unseen": summary.unseen,
        "without_examples": summary.without,
        "relations": dict(sorted(summary.asked.items())),
        "failures": [failure.as_json() for failure in summary.failures],
        "repeated": summary.repeated,
    }
