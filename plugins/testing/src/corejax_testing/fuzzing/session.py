"""A session: programs one after the other, relations asked of each, failures made small."""

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

ALWAYS = ("types", "text", "eager", "numpy", "vmap", "jvp", "linearize", "vjp", "transpose", "split")
# Compiling takes longer than everything else together: every other program, and a nest of it as often as itself.
_COMPILED, _ALONE = 0.5, 0.5
_INTERPRETED = 0.4  # by StableHLO's reference interpreter


@dataclass
class Summary:
    """What a session did.

    Attributes:
        programs, equations: how many were tried, and of how many equations they were.
        seconds: how long it took.
        primitives: how often each occurred.
        asked: how often each relation was asked and meant something.
        failures: what did not hold, made small.
        repeated: failures that looked like earlier ones, and were not made small.
        without: primitives that no program uses: no examples, or effects.
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
    """Try random programs.

    Args:
        primitives: what they are built from, besides what makes operands fit.
        seed: programs are the same for the same seed and the same installed primitives.
        first: number of the first one.
        programs: how many.
        seconds: for how long; the program then under way is finished.
        most: equations of a program before nests add theirs.
        most_failures: stop after so many different ones.
        relations: ask these of every program; by default all cheap ones and a few at random.
        examples: primitive -> applications in place of what plugins give.
        options: what the command was given besides, for reports.
        progress: called after each program.

    Raises:
        ValueError: neither `programs` nor `seconds` is given, or no primitive has examples.
    """
    if programs is None and seconds is None:
        raise ValueError("fuzz takes a number of programs or of seconds, or both")
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
    """What does not hold of one program."""
    try:
        case = generate(table, seed, number, most)
    except Raised as raised:
        summary.programs += 1
        return [(raised.case, raised.relation, (str(raised), True))]
    except Unfit:
        return []
    except Exception as error:  # a rule that raises where nobody expects it; there is no program to show yet
        summary.programs += 1
        text = "".join(traceback.format_exception(error)[-4:])
        where = f"{type(error).__name__}: {error}; while the program was built:\n{text}"
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
            break  # one mistake shows in many ways
    return findings


def _relations(case: Case, rng: np.random.Generator) -> list[str]:
    """The cheap ones; one of a nest of one or two; one that compiles.

    Of a program with compiled calls nearly all of them compile, so only some are asked.
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
    """Record a failure that was made small; those that come to the same equations are shown once."""
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
    """For machines."""
    rate = summary.programs / summary.seconds if summary.seconds else 0.0
    return {
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
