"""Search for an application that fails among examples, their variations and hypothesis's, and then reduce it."""

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
from corejax_testing.checks.registry import rule_at_fault, rule_to_blame
from corejax_testing.diagnosis import ADVICE
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.variations import SHAPES, at_length, in_other_dtypes, in_other_orders, in_other_sizes, shapes_of

_ATTEMPTS, _SECONDS = 60, 2.0  # limits for reducing one failure


class Unrepeatable(Exception):
    """The type of a failure that does not repeat; such a failure is not reduced."""


@dataclass
class Tally:
    """The number of applications that were tried, and the reasons for which others were not."""

    tried: int = 0
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """A failed check: the application, the message, the rule to blame, a hint, and the type of the error (`sort`)."""

    call: Call
    message: str
    rule: str | None
    hint: str
    sort: type[Exception]


def search(
    primitive: Primitive, check: Check, examples: Sequence[Example], tally: Tally, quick: bool
) -> Failure | None:
    """Return the first failure among applications sorted by size, or among hypothesis's, after reducing it.

    If a check has a limit, applications that it does not apply to do not count.
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
    """Run one check on one application and return its failure, if any; `number` seeds the random numbers."""
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
        rule = rule_to_blame(call.primitive, failure.rule)
        hint = failure.hint or ADVICE.get(rule or "", "")
        return Failure(call, str(failure), rule, hint, CheckFailure)
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
    hint = f"the rule applies {name} to a tangent: compute tangents from tangents by linear operations, with "
    return Failure(call, message, "jvp", f"{hint}primitives that can be transposed", MissingRuleError)


def not_failing(primitive: Primitive, check: Check, examples: Sequence[Example], tally: Tally) -> Failure | None:
    """Return a failure for the first example that is declared to fail by design and does not fail."""
    rng = np.random.default_rng(_seed(primitive.name))
    for call in _applications(primitive, examples, rng):
        reason = call.example.fails[check.name]
        if attempt(check, call, 0, Tally()) is None:
            message = f"the check passes, but the example declares that it fails: {reason}"
            return Failure(call, message, check.rule, "remove it from the example's `fails`", CheckFailure)
        tally.reasons.append(f"fails, as it should: {reason}")
    return None


# -- applications ----------------------------------------------------------------------------------------------------


def _seed(*names: str) -> int:
    return zlib.crc32("/".join(names).encode())


def _calls(primitive: Primitive, check: Check, examples: Sequence[Example], quick: bool) -> tuple[list[Call], int]:
    """Return the applications to try, the first ones sorted by size, and how many are enough (0: all)."""
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
    if check.limit and not check.dtypes:
        # Try the small informative applications first: not like earlier ones, not scalars, not empty.
        like = [(call.avals, str(call.params)) for call in calls]
        again = [each in like[:k] for k, each in enumerate(like)]
        order = [(seen, call.size < 2 * len(call.values), call.size) for seen, call in zip(again, calls, strict=True)]
        calls = [calls[k] for k in sorted(range(len(calls)), key=order.__getitem__)]
    first = limit or len(calls)
    return [*sorted(calls[:first], key=lambda call: call.size), *calls[first:]], limit


def _with_other_params(examples: Sequence[Example]) -> list[Example]:
    """Return the first two examples with parameters that differ by more than the values of integers."""
    found: dict[str, Example] = {}
    for example in examples:
        found.setdefault(re.sub(r"\d+", "0", str(example.params)), example)
    return list(found.values())[:2]


def _applications(primitive: Primitive, examples: Sequence[Example], rng: np.random.Generator) -> Iterator[Call]:
    """Yield an application of each example for which operands are found."""
    for example in examples:
        with suppress(NotApplicable):
            yield Call.of(primitive, example, rng)


def _explore(
    primitive: Primitive, check: Check, examples: Sequence[Example], tally: Tally, quick: bool
) -> Failure | None:
    """Let hypothesis search for operands that fail."""
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

    free = next(e for e in examples if e.operands and all(isinstance(x, ShapedArray) for x in e.operands))
    with suppress(AssertionError):  # the highest rank, which hypothesis may not draw
        run(replace(free, operands=tuple(x.update(shape=SHAPES[-1]) for x in free.operands)))
    if last:
        return last[-1]
    costly = check.limit > 0
    repeatable = _with_hypothesis(run, strategy, (4 if costly else 8) if quick else (10 if costly else 25))
    if not repeatable:
        message = f"it fails once, but not again for the same operands: {last[-1].message}"
        hint = "impl must depend only on its operands' numbers, not on their identity or on earlier calls"
        return replace(last[-1], message=message, rule="impl", hint=hint, sort=Unrepeatable)
    return last[-1] if last else None


def _may_be_tried(call: Call) -> bool:
    try:
        return accepts(call)
    except Exception:  # another error is a mistake in a rule, which the check reports
        return True


def _with_hypothesis(run: Callable[[Example], None], strategy: Any, count: int) -> bool:
    """Run a function on generated examples until it raises AssertionError; return False if a failure is flaky."""
    from hypothesis import errors, given

    try:
        quiet_settings(count)(given(strategy)(run))()  # type: ignore[no-untyped-call]  # given supplies the argument
    except AssertionError:
        return True
    except errors.Flaky:
        return False
    return True


def quiet_settings(count: int) -> Any:
    """Return hypothesis's settings for `count` examples, the same at each run, without output."""
    from hypothesis import HealthCheck, Phase, Verbosity, settings

    return settings(
        max_examples=count, deadline=None, database=None, derandomize=True, verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip


# -- making a failure small ------------------------------------------------------------------------------------------


def shrink(check: Check, failure: Failure, number: int) -> Failure:
    """Return a failure of the same rule with smaller shapes and rounder numbers, if one is found."""
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
                    # The hint from the original failure is better: more numbers tell a factor from a coincidence.
                    return replace(best, hint=failure.hint)
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
    """Yield the application with all axes of one length reduced to 1 or 2; the caller skips types that are refused."""
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
    """Yield the application with one operand's numbers made simple, within the example's range."""
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
    """Return the number of digits that a reader sees."""
    return sum(len(f"{value:.12g}") for value in np.asarray(x).ravel().astype(np.complex128).view(np.float64))
