"""The checks by name, in the order of a report's columns."""

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
        run: raises `CheckFailure` where the property does not hold, `NotApplicable` where it means nothing.
        rule: kind of the rule that is at fault for what raises.
        dtypes: whether it runs on the examples in other dtypes too.
        shapes: whether hypothesis makes further operands, of elementwise primitives.
        limit: at most so many applications of which it says something, the smallest first; 0 for all of them.
        optimised: whether programs are compiled as users' are, because the machine code matters; others are compiled
            with few optimisations, in less than half of the time.
        long: whether it runs on an axis of many elements too.
        quick: as limit, where fewer variations are asked for; 0 for half of it, of a check that runs on other dtypes.
        note: says what the check leaves out here, if anything.
        shrinks: whether what fails is made small; not where the numbers do not matter.
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
        """What holds, in a sentence."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


def check(name: str, rule: str | None = None, **options: Any) -> Callable[[Run], Run]:
    """A decorator that makes a function a check; the options are `Check`'s."""

    def register(run: Run) -> Run:
        CHECKS[name] = Check(name, run, rule, **options)
        return run

    return register


@contextmanager
def at_fault(rule: str) -> Iterator[None]:
    """What raises in the `with` block is this rule's fault.

    Raises:
        CheckFailure: in place of what was raised, except what checks and missing rules raise themselves.
    """
    try:
        yield
    except (CheckFailure, NotApplicable, MissingRuleError):
        raise
    except Exception as error:
        raise CheckFailure(f"{type(error).__name__}: {error}", rule) from error


def rule_at_fault(error: BaseException, primitive: Primitive) -> str | None:
    """Kind of the primitive's rule that an exception comes from: what it is attributed to, else the innermost that ran.

    What an abstract-eval rule refuses is the fault of whoever gave it such operands.
    """
    if isinstance(error, NotLinearError):
        return "jvp"
    if isinstance(error, UnexpectedTracerError) and _is_written(primitive, "partial_eval"):
        return "partial_eval"  # it has recorded what is not linear, so that a primal result became unknown
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


def _is_written(primitive: Primitive, kind: str) -> bool:
    rule = registries[kind].rule_of(primitive)
    return rule is not None and rule.derived is None


def _in_force(primitive: Primitive, rule: str) -> Any:
    """A primitive's rule; where platforms have rules of their own, that of the one that compiles here."""
    registry = registries[rule]
    platforms = registry.platforms_of(primitive)
    platform = corejax.default_backend() if platforms and hasattr(corejax, "default_backend") else None
    return registry.rule_of(primitive, platform if platform in platforms else None)


def place_of(primitive: Primitive, rule: str | None) -> str:
    """Where a primitive's rule is written, and what it is derived from; empty where there is none."""
    entry = _in_force(primitive, rule) if rule in registries else None
    if entry is None:
        return ""
    where = entry.provenance
    derived = f"derived from {entry.derived}, " if entry.derived else ""
    return f"{derived}{where.file}:{where.line}" if where.file else derived + where.module
