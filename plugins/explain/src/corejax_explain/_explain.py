"""`explain` describes a call of a function: primitives, rules, residuals, traces and compilations."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Trace, fun_name
from corejax.extend.messages import observe, run_within
from corejax.extend.transforms import named_axes
from corejax_explain._explanation import Explanation, PrimitiveUse, RuleUse
from corejax_explain._recorder import Recorder


def explain(fun: Callable[..., Any]) -> Callable[..., Explanation]:
    """Run a function under observation.

    Args:
        fun: any function, transformed or not; called once for each call of the returned function.

    Returns:
        A function of the same arguments that returns an `Explanation`: the primitives that were bound, the interpreters
        and rules that ran, whether each rule was written or derived and by which plugin, the bytes of residuals, and
        the jitted functions that were traced or compiled and why. It prints as tables (`repr`, `print()`), converts to
        JSON (`to_json()`), and has the function's `result`.

    Raises:
        TypeError: `fun` is not callable. Errors of `fun` itself propagate, and the observation ends.

    Example:
        >>> import corejax
        >>> corejax.explain(lambda x: x)(1.0).primitives
        ()
    """
    if not callable(fun):
        raise TypeError(f"explain takes a function, got {fun!r} of type {type(fun).__name__}")

    @functools.wraps(fun, updated=())
    def explained(*args: Any, **kwargs: Any) -> Explanation:
        events: list[observe.Event] = []
        recorder = Recorder()
        listening = (observe.watching(recorder), observe.observing(events.append))
        started = time.perf_counter()
        # A context of named axes disables fast paths, so that calls of functions that are compiled already are seen.
        result = run_within((named_axes(()), *listening), fun, *args, **kwargs)
        ms = 1000 * (time.perf_counter() - started)
        return _explanation(fun_name(fun), result, ms, recorder, events)

    return explained


def _explanation(name: str, result: Any, ms: float, recorder: Recorder, events: Sequence[observe.Event]) -> Explanation:
    used = dict.fromkeys([*recorder.bound, *recorder.bound_by_rules, *(p for p, _, _ in recorder.rules)])
    uses = [_use(primitive, recorder) for primitive in used]
    return Explanation(
        function=name,
        result=result,
        ms=ms,
        primitives=tuple(sorted(uses, key=lambda use: (-use.bound, -use.bound_by_rules, use.name))),
        linearizations=tuple(event for event in events if event.kind == "linearize"),
        jit=tuple(event for event in events if event.kind in ("trace", "persist", "tier", "compile")),
        calls=Counter(event.name for event in events if event.kind == "call"),
    )


def _use(primitive: Any, recorder: Recorder) -> PrimitiveUse:
    interpreters = {_name(kind): count for (p, kind), count in recorder.interpreted.items() if p is primitive}
    rules = [
        _rule_use(recorder.registered[p, kind, platform], kind, platform, runs)
        for (p, kind, platform), runs in recorder.rules.items()
        if p is primitive
    ]
    return PrimitiveUse(
        primitive.name, recorder.bound[primitive], recorder.bound_by_rules[primitive], interpreters, tuple(rules)
    )


def _name(kind: type[Trace]) -> str:
    return kind.interpreter or kind.__name__


def _rule_use(rule: Any, kind: str, platform: str | None, runs: int) -> RuleUse:
    if rule is None:  # it was written into the table without registration
        return RuleUse(kind, runs, platform=platform)
    origin = rule.provenance
    return RuleUse(
        kind, runs, rule.derived, origin.plugin, origin.version, origin.module, origin.file, origin.line, platform
    )
