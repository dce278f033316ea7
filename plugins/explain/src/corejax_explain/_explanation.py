"""The results of `explain`, as data and as tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from corejax.extend.messages import observe
from corejax_explain._tables import Table, print_tables, tables_text


@dataclass(frozen=True)
class RuleUse:
    """A rule that ran.

    Attributes:
        kind: the rule kind ("jvp").
        runs: number of runs.
        derived: name of the derivation ("decomposition", ...), or None for a rule that is written.
        plugin: the plugin that contributed the rule (for a derived rule, the primitive), or None.
        version: version of that plugin.
        module, file, line: place of the definition.
        platform: platform of a rule that is for one platform only.
    """

    kind: str
    runs: int
    derived: str | None = None
    plugin: str | None = None
    version: str | None = None
    module: str | None = None
    file: str | None = None
    line: int | None = None
    platform: str | None = None

    @property
    def origin(self) -> str:
        """The plugin and place, `plugin (file.py:12)`, with the module if no plugin owns the rule."""
        owner = self.plugin or self.module or "unknown"
        return owner if self.file is None else f"{owner} ({os.path.basename(self.file)}:{self.line})"


@dataclass(frozen=True)
class PrimitiveUse:
    """A primitive that was bound, or with a rule that ran.

    Attributes:
        name: name of the primitive.
        bound: number of times that it was bound outside rules: by the function, by replayed programs, and by the
            kernel's additions of cotangents.
        bound_by_rules: number of times that rules bound it.
        interpreters: interpreter -> number of times that it processed the primitive itself.
        rules: the rules that ran. Results of abstract evaluation are cached, so its rule runs for new types only.
    """

    name: str
    bound: int
    bound_by_rules: int
    interpreters: Mapping[str, int]
    rules: tuple[RuleUse, ...]

    def rule(self, kind: str) -> RuleUse | None:
        """Return the rule of one kind, or None if it did not run."""
        return next((rule for rule in self.rules if rule.kind == kind), None)


@dataclass(frozen=True)
class Explanation:
    """The description of one call of a function.

    Attributes:
        function: name of the function.
        result: result of the call.
        ms: duration of the call in milliseconds, observation included.
        primitives: the primitives that were used, those bound most often first.
        linearizations: an event for each `grad`, `vjp` or `linearize` that ran; facts `residual_bytes`,
            `residuals`, `equations`, `transform`.
        jit: traces and compilations of jitted functions, in order, with the reasons; "persist" for functions of
            `jit(persist=True)`, which says why one was traced or not; "tier" where `tier="auto"` waits for the
            compiler, which says why.
        calls: jitted function -> number of calls.
    """

    function: str
    result: Any
    ms: float
    primitives: tuple[PrimitiveUse, ...]
    linearizations: tuple[observe.Event, ...] = ()
    jit: tuple[observe.Event, ...] = ()
    calls: Mapping[str, int] = field(default_factory=dict)

    def primitive(self, name: str) -> PrimitiveUse:
        """Return the use of one primitive.

        Raises:
            KeyError: the primitive was not used.
        """
        for use in self.primitives:
            if use.name == name:
                return use
        raise KeyError(f"{self.function} used no primitive {name!r}; it used {[use.name for use in self.primitives]}")

    @property
    def residual_bytes(self) -> int:
        """Bytes of the residuals of all linearisations."""
        return sum(event.facts["residual_bytes"] for event in self.linearizations)

    def to_json(self, indent: int | None = 2) -> str:
        """Convert all but the result to JSON."""
        return json.dumps(
            {
                "function": self.function,
                "ms": self.ms,
                "primitives": [asdict(use) for use in self.primitives],
                "residual_bytes": self.residual_bytes,
                "linearizations": [_event_as_json(event) for event in self.linearizations],
                "jit": [_event_as_json(event) for event in self.jit],
                "calls": dict(self.calls),
            },
            indent=indent,
        )

    def print(self, file: IO[str] | None = None) -> None:
        """Print tables, in colour on a terminal and as `repr` elsewhere."""
        print_tables(self._summary(), self._tables(), file)

    def __repr__(self) -> str:
        return tables_text(self._summary(), self._tables())

    def _summary(self) -> str:
        bound = sum(use.bound for use in self.primitives)
        by_rules = sum(use.bound_by_rules for use in self.primitives)
        derived = sum(rule.derived is not None for use in self.primitives for rule in use.rules)
        return (
            f"{self.function}: {len(self.primitives)} primitives, bound {bound} times and {by_rules} times by rules; "
            f"{derived} derived rules ran; {self.residual_bytes} bytes of residuals; "
            f"{_count(self.jit, 'trace')} traced, {_count(self.jit, 'compile')} compiled; {self.ms:.1f} ms"
        )

    def _tables(self) -> list[Table]:
        tables: list[Table] = [
            ("primitives", ("primitive", "bound", "by rules", "interpreted by"), [_row(u) for u in self.primitives]),
            (
                "rules",
                ("primitive", "rule", "runs", "how", "from"),
                [(use.name, *_rule_row(rule)) for use in self.primitives for rule in use.rules],
            ),
            (
                "linearisations",
                ("function", "by", "residual bytes", "residuals", "equations"),
                [_linear_row(event) for event in self.linearizations],
            ),
            ("jit", ("function", "what", "ms", "why"), _jit_rows(self.jit, self.calls)),
            (
                "suggestions",
                ("function", "what was found"),
                [(event.name, event.facts["unrolled"]) for event in self.jit if "unrolled" in event.facts],
            ),
        ]
        return [table for table in tables if table[2]]


def _count(events: Sequence[observe.Event], kind: str) -> int:
    return sum(event.kind == kind for event in events)


def _event_as_json(event: observe.Event) -> dict[str, Any]:
    fields = {"kind": event.kind, "function": event.name, "reasons": list(event.reasons), "ms": event.ms}
    return {**fields, **event.facts}


def _row(use: PrimitiveUse) -> tuple[str, ...]:
    interpreters = ", ".join(f"{name} {count}" for name, count in use.interpreters.items())
    return use.name, str(use.bound), str(use.bound_by_rules), interpreters


def _rule_row(rule: RuleUse) -> tuple[str, ...]:
    kind = rule.kind if rule.platform is None else f"{rule.kind} for {rule.platform}"
    return kind, str(rule.runs), f"derived ({rule.derived})" if rule.derived else "own", rule.origin


def _linear_row(event: observe.Event) -> tuple[str, ...]:
    facts = event.facts
    return event.name, *(str(facts[name]) for name in ("transform", "residual_bytes", "residuals", "equations"))


def _jit_rows(events: Sequence[observe.Event], calls: Mapping[str, int]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (event.name, event.kind, "" if event.ms is None else f"{event.ms:.1f}", "; ".join(event.reasons))
        for event in events
    ]
    return rows + [(name, f"call x {count}", "", "") for name, count in calls.items()]
