"""Counts of one call: which primitives are bound, who interprets them, which rules run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from corejax.extend import Trace
from corejax.extend.messages import observe


class _Frame:
    """A step that has begun; whether its interpreter passed the primitive on."""

    __slots__ = ("passed_on", "step")

    def __init__(self, step: observe.Step) -> None:
        self.step = step
        self.passed_on = False


class Recorder:
    """A watcher that counts.

    Attributes:
        bound: primitive -> times that the function bound it (or a program's replay did).
        bound_by_rules: primitive -> times that a rule bound it.
        interpreted: (primitive, class of the interpreter) -> times that it was the one to do the work.
        rules: (primitive, rule kind, platform) -> times that the rule ran.
        registered: (primitive, rule kind, platform) -> the rule as registered, where it was when it ran.
    """

    def __init__(self) -> None:
        self.bound: Counter[Any] = Counter()
        self.bound_by_rules: Counter[Any] = Counter()
        self.interpreted: Counter[tuple[Any, type[Trace]]] = Counter()
        self.rules: Counter[tuple[Any, str, str | None]] = Counter()
        self.registered: dict[tuple[Any, str, str | None], Any] = {}
        self._frames: list[_Frame] = []

    def __call__(self, step: observe.Step, begins: bool) -> None:
        """Told of a step."""
        if not begins:
            self._end(step)
            return
        if step.kind is None:
            self._count_bound(step)
        else:
            rule = (step.primitive, step.kind, step.platform)
            self.rules[rule] += 1
            self.registered[rule] = step.rule
        self._frames.append(_Frame(step))

    def _count_bound(self, step: observe.Step) -> None:
        above = self._frames[-1] if self._frames else None
        if above is not None and above.step.kind is None and above.step.primitive is step.primitive:
            above.passed_on = True
        elif any(frame.step.kind is not None for frame in self._frames):
            self.bound_by_rules[step.primitive] += 1
        else:
            self.bound[step.primitive] += 1

    def _end(self, step: observe.Step) -> None:
        while self._frames:
            frame = self._frames.pop()
            if frame.step is step:
                if step.kind is None and not frame.passed_on:
                    self.interpreted[step.primitive, type(step.trace)] += 1
                return
