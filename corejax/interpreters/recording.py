"""Watching interpreters at work: which primitives are bound, who interprets them, which rules run.

Nothing of this is on anybody's path until a recorder is installed. Then the interpreters' `process_primitive`, and the
tables that they find rules in, are replaced by recording ones; the last recorder to leave puts everything back.
Threads without a recorder of their own are served as ever meanwhile.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from corejax.interpreters import evaluation
from corejax.restoring import Restoring
from corejax.rules import RuleFn, RuleRegistry, impl_rules, registries
from corejax.trace import Trace

_IMPL_TABLES = ("_host_rules", "_device_rules")


class _Frame(NamedTuple):
    """What is running: an interpreter (`trace`) on a primitive, or a rule (`trace` is None)."""

    primitive: Any
    trace: Trace | None
    delegated: list[bool]


class Recorder:
    """Counts of one thread.

    Attributes:
        bound: primitive -> times that the function bound it (or a program's replay did).
        bound_by_rules: primitive -> times that a rule bound it.
        interpreted: (primitive, class of the interpreter) -> times that it was the one to do the work.
        rules: (primitive, rule kind, platform) -> times that the rule ran.
    """

    def __init__(self) -> None:
        self.bound: Counter[Any] = Counter()
        self.bound_by_rules: Counter[Any] = Counter()
        self.interpreted: Counter[tuple[Any, type[Trace]]] = Counter()
        self.rules: Counter[tuple[Any, str, str | None]] = Counter()
        self._frames: list[_Frame] = []

    def process(self, original: Callable[..., Any], trace: Trace, primitive: Any, args: Any, params: Any) -> Any:
        """One call of `process_primitive`."""
        above = self._frames[-1] if self._frames else None
        if above is not None and above.trace is not None and above.primitive is primitive:
            if above.trace is trace:  # the same once more, now that its rule is loaded
                return original(trace, primitive, args, params)
            above.delegated.append(True)
        elif above is None or not self._inside_rule():
            self.bound[primitive] += 1
        else:
            self.bound_by_rules[primitive] += 1
        frame = _Frame(primitive, trace, [])
        self._frames.append(frame)
        try:
            return original(trace, primitive, args, params)
        finally:
            self._frames.pop()
            if not frame.delegated:
                self.interpreted[primitive, type(trace)] += 1

    def _inside_rule(self) -> bool:
        return any(frame.trace is None for frame in self._frames)

    @contextmanager
    def rule(self, primitive: Any, kind: str, platform: str | None) -> Iterator[None]:
        """One run of a rule."""
        self.rules[primitive, kind, platform] += 1
        self._frames.append(_Frame(primitive, None, []))
        try:
            yield
        finally:
            self._frames.pop()


class _Active(threading.local):
    recorders: tuple[Recorder, ...] = ()
    finding: bool = False  # what a derived rule is made of is found while it is made, and outlives the recording


_active = _Active()
_installing = threading.Lock()
_undo: list[Callable[[], None]] = []
_installed: set[int] = set()  # who records, by identity


class Recording(Restoring):
    """Records what this thread does in a `with` block."""

    __slots__ = ("earlier", "recorder")

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.earlier = _active.recorders

    def __enter__(self) -> Recorder:
        with _installing:
            if not _installed:
                _uninstall()  # what an interrupt has left behind
                _replace_all()
            _installed.add(id(self))
        self.earlier = _active.recorders
        _active.recorders = (*self.earlier, self.recorder)
        return self.recorder

    def restore(self) -> None:
        """Record no longer; the last one puts back what recorders have replaced."""
        _active.recorders = self.earlier
        with _installing:
            _installed.discard(id(self))
            if not _installed:
                _uninstall()


def _replace_all() -> None:
    for kind in _all_subclasses(Trace):
        if "process_primitive" in vars(kind):
            _replace(kind, "process_primitive", _recording_process(vars(kind)["process_primitive"]))
    for registry in list(registries.values()):
        _replace(registry, "table", _RecordingTable(registry.table, registry))
        _replace(registry, "find", _recording_find(registry))
    for name in _IMPL_TABLES:
        _replace(evaluation, name, _RecordingTable(getattr(evaluation, name), impl_rules))


def _uninstall() -> None:
    while _undo:
        _undo[-1]()
        _undo.pop()


def _replace(owner: Any, name: str, value: Any) -> None:
    missing = name not in vars(owner)
    earlier = None if missing else vars(owner)[name]

    def undo() -> None:
        if not missing:
            setattr(owner, name, earlier)
        elif name in vars(owner):
            delattr(owner, name)

    _undo.append(undo)
    setattr(owner, name, value)


def _all_subclasses(kind: Any) -> Iterator[Any]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _all_subclasses(subclass)


def _recording_process(original: Callable[..., Any]) -> Callable[..., Any]:
    def process_primitive(trace: Trace, primitive: Any, args: Any, params: Any) -> Any:
        recorders = _active.recorders
        run = original
        for recorder in recorders:
            run = _through(recorder, run)
        return run(trace, primitive, args, params)

    process_primitive.__wrapped__ = original  # type: ignore[attr-defined]
    return process_primitive


def _through(recorder: Recorder, run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda trace, primitive, args, params: recorder.process(run, trace, primitive, args, params)


def _recorded(rule: RuleFn, primitive: Any, kind: str, platform: str | None = None) -> RuleFn:
    if not _active.recorders or _active.finding:
        return rule

    @functools.wraps(rule)
    def run(*args: Any, **params: Any) -> Any:
        return _run_recorded(_active.recorders, rule, (primitive, kind, platform), args, params)

    return run


def _run_recorded(recorders: tuple[Recorder, ...], rule: RuleFn, which: Any, args: Any, params: Any) -> Any:
    if not recorders:
        return rule(*args, **params)
    with recorders[0].rule(*which):
        return _run_recorded(recorders[1:], rule, which, args, params)


class _RecordingTable(MutableMapping[Any, RuleFn]):
    """A table of rules ready to run, whose rules record their runs; what is written to it is written to the table."""

    def __init__(self, table: Any, registry: RuleRegistry) -> None:
        self.table = table
        self.kind = registry.kind

    def get(self, primitive: Any, default: Any = None) -> Any:
        rule = self.table.get(primitive)
        return default if rule is None else _recorded(rule, primitive, self.kind)

    def __getitem__(self, primitive: Any) -> RuleFn:
        return _recorded(self.table[primitive], primitive, self.kind)

    def __setitem__(self, primitive: Any, rule: RuleFn) -> None:
        self.table[primitive] = rule

    def __delitem__(self, primitive: Any) -> None:
        del self.table[primitive]

    def __contains__(self, primitive: object) -> bool:
        return primitive in self.table

    def __iter__(self) -> Iterator[Any]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def pop(self, primitive: Any, *default: Any) -> Any:
        return self.table.pop(primitive, *default)


def _recording_find(registry: RuleRegistry) -> Callable[..., RuleFn | None]:
    original = type(registry).find

    def find(primitive: Any, platform: str | None = None) -> RuleFn | None:
        if _active.finding:
            return original(registry, primitive, platform)
        _active.finding = True
        try:
            rule = original(registry, primitive, platform)
        finally:
            _active.finding = False
        own = platform if registry.rule_of(primitive, platform) is not None else None
        return None if rule is None else _recorded(rule, primitive, registry.kind, own)

    return find
