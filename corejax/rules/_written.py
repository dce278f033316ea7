"""The rules that authors wrote: registering them, taking them back, and which of them are in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from corejax.config import config
from corejax.provenance import Provenance
from corejax.rules._messages import second
from corejax.rules._reporting import reporting_table
from corejax.rules._rule import Rule, RuleFn, chain, in_force
from corejax.seams import Signal
from corejax.tables import Entry, Table

if TYPE_CHECKING:
    from corejax.primitive import Primitive

__corejax_registers_for_caller__ = True

Key = tuple["Primitive", str | None]  # with the platform that a rule is for; None: all


class WrittenRules:
    """The part of a registry that holds what was registered.

    Attributes: see `RuleRegistry`.
    """

    def __init__(self, kind: str, title: str, flags: tuple[str, ...]) -> None:
        self.kind = kind
        self.title = title
        self.flags = frozenset(flags)
        self._ready: dict[Primitive, RuleFn] = {}
        self.table = reporting_table(self, self._ready)
        self.adapt: Callable[[Any, RuleFn, Mapping[str, Any]], RuleFn] = lambda primitive, fn, flags: fn
        self.changed = Signal(f"{title}s")
        self._written: Table[Key, Rule] = Table(title, changed=self._follow, refusal=self._second)
        self._platform_table: dict[tuple[Primitive, str], RuleFn] = {}
        self._derived: dict[Primitive, Rule] = {}

    def register(
        self,
        primitive: Primitive,
        rule: RuleFn | None = None,
        *,
        platform: str | None = None,
        override: bool = False,
        by: str | None = None,
        **flags: Any,
    ) -> Any:
        """Give `primitive` a rule of this kind; without `rule` and `by`, a decorator.

        Args:
            primitive: the primitive.
            rule: the rule.
            platform: for translations, the platform that the rule is for (`"cpu"`, `"cuda"`); None: for all.
            override: replace an existing rule, on purpose; both stay visible in `registered`.
            by: in place of a rule, the name of the derivation that makes it (`"host callback"`, `"loop"`): what is
                derived is then what the author means. It counts as written: no warning, and strict rules allow it.
            flags: declarations that the rule kind understands.

        Raises:
            DuplicateRegistrationError: a rule exists and `override` is not given.
            TypeError: the rule is not callable, the kind has no such flag, or something else is given beside `by`.
        """
        if by is not None and (rule is not None or platform is not None or flags):
            raise TypeError(f"{primitive.name!r}: a {self.title} by {by!r} takes no function, platform or flags")
        if rule is None and by is None:
            return lambda fn: self.register(primitive, fn, platform=platform, override=override, **flags)
        if rule is None:
            rule = self._chosen(primitive)
        if not callable(rule):
            raise TypeError(f"a {self.title} is a function, got {rule!r} for primitive {primitive.name!r}")
        unknown = sorted(set(flags) - self.flags)
        if unknown:
            raise TypeError(f"a {self.title} takes no flag {unknown[0]!r}; there are {sorted(self.flags)}")
        where = Provenance.of(rule)
        given = Rule(rule, where, None, flags if by is None else {"by": by}, overriding=override)
        self._written.register((primitive, platform), given, override=override, provenance=where)
        return rule

    def _second(self, key: Key, earlier: Entry, given: Entry) -> str:
        return second(self.title, *key, earlier.provenance, given.provenance)

    def _chosen(self, primitive: Primitive) -> RuleFn:
        """Stands for a rule that a derivation makes at first use: the plugin that has the derivation may load later."""

        def rule(*args: Any, **params: Any) -> Any:
            return self.lookup(primitive)(*args, **params)  # type: ignore[attr-defined]

        rule.__provenance__ = Provenance.of_caller()  # type: ignore[attr-defined]
        return rule

    def unregister(self, primitive: Primitive, platform: str | None = None) -> None:
        """Take a rule back; the rule that it had overridden, if any, is in force again.

        Raises:
            KeyError: there is no such rule.
        """
        key = (primitive, platform)
        if key in self._written:
            self._written.remove(key)
        elif platform is None and primitive in self._derived:
            self._forget(primitive)
        else:
            where = f" on platform {platform!r}" if platform else ""
            raise KeyError(f"primitive {primitive.name!r} has no {self.title}{where} to unregister")

    def _follow(self, key: Key, entry: Rule | None) -> None:
        """Put in force what the table says; what was derived before is forgotten."""
        primitive, platform = key
        rule = entry if entry is None or not entry.overriding else self._in_force(primitive, platform)
        ready = None
        if rule is not None and "by" not in rule.flags:  # those are made when they are looked for
            ready = self.adapt(primitive, rule.fn, rule.flags)
        if platform is None:
            self._derived.pop(primitive, None)
        self._install(primitive, platform, ready)

    def _install(self, primitive: Primitive, platform: str | None, ready: RuleFn | None) -> None:
        table: dict[Any, RuleFn] = self._ready if platform is None else self._platform_table
        key = primitive if platform is None else (primitive, platform)
        if ready is None:
            table.pop(key, None)
        else:
            table[key] = ready
        self.changed.send(primitive)

    def report(self) -> None:
        """Have `table` report runs of rules, or no longer, as `observe.watched` says."""
        self.table = reporting_table(self, self._ready)

    def _in_force(self, primitive: Primitive, platform: str | None = None) -> Rule | None:
        return in_force(chain(self._written.entries((primitive, platform))))

    def _forget(self, primitive: Primitive) -> None:
        self._derived.pop(primitive, None)
        self._install(primitive, None, None)

    def forget_derived(self) -> None:
        """Drop derived rules; they are made again when they are needed, if they are not refused by then."""
        for primitive in list(self._derived):
            self._forget(primitive)

    def follow_overrides(self) -> None:
        """Put rules that replace others in force, or those that they replace, as `config.rule_overrides` says."""
        for key, rule in list(self._written.items()):
            if rule.overriding:
                self._written.follow(key)

    def rule_of(self, primitive: Primitive, platform: str | None = None) -> Rule | None:
        """The rule in force, with provenance; nothing is loaded or derived."""
        found = self._in_force(primitive, platform)
        return found if found is not None or platform is not None else self._derived.get(primitive)

    def registered(self, primitive: Primitive, platform: str | None = None) -> Iterator[Rule]:
        """Every rule that somebody wrote: in force or not, the one that replaces others before those."""
        entry = chain(self._written.entries((primitive, platform)))
        while entry is not None:
            yield entry
            entry = entry.overridden

    def platforms_of(self, primitive: Primitive) -> tuple[str, ...]:
        """Platforms with a rule of their own in force."""
        return tuple(sorted(p for q, p in self._platform_table if q is primitive))

    def platforms_registered(self, primitive: Primitive) -> tuple[str, ...]:
        """Platforms that somebody wrote a rule for, in force or not."""
        return tuple(sorted(p for q, p in self._written if q is primitive and p is not None))


def follow_settings(registries: Mapping[str, WrittenRules]) -> None:
    """Have the registries follow `strict_rules` and `rule_overrides` from now on."""
    followed = config.rule_overrides

    def follow() -> None:
        nonlocal followed
        for registry in list(registries.values()):
            if config.strict_rules:
                registry.forget_derived()
            if config.rule_overrides != followed:
                registry.follow_overrides()
        followed = config.rule_overrides

    config.changed.connect(follow)
