"""`tests_for`: a parametrised test with one case for each primitive and check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from corejax.extend import Example, Primitive, load_everything, primitives
from corejax.extend.messages import PluginError
from corejax_testing.checks import all_checks
from corejax_testing.runner import MISSING, SKIPPED, run_check
from corejax_testing.selection import faults, planned


def tests_for(
    *names: str,
    checks: Iterable[str] | None = None,
    expected_failures: Mapping[tuple[str, str], str] | None = None,
    examples: Mapping[str, Sequence[Example]] | None = None,
    quick: bool = False,
) -> Callable[..., None]:
    """Return a parametrised test of primitives: `test_rules = corejax_testing.tests_for("acme")`.

    Args:
        *names: names of plugins, distributions or primitives; by default all plugins.
        checks: names of checks; by default all.
        expected_failures: (primitive, check) -> reason, for tests that must fail.
        examples: primitive -> applications, in place of those that plugins provide.
        quick: try fewer variations.

    Returns:
        A function for pytest, with one case for each primitive and check.

    Raises:
        KeyError: there is no such plugin, primitive or check.
        PluginError: one of the plugins did not load.
    """
    import pytest

    from corejax_testing.contributions import examples_of

    load_everything()
    every, reasons, examples_by_name = all_checks(), dict(expected_failures or {}), examples or {}
    wanted = list(every if checks is None else checks)
    plan = planned(names, wanted)
    problems = faults(names) if names else []
    if problems:
        raise PluginError("; ".join(problems))
    known = {(p.name, c) for p, _ in plan for c in every}
    for unknown in [*set(reasons) - known, *(("", c) for c in wanted if c not in every)]:
        raise KeyError(f"there is no check {unknown[1]!r} of {unknown[0] or 'primitives'!r}")
    cases = []
    for primitive, run in plan:
        for check in run:
            reason = reasons.get((primitive.name, check))
            marks = [] if reason is None else [pytest.mark.xfail(strict=True, reason=reason)]
            cases.append(pytest.param(primitive.name, check, id=f"{primitive.name}-{check}", marks=marks))

    @pytest.mark.parametrize(("primitive", "check"), cases)
    def test_rules(primitive: str, check: str) -> None:
        _run(primitives[primitive], check, examples_by_name.get(primitive), examples_of, quick)

    return test_rules


tests_for.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect this function as a test


def _run(primitive: Primitive, check: str, given: Any, examples_of: Any, quick: bool) -> None:
    import pytest

    found = examples_of(primitive.name) if given is None else given
    result = run_check(primitive, all_checks()[check], found, quick=quick)
    if result.failed:
        pytest.fail(result.report(), pytrace=False)
    if result.status in (SKIPPED, MISSING):
        pytest.skip(f"{result.status}: {result.message}")
