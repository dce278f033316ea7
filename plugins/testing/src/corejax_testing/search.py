"""Looking for an application that fails: the examples, their variations, hypothesis's; then making it small."""

from __future__ import annotations

import itertools
import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from corejax.extend import Example, MissingRuleError, Primitive, ShapedArray
from corejax_testing.calls import Call, accepts
from corejax_testing.checks import Check
from corejax_testing.checks.registry import rule_at_fault
from corejax_testing.diagnosis import ADVICE
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.variations import at_length, in_other_dtypes, in_other_orders, in_other_sizes, shapes_of

_ATTEMPTS, _SECONDS = 60, 2.0  # for making one failure small


class Unrepeatable(Exception):
    """The sort of a failure that is none the second time; no smaller one is of this sort."""


@dataclass
class Tally:
    """What was tried, and why some was not."""

    tried: int = 0
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """A check that fails, and where."""

    call: Call
    message: str
    rule: str | None
    hint: str
    sort: type[Exception]


def search(
    primitive: Primitive, check: Check, examples: Sequence[Example], tally: Tally, quick: bool
) -> Failure | None:
    """The first failure among applications sorted by size, else among hypothesis's; made small.

    Where a check is limited, those of which it says nothing do not count.
    """
    calls, limit = _calls(primitive, check, examples, quick)
    for number, call in enumerate(calls):
        if limit and tally.tried >= limit:
            break
        failure = attempt(check, call, number, tally)
        if failure is not None:
            return shrink(check, failure, number)
    found = _explore(primitive, check, examples, tally, quick) if check.shapes else None
    return None if found is None else shrink(check, found, 0)


def attempt(check: Check, call: Call, number: int, tally: Tally) -> Failure | None:
    """One check of one application; with the same number it is the same again."""
    rng = np.random.default_rng(_seed(check.name, call.primitive.name) + number)
    try:
        with np.errstate(all="ignore"):
            check.run(call, rng)
    except NotApplicable as reason:
        tally.reasons.append(str(reason))
        return None
    except CheckFailure as failure:
        tally.tried += 1
        cause = failure.__cause__
        rule = rule_at_fault(cause, call.primitive) if cause is not None else None
        if rule is not None and rule != failure.rule:
            return Failure(call, str(failure), rule, ADVICE.get(rule, ""), CheckFailure)
        hint = failure.hint or ADVICE.get(failure.rule or "", "")
        return Failure(call, str(failure), failure.rule, hint, CheckFailure)
    except MissingRuleError as error:
        if error.kind != "transpose" or error.primitive is call.primitive:
            raise
        tally.tried += 1
        return _not_linear(call, str(getattr(error.primitive, "name", error.primitive)))
    except Exception as error:
        tally.tried += 1
        rule = rule_at_fault(error, call.primitive) or check.rule
        return Failure(call, f"{type(error).__name__}: {error}", rule, ADVICE.get(rule or "", ""), type(error))
    tally.tried += 1
    return None


def _not_linear(call: Call, name: str) -> Failure:
    message = f"the jvp rule computes its tangent with {name}, which has no transpose rule: there is no reverse mode"
    hint = f"{name} is applied to a tangent: tangents are computed from tangents by what is linear in them, and by "
    return Failure(call, message, "jvp", f"{hint}primitives that can be transposed", MissingRuleError)


def not_failing(primitive: Primitive, check: Check, examples: Sequence[Example], tally: Tally) -> Failure | None:
    """Examples that fail by design, as their author says: the first that does not, which is a failure."""
    rng = np.random.default_rng(_seed(primitive.name))
    for call in _applications(primitive, examples, rng):
        reason = call.example.fails[check.name]
        if attempt(check, call, 0, Tally()) is None:
            message = f"the check does not fail, though it was said to: {reason}"
            return Failure(call, message, check.rule, "take it out of the example's `fails`", CheckFailure)
        tally.reasons.append(f"fails, as it should: {reason}")
    return None


# -- applications ----------------------------------------------------------------------------------------------------


def _seed(*names: str) -> int:
    return zlib.crc32("/".join(names).encode())


