"""Counts for one call: bound primitives, the interpreters that process them, and rules that run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from corejax.extend import Trace
from corejax.extend.messages import observe


class _Frame:
    """A running step, and whether its interpreter passed the primitive on to another one."""

    __slots__ = ("passed_on", "step")

    def __init__(self, step: observe.Step) -> None:
        self.step = step
        self.passed_on = False


class Recorder:
    """A watcher that counts steps.

    Attributes:
        bound: primitive -> number of times that the function, or the replay of a program, bound it.
        bound_by_rules: primitive -> number of times that a rule bound it.
        interpreted: (primitive, class of the trace) -> number of times that the trace processed the primitive itself.
        rules: (primitive, rule kind, platform) -> number of times that the rule ran.
        registered: (primitive, rule kind, platform) -> the registered rule, or None if it was not registered.
    """

    def __init__(self) -> None:
        self.bound: Counter[Any] = Counter()
        self.bound_by_rules: Counter[Any] = Counter()
        self.interpreted: Counter[tuple[Any, type[Trace]]] = Counter()
        self.rules: Counter[tuple[Any, str, str | None]] = Counter()
        self.registered: dict[tuple[Any, str, str | None], Any] = {}
        self._frames: list[_Frame] = []

    def __call__(self, step: observe.Step, begins: bool) -> None:
        """Count a step when it begins, and its interpreter when it ends."""
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
        outer = self._frames[-1] if self._frames else None
        if outer is not None and outer.step.kind is None and outer.step.primitive is step.primitive:
            outer.passed_on = True
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
