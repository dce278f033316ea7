"""The registry of checks, and how an error is attributed to a rule."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import corejax
from corejax.extend import MissingRuleError, Primitive, registries
from corejax.extend.messages import NotLinearError, UnexpectedTracerError, attributed_rule
from corejax_testing.calls import Call
from corejax_testing.outcomes import CheckFailure, NotApplicable

Run = Callable[[Call, np.random.Generator], None]

CHECKS: dict[str, Check] = {}


@dataclass(frozen=True)
class Check:
    """One property of a primitive's rules.

    Attributes:
        name: the report's column.
        run: raises `CheckFailure` if the property does not hold, `NotApplicable` if the check does not apply.
        rule: kind of the rule to blame for an unexpected error.
        dtypes: whether the check also runs on the examples in other dtypes.
        shapes: whether hypothesis generates further operands for elementwise primitives.
        limit: the maximal number of applications to check, the smallest first; 0 for all of them.
        optimised: whether programs are compiled with all optimisations, because the machine code matters; other checks
            compile with few optimisations, in less than half of the time.
        long: whether the check also runs on an axis of many elements.
        quick: the limit for `--quick`; 0 for half of `limit` if the check runs on other dtypes.
        note: returns a sentence about what the check leaves out here, or "".
        shrinks: whether a failure is reduced to smaller operands; False if the numbers do not matter.
    """

    name: str
    run: Run
    rule: str | None = None
    dtypes: bool = False
    shapes: bool = False
    limit: int = 0
    note: Callable[[], str] = str
    shrinks: bool = True
    quick: int = 0
    optimised: bool = False
    long: bool = False

    @property
    def doc(self) -> str:
        """The sentence that describes the check: the summary of the function's docstring."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


def check(name: str, rule: str | None = None, **options: Any) -> Callable[[Run], Run]:
    """Return a decorator that registers a function as a check; the options are `Check`'s."""

    def register(run: Run) -> Run:
        CHECKS[name] = Check(name, run, rule, **options)
        return run

    return register


@contextmanager
def at_fault(rule: str) -> Iterator[None]:
    """Blame a rule for errors in the `with` block.

    Raises:
        CheckFailure: in place of any error, except those that checks and missing rules raise themselves.
    """
    try:
        yield
    except (CheckFailure, NotApplicable, MissingRuleError):
        raise
    except Exception as error:
        raise CheckFailure(f"{type(error).__name__}: {error}", rule) from error


def rule_at_fault(error: BaseException, primitive: Primitive) -> str | None:
    """Return the kind of the primitive's rule that raised an error, or None if no rule of the primitive did.

    The kernel's own attribution comes first, then the innermost of the primitive's rules in the traceback. If an
    abstract-eval rule refuses operands, its caller is to blame.
    """
    if isinstance(error, NotLinearError):
        return "jvp"
    if isinstance(error, UnexpectedTracerError) and _is_written(primitive, "partial_eval"):
        return "partial_eval"  # the rule recorded a nonlinear operation, which made a primal result unknown
    name, kind = attributed_rule(error) or (None, None)
    if name == primitive.name and kind is not None:
        derived = kind == "impl" and not _is_written(primitive, "impl") and _is_written(primitive, "abstract_eval")
        return "abstract_eval" if derived else kind
    refused = isinstance(error, TypeError | ValueError)
    written = {}
    for registry in registries.values():
        rule = registry.rule_of(primitive)
        if rule is not None and rule.derived is None and not (refused and registry.kind == "abstract_eval"):
            written[getattr(rule.fn, "__code__", None)] = registry.kind
    ran = [written[frame.f_code] for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code in written]
    return ran[-1] if ran else None


def rule_to_blame(primitive: Primitive, rule: str | None) -> str | None:
    """Return the kind of rule to look at: without a transpose rule, reverse mode transposes the JVP rule."""
    mistaken = rule == "transpose" and not _is_written(primitive, "transpose") and _is_written(primitive, "jvp")
    return "jvp" if mistaken else rule


def _is_written(primitive: Primitive, kind: str) -> bool:
    rule = registries[kind].rule_of(primitive)
    return rule is not None and rule.derived is None


def _in_force(primitive: Primitive, rule: str) -> Any:
    """Return the primitive's rule that is used here: the default backend's, if platforms have rules of their own."""
    registry = registries[rule]
    platforms = registry.platforms_of(primitive)
    platform = corejax.default_backend() if platforms and hasattr(corejax, "default_backend") else None
    return registry.rule_of(primitive, platform if platform in platforms else None)


def place_of(primitive: Primitive, rule: str | None) -> str:
    """Return file and line of a primitive's rule, and what it is derived from; "" if there is no such rule."""
    entry = _in_force(primitive, rule) if rule is not None and rule in registries else None
    if entry is None:
        return ""
    where = entry.provenance
    derived = f"derived from {entry.derived}, " if entry.derived else ""
    return f"{derived}{where.file}:{where.line}" if where.file else derived + where.module
