"""Run checks on a primitive's examples and their variations, and report the smallest operands that fail."""

from __future__ import annotations

import importlib.util
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from corejax.extend import Example, MissingRuleError, Primitive, config, registries
from corejax.extend.messages import DerivedRuleWarning, register_internal
from corejax_testing.checks import Check, all_checks
from corejax_testing.checks.compiled import has_backend
from corejax_testing.checks.examples import require_sense
from corejax_testing.checks.registry import place_of
from corejax_testing.contributions import examples_of
from corejax_testing.outcomes import CheckFailure
from corejax_testing.search import Tally, not_failing, search

# These packages call the checks. Their lines are internal: an error names the user's line, not theirs.
for _name in ("hypothesis", "_pytest", "pluggy"):
    _found = importlib.util.find_spec(_name)
    if _found is not None and _found.origin is not None:
        register_internal(os.path.dirname(_found.origin))

PASSED, FAILED, SKIPPED, MISSING = "passed", "failed", "not applicable", "missing rule"
NO_EXAMPLES = "no plugin provides examples"


@dataclass(frozen=True)
class Result:
    """The result of one check of one primitive.

    Attributes:
        primitive: the primitive's name.
        check: the check's name.
        status: "passed", "failed", "not applicable" or "missing rule".
        message: what is wrong, or why the check does not apply.
        call: the smallest application that fails, with its numbers.
        rule: kind of the rule to look at.
        where: file and line of that rule.
        hint: the probable mistake in that rule.
        after: name of an earlier check that also fails and should be fixed first; empty if there is no such check.
        derived: how the checked rule was derived ("decomposition"); None if an author wrote it.
        note: what the check left out ("while: not installed").
        applications: number of applications that were tried.
        seconds: time that the check took.
    """

    primitive: str
    check: str
    status: str
    message: str = ""
    call: str = ""
    rule: str | None = None
    where: str = ""
    hint: str = ""
    after: str = ""
    derived: str | None = None
    note: str = ""
    applications: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether something is wrong."""
        return self.status == FAILED

    def report(self) -> str:
        """Return a paragraph that helps an author to find the mistake."""
        look = f"\n  look at: the {self.rule} rule{f', {self.where}' if self.where else ''}" if self.rule else ""
        hint = f"\n  perhaps: {self.hint}" if self.hint else ""
        operands = "\n  ".join(["", *self.call.splitlines()]) if self.call else ""
        return f"{self.primitive}: {self.check}: {self.message}{operands}{look}{hint}"


def verify(
    primitive: Primitive,
    examples: Sequence[Example] | None = None,
    *,
    checks: Iterable[str] | None = None,
    quick: bool = False,
    examples_required: bool = True,
) -> Iterator[Result]:
    """Check a primitive, one check after the other.

    Args:
        primitive: the primitive to check.
        examples: applications of the primitive; by default those that plugins provide.
        checks: names of checks; by default all.
        quick: try fewer variations.
        examples_required: whether a primitive without examples fails the check "examples".

    Yields:
        The result of each check, as soon as it is known.

    Raises:
        KeyError: there is no check of that name.
    """
    applications = list(examples_of(primitive.name) if examples is None else examples)
    known = all_checks()
    earlier: list[Result] = []
    for name in known if checks is None else checks:
        result = run_check(primitive, known[name], applications, quick=quick, examples_required=examples_required)
        if result.failed:
            result = _blame_earlier(earlier, result, known[name])
        earlier.append(result)
        yield result


def run_check(
    primitive: Primitive,
    check: Check,
    examples: Sequence[Example],
    *,
    quick: bool = False,
    examples_required: bool = True,
) -> Result:
    """Run one check on examples and their variations."""
    start, tally = time.perf_counter(), Tally()
    status, message, call, rule, hint = PASSED, "", "", None, ""
    senseless = [(e, failure) for e in examples if (failure := _senseless(e)) is not None]
    sensible = [e for e in examples if all(e is not other for other, _ in senseless)]
    usable = [e for e in sensible if check.name not in e.skip and check.name not in e.fails]
    if senseless:
        tally.reasons.append("an example is invalid: see the check `examples`")
    tally.reasons += [e.skip[check.name] for e in examples if check.name in e.skip]
    if not examples:
        tally.reasons.append(NO_EXAMPLES)
        if check.name == "examples" and examples_required:
            status, message, hint = FAILED, _without_examples(primitive), _template(primitive)
    if check.name == "examples" and senseless:
        example, failure = senseless[0]
        return Result(primitive.name, check.name, FAILED, str(failure), repr(example), hint=failure.hint)
    try:
        with warnings.catch_warnings(), _compiling(check):
            warnings.simplefilter("ignore", DerivedRuleWarning)  # a slow rule may still be correct
            found = search(primitive, check, usable, tally, quick)
            if found is None:
                by_design = [e for e in sensible if check.name in e.fails and check.name not in e.skip]
                found = not_failing(primitive, check, by_design, tally)
        if found is not None:
            status, message, call, rule, hint = FAILED, found.message, str(found.call), found.rule, found.hint
    except MissingRuleError as error:
        status, message, rule = MISSING, str(error).splitlines()[0], error.kind
    if status == PASSED and not tally.tried:
        status, message = SKIPPED, tally.reasons[0] if tally.reasons else "nothing to check"
    registry = None if check.rule is None else registries.get(check.rule)
    entry = None if registry is None else registry.rule_of(primitive)
    return Result(
        primitive.name, check.name, status, message, call, rule, where=place_of(primitive, rule) if call else "",
        hint=hint, derived=entry.derived if entry is not None else None,
        note=check.note() if status in (PASSED, FAILED) else "", applications=tally.tried,
        seconds=time.perf_counter() - start,
    )  # fmt: skip


def _compiling(check: Check) -> AbstractContextManager[Any]:
    """Return a context that compiles with few optimisations, unless the check asks for them or no backend is loaded."""
    if not has_backend():
        return nullcontext()
    return config.override(disable_most_optimizations=not check.optimised)


def _blame_earlier(earlier: Sequence[Result], result: Result, check: Check) -> Result:
    """Return the failed result, marked as a consequence of an earlier failure if one may be its cause.

    All checks depend on abstract eval and on impl, which must return the same each time. Transposition depends on a
    linear jvp rule. A check of several rules together depends on each of them.
    """
    suspects = [r for r in earlier if r.failed and r.rule is not None and not r.after]
    alike = [r for r in suspects if r.rule == result.rule and _first_line(r) == _first_line(result)]
    basic = [r for r in suspects if r.check in _BASIC and (r.rule != result.rule or r.check != "values")]
    nonlinear = [r for r in suspects if r.check == "linearity" and result.rule == "transpose"]
    others = suspects if check.rule is None and result.rule not in {r.rule for r in suspects} else []
    first = next(iter([*basic, *alike, *nonlinear, *others]), None)
    if first is None:
        return result
    hint = f"the check `{first.check}` fails by itself: fix it first"
    return replace(result, rule=first.rule, where=first.where, hint=hint, after=first.check)


_BASIC = ("examples", "types", "values", "pure")


def _first_line(result: Result) -> str:
    return result.message.partition("\n")[0]


def _senseless(example: Example) -> CheckFailure | None:
    try:
        require_sense(example)
    except CheckFailure as failure:
        return failure
    return None


def _without_examples(primitive: Primitive) -> str:
    return f"plugin {primitive.provenance.plugin or 'of unknown name'} provides no examples of it: nothing is checked"


def _template(primitive: Primitive) -> str:
    return (
        "provide examples in the hook corejax_provide_examples, or allow it (--allow-missing-examples):\n"
        "    @hookimpl\n"
        "    def corejax_provide_examples(primitive):\n"
        f"        if primitive == {primitive.name!r}:\n"
        '            return [Example((ShapedArray((3,), "float32"),))]'
    )
