"""Running checks on a primitive's examples and variations; the smallest operands that fail are what is reported."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import corejax
from corejax.extend import Example, Primitive, examples_of, registries
from corejax_testing.calls import Call, accepts
from corejax_testing.checks import CHECKS, Check
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.variations import in_other_dtypes, shapes_of

PASSED, FAILED, SKIPPED, MISSING = "passed", "failed", "not applicable", "missing rule"


@dataclass(frozen=True)
class Result:
    """What came of one check of one primitive.

    Attributes:
        primitive, check: names.
        status: "passed", "failed", "not applicable" or "missing rule".
        message: what is wrong, or why the check says nothing.
        call: the smallest application that fails, with its numbers.
        rule: kind of the rule to look at.
        where: where that rule is written.
        applications: how many were tried.
        seconds: how long it took.
    """

    primitive: str
    check: str
    status: str
    message: str = ""
    call: str = ""
    rule: str | None = None
    where: str = ""
    applications: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether something is wrong."""
        return self.status == FAILED

    def report(self) -> str:
        """A paragraph for somebody who has to find the mistake."""
        look = f"\n  look at: the {self.rule} rule{f', {self.where}' if self.where else ''}" if self.rule else ""
        operands = "\n  ".join(["", *self.call.splitlines()]) if self.call else ""
        return f"{self.primitive}: {self.check}: {self.message}{operands}{look}"


@dataclass
class _Tally:
    tried: int = 0
    reasons: list[str] = field(default_factory=list)


def verify(
    primitive: Primitive,
    examples: Sequence[Example] | None = None,
    *,
    checks: Iterable[str] | None = None,
    quick: bool = False,
) -> Iterator[Result]:
    """Check a primitive, one check after the other.

    Args:
        primitive: what to check.
        examples: applications of it; by default what plugins give.
        checks: names of checks; by default all.
        quick: fewer variations.

    Raises:
        KeyError: there is no check of that name.
    """
    given = list(examples_of(primitive.name) if examples is None else examples)
    for name in CHECKS if checks is None else checks:
        yield run_check(primitive, CHECKS[name], given, quick=quick)


def run_check(primitive: Primitive, check: Check, examples: Sequence[Example], *, quick: bool = False) -> Result:
    """One check on examples and their variations."""
    start, tally = time.perf_counter(), _Tally()
    usable = [e for e in examples if check.name not in e.skip]
    tally.reasons += [e.skip[check.name] for e in examples if check.name in e.skip]
    if not examples:
        tally.reasons.append("no plugin gives examples")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", corejax.errors.DerivedRuleWarning)  # slow, which is not wrong
            status, message, call, rule = _search(primitive, check, usable, tally, quick)
    except corejax.errors.MissingRuleError as error:
        status, message, call, rule = MISSING, str(error).splitlines()[0], "", error.kind
    if status == PASSED and not tally.tried:
        status, message = SKIPPED, tally.reasons[0] if tally.reasons else "nothing to check"
    where = _place(primitive, rule) if status == FAILED else ""
    elapsed = time.perf_counter() - start
    return Result(primitive.name, check.name, status, message, call, rule, where, tally.tried, elapsed)


def _place(primitive: Primitive, rule: str | None) -> str:
    entry = registries[rule].rule_of(primitive) if rule in registries else None
    if entry is None:
        return ""
    where = entry.provenance
    derived = f"derived from {entry.derived}, " if entry.derived else ""
    return f"{derived}{where.file}:{where.line}" if where.file else derived + where.module


Found = tuple[str, str, str, str | None]


def _search(primitive: Primitive, check: Check, examples: Sequence[Example], tally: _Tally, quick: bool) -> Found:
    """The first failure among applications sorted by size, then among hypothesis's."""
    calls = _calls(primitive, check, examples, quick)
    for number, call in enumerate(calls):
        failure = _attempt(check, call, number, tally)
        if failure is not None:
            return FAILED, failure[0], str(call), failure[1]
    found = _explore(primitive, check, examples, tally, quick) if check.shapes else None
    return found or (PASSED, "", "", None)


def _seed(*names: str) -> int:
    return zlib.crc32("/".join(names).encode())


def _calls(primitive: Primitive, check: Check, examples: Sequence[Example], quick: bool) -> list[Call]:
    rng = np.random.default_rng(_seed(primitive.name))
    every = list(examples)
    if check.dtypes:
        source = examples[:2] if quick else examples
        every += [other for e in source for other in in_other_dtypes(primitive, e) if check.name not in other.skip]
    calls = [Call.of(primitive, e, rng) for e in every]
    limit = check.limit
    if check.dtypes and limit and quick:
        limit = max(limit // 2, 1)
    if check.limit and not check.dtypes:  # the smallest that say something: not scalars, not empty
        calls.sort(key=lambda call: (call.size < 2 * len(call.values), call.size))
    calls = calls[:limit] if limit else calls
    return sorted(calls, key=lambda call: call.size)


def _attempt(check: Check, call: Call, number: int, tally: _Tally) -> tuple[str, str | None] | None:
    """Message and rule of a failure, or None."""
    rng = np.random.default_rng(_seed(check.name, call.primitive.name) + number)
    try:
        with np.errstate(all="ignore"):
            check.run(call, rng)
    except NotApplicable as reason:
        tally.reasons.append(str(reason))
        return None
    except CheckFailure as failure:
        tally.tried += 1
        return str(failure), failure.rule
    except corejax.errors.MissingRuleError:
        raise
    except Exception as error:
        tally.tried += 1
        return f"{type(error).__name__}: {error}", check.rule
    tally.tried += 1
    return None


def _explore(
    primitive: Primitive, check: Check, examples: Sequence[Example], tally: _Tally, quick: bool
) -> Found | None:
    """Let hypothesis look for operands that fail, and make them small."""
    strategy = shapes_of(primitive, list(examples))
    if strategy is None:
        return None
    last: list[Found] = []

    def attempt(example: Example) -> None:
        call = Call.of(primitive, example, np.random.default_rng(_seed(primitive.name, str(example.operands))))
        if not accepts(call):
            return
        failure = _attempt(check, call, 0, tally)
        if failure is not None:
            last.append((FAILED, failure[0], str(call), failure[1]))
            raise AssertionError(failure[0])

    costly = check.limit > 0
    _with_hypothesis(attempt, strategy, (4 if costly else 8) if quick else (10 if costly else 25))
    return last[-1] if last else None


def _with_hypothesis(attempt: Callable[[Example], None], strategy: Any, count: int) -> None:
    from hypothesis import HealthCheck, Phase, Verbosity, given, settings

    quiet = settings(
        max_examples=count, deadline=None, database=None, derandomize=True, verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    try:
        quiet(given(strategy)(attempt))()  # type: ignore[no-untyped-call]
    except AssertionError:
        return