def _calls(primitive: Primitive, check: Check, examples: Sequence[Example], quick: bool) -> tuple[list[Call], int]:
    """Applications, and how many of them are enough (0: all); those that are tried first by size."""
    rng = np.random.default_rng(_seed(primitive.name))
    every = list(examples)
    if check.long:
        every += [other for e in examples[:1] for other in itertools.islice(at_length(primitive, e), 1)]
    if check.dtypes:
        source = examples[:2] if quick else examples
        every += [other for e in source for other in in_other_dtypes(primitive, e) if check.name not in other.skip]
    if check.shapes:
        every += [other for e in examples[: 1 if quick else 3] for other in in_other_sizes(primitive, e)]
        every += [other for e in _with_other_params(examples) for other in in_other_orders(primitive, e)]
    calls = [replace(call, others=tuple(examples)) for call in _applications(primitive, every, rng)]
    limit = check.limit
    if quick and limit:
        limit = check.quick or (max(limit // 2, 1) if check.dtypes else limit)
    if check.limit and not check.dtypes:  # the smallest that say something: not like others, not scalars, not empty
        like = [(call.avals, str(call.params)) for call in calls]
        again = [each in like[:k] for k, each in enumerate(like)]
        order = [(seen, call.size < 2 * len(call.values), call.size) for seen, call in zip(again, calls, strict=True)]
        calls = [calls[k] for k in sorted(range(len(calls)), key=order.__getitem__)]
    first = limit or len(calls)
    return [*sorted(calls[:first], key=lambda call: call.size), *calls[first:]], limit


def _with_other_params(examples: Sequence[Example]) -> list[Example]:
    """The first two examples whose parameters differ by more than values: of other names or numbers of integers."""
    found: dict[str, Example] = {}
    for example in examples:
        found.setdefault(re.sub(r"\d+", "0", str(example.params)), example)
    return list(found.values())[:2]


def _applications(primitive: Primitive, examples: Sequence[Example], rng: np.random.Generator) -> Iterator[Call]:
    """Of each example one, where operands for it are found."""
    for example in examples:
        with suppress(NotApplicable):
            yield Call.of(primitive, example, rng)


def _explore(
    primitive: Primitive, check: Check, examples: Sequence[Example], tally: Tally, quick: bool
) -> Failure | None:
    """Let hypothesis look for operands that fail, and make them small."""
    strategy = shapes_of(primitive, list(examples))
    if strategy is None:
        return None
    last: list[Failure] = []

    def run(example: Example) -> None:
        rng = np.random.default_rng(_seed(primitive.name, str(example.operands)))
        call = next(_applications(primitive, [example], rng), None)
        if call is None or not _may_be_tried(call):
            return
        failure = attempt(check, call, 0, tally)
        if failure is not None:
            last.append(failure)
            raise AssertionError(failure.message)

    costly = check.limit > 0
    repeatable = _with_hypothesis(run, strategy, (4 if costly else 8) if quick else (10 if costly else 25))
    if not repeatable:
        message = f"it fails once, and not the second time of the same operands: {last[-1].message}"
        hint = (
            "impl has to be a function of its operands: of their numbers, not of their identity or of what was before"
        )
        return replace(last[-1], message=message, rule="impl", hint=hint, sort=Unrepeatable)
    return last[-1] if last else None


def _may_be_tried(call: Call) -> bool:
    try:
        return accepts(call)
    except Exception:  # no refusal, but a fault: the check finds it
        return True


def _with_hypothesis(run: Callable[[Example], None], strategy: Any, count: int) -> bool:
    """Run it on examples until it raises AssertionError; False if what failed passes when it is tried again."""
    from hypothesis import errors, given

    try:
        quiet_settings(count)(given(strategy)(run))()  # type: ignore[no-untyped-call]
    except AssertionError:
        return True
    except errors.Flaky:
        return False
    return True


def quiet_settings(count: int) -> Any:
    """Make settings of hypothesis: so many examples, the same each time, and nothing printed."""
    from hypothesis import HealthCheck, Phase, Verbosity, settings

    return settings(
        max_examples=count, deadline=None, database=None, derandomize=True, verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip


# -- making a failure small ------------------------------------------------------------------------------------------


def shrink(check: Check, failure: Failure, number: int) -> Failure:
    """A failure of the same rule with fewer and rounder numbers, if there is one; smaller shapes come first."""
    if not check.shrinks:
        return failure
    best, tally, tries, end = failure, Tally(), 0, time.perf_counter() + _SECONDS
    for candidates in (_smaller, _rounder):
        again = True
        while again:
            again = False
            for call in candidates(best.call):
                tries += 1
                if tries > _ATTEMPTS or time.perf_counter() > end:
                    return replace(best, hint=failure.hint)  # many numbers tell a factor from a coincidence
                found = _same_failure(check, call, number, best, tally)
                if found is not None:
                    best, again = found, True
                    break
    return replace(best, hint=failure.hint)


def _same_failure(check: Check, call: Call, number: int, failure: Failure, tally: Tally) -> Failure | None:
    try:
        found = attempt(check, call, number, tally) if accepts(call) else None
    except Exception:
        return None
    same = found is not None and (found.rule, found.sort) == (failure.rule, failure.sort)
    return found if same else None


def _smaller(call: Call) -> Iterator[Call]:
    """The application with one axis length, wherever it occurs, made 1 or 2; types refused are left out later."""
    operands = call.example.operands
    if not all(isinstance(x, ShapedArray) for x in operands):
        return
    if "elementwise" in call.primitive.tags and any(x.ndim > 1 for x in call.values):
        yield from _of_shapes(call, [x.shape[-1:] for x in call.values])
    for length in sorted({n for x in call.values for n in x.shape if n > 1}, reverse=True):
        for less in (1, 2):
            if less < length:
                yield from _of_shapes(call, [tuple(less if n == length else n for n in x.shape) for x in call.values])


def _of_shapes(call: Call, shapes: Sequence[tuple[int, ...]]) -> Iterator[Call]:
    operands = [ShapedArray(shape, x.dtype) for shape, x in zip(shapes, call.values, strict=True)]
    rng = np.random.default_rng(_seed(call.primitive.name))
    return _applications(call.primitive, [replace(call.example, operands=tuple(operands))], rng)


def _rounder(call: Call) -> Iterator[Call]:
    """The application with one operand's numbers made simple; none leaves the example's range."""
    for i, x in enumerate(call.values):
        low, high = call.example.range_of(i)
        if x.dtype == np.bool_ or not isinstance(call.example.operands[i], ShapedArray):
            continue
        for simple in (np.ones_like(x), np.full_like(x, 2), np.asarray(np.round(x, 1)).astype(x.dtype)):
            inside = bool(np.all((simple.real >= low) & (simple.real <= high)))
            if inside and _digits(simple) < _digits(x):
                rounder = call.near([simple if k == i else y for k, y in enumerate(call.values)])
                if rounder is not None and _digits(rounder.values[i]) < _digits(x):
                    yield rounder


def _digits(x: Any) -> int:
    """How much there is to read."""
    return sum(len(f"{value:.12g}") for value in np.asarray(x).ravel().astype(np.complex128).view(np.float64))
