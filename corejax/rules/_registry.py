"""`RuleRegistry`: the rules of one kind, including rules that plugins load on demand and rules that can be derived.

A registry has two levels. `_written` records all rules that authors registered, with their provenance, including rules
that are overridden. `_ready` caches the callables in force; interpreters read it as `table`, so that finding a rule
costs one dict lookup. Invariant: `_ready` holds a written rule as soon as it is registered, and a derived rule from its
first use until an author registers a rule, a derivation changes, or strict rules are turned on.
"""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from corejax import observe
from corejax.base import registered
from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.seams import Signal, Slot
from corejax.base.tables import Table
from corejax.errors import DerivedRuleWarning, MissingRuleError
from corejax.messages import source_info
from corejax.rules import _messages
from corejax.rules._optional import registering
from corejax.rules.derivation import Derivation, Derivations
from corejax.settings.config import config

if TYPE_CHECKING:
    from corejax.core.primitive import Primitive

__corejax_registers_for_caller__ = True

RuleFn = Callable[..., Any]


class Rule(NamedTuple):
    """One rule as registered.

    Attributes:
        fn: the function as its author wrote it.
        provenance: the module, file and line that contributed it.
        derived: the name of the derivation ("decomposition", ...); None for a written rule.
        flags: declarations of its author (`symbolic_zeros=True`, `device=True`, ...; `by`, a derivation's name).
        overridden: the rule that this one replaced, if any.
        overriding: whether it was registered with `override=True`; whether such a rule is in force depends on
            `config.rule_overrides`, not on the order of registration.
    """

    fn: RuleFn
    provenance: Provenance
    derived: str | None = None
    flags: Mapping[str, Any] = MappingProxyType({})
    overridden: Rule | None = None
    overriding: bool = False


Key = tuple["Primitive", str | None]  # a primitive and the platform of the rule; None for all platforms


class RuleRegistry(Mapping["Primitive", RuleFn]):
    """The rules of one kind: a mapping from primitives to rules, with provenance and errors that explain misses.

    Attributes:
        kind: the registry's name in messages and tables ("jvp").
        title: the rule kind in a sentence ("JVP rule").
        template: the code of a new rule, with `{name}` for the primitive.
        table: primitive -> callable ready to run; interpreters read `table.get(primitive) or lookup(primitive)`.
            While a thread is watched (`corejax.observe`), the rules of `table` and `lookup` report their runs.
        required: whether a primitive without such a rule is incomplete; False for rule kinds that plugins add.
        flags: names of the declarations that `register` accepts for rules of the kind.
        adapt: slot for a function `(primitive, rule, flags)` that returns the callable ready to run; if it is empty,
            rules run unchanged.
        derived_by: names of the derivations of the registry's own package, best first.
        derivations: the derivations of missing rules, including those of plugins.
        changed: signal sent with a primitive when its rule has changed.
        provenance: the module and line that created the registry.

    Raises:
        DuplicateRegistrationError: another module has created a registry of this kind.
    """

    def __init__(
        self,
        kind: str,
        title: str,
        template: str,
        *,
        required: bool = True,
        flags: tuple[str, ...] = (),
        derived_by: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.title = title
        self.template = template
        self.required = required
        self.flags = frozenset(flags)
        self.adapt: Slot[Callable[[Any, RuleFn, Mapping[str, Any]], RuleFn]] = Slot(f"how {title}s are adapted")
        self.derived_by = derived_by
        self.derivations = Derivations(title, derived_by, self.forget_derived)
        self.changed = Signal(f"{title}s")
        self.provenance = Provenance.of_caller()
        self._written: Table[Key, Rule] = Table(
            title, changed=self._follow, refusal=functools.partial(_messages.duplicate_rule, title)
        )
        # The rules in force, ready to run: written rules, and derived rules after their first use.
        self._ready: dict[Primitive, RuleFn] = {}
        self._platform_table: dict[tuple[Primitive, str], RuleFn] = {}
        self._derived: dict[Primitive, Rule] = {}
        self._warned: weakref.WeakSet[Primitive] = weakref.WeakSet()
        self.follow_watchers()
        registries.register(kind, self, provenance=self.provenance)

    # -- written rules -------------------------------------------------------------------------------------------------

    @registering
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
        """Register a rule of this kind for `primitive`; without `rule` and `by`, return a decorator.

        Args:
            primitive: the primitive.
            rule: the rule.
            platform: for translations, the platform of the rule (`"cpu"`, `"cuda"`); None for all platforms.
            override: replace an existing rule; both stay visible in `registered`.
            by: instead of a rule, the name of the derivation that the author chooses (`"host callback"`, `"loop"`).
                The derived rule counts as written: it does not warn, and strict rules allow it.
            flags: declarations that the rule kind accepts.

        Raises:
            DuplicateRegistrationError: a rule exists and `override` is False.
            TypeError: the rule is not callable, the kind has no such flag, or `by` is combined with other arguments.
        """
        if by is not None and (rule is not None or platform is not None or flags):
            raise TypeError(f"{primitive.name!r}: a {self.title} by {by!r} takes no function, platform or flags")
        if rule is None and by is None:
            return lambda fn: self.register(primitive, fn, platform=platform, override=override, **flags)
        if rule is None:
            rule = self._deferred(primitive)
        if not callable(rule):
            raise TypeError(f"a {self.title} is a function, got {rule!r} for primitive {primitive.name!r}")
        unknown = sorted(set(flags) - self.flags)
        if unknown:
            raise TypeError(f"a {self.title} takes no flag {unknown[0]!r}; there are {sorted(self.flags)}")
        origin = Provenance.of(rule)
        entry = Rule(rule, origin, None, flags if by is None else {"by": by}, overriding=override)
        self._written.register((primitive, platform), entry, override=override, provenance=origin)
        return rule

    def _deferred(self, primitive: Primitive) -> RuleFn:
        """Return a stand-in for the rule that a derivation makes at first use, once its plugin is loaded."""

        def rule(*args: object, **params: object) -> Any:
            return self.lookup(primitive)(*args, **params)

        rule.__provenance__ = Provenance.of_caller()  # type: ignore[attr-defined]  # functions accept any attribute
        return rule

    def unregister(self, primitive: Primitive, platform: str | None = None) -> None:
        """Remove a rule; the rule that it overrode, if any, is in force again.

        Raises:
            KeyError: the primitive has no rule on that platform.
        """
        key = (primitive, platform)
        if key in self._written:
            self._written.remove(key)
        elif platform is None and primitive in self._derived:
            self._install(primitive, None, None)
        else:
            where = f" on platform {platform!r}" if platform else ""
            raise KeyError(f"primitive {primitive.name!r} has no {self.title}{where} to unregister")

    def _follow(self, key: Key, entry: Rule | None) -> None:
        """Put a written rule in force; it replaces a derived rule."""
        primitive, platform = key
        rule = entry if entry is None or not entry.overriding else self._in_force(primitive, platform)
        ready = None
        if rule is not None and "by" not in rule.flags:  # a rule with `by` is derived at its first use
            ready = self._adapted(primitive, rule.fn, rule.flags)
        self._install(primitive, platform, ready)

    def _install(
        self, primitive: Primitive, platform: str | None, ready: RuleFn | None, derived: Rule | None = None
    ) -> None:
        table: dict[Any, RuleFn] = self._ready if platform is None else self._platform_table
        key = primitive if platform is None else (primitive, platform)
        if ready is None:
            table.pop(key, None)
        else:
            table[key] = ready
        if derived is not None:
            self._derived[primitive] = derived
        elif platform is None:
            self._derived.pop(primitive, None)
        self.changed.send(primitive)

    def _adapted(self, primitive: Primitive, fn: RuleFn, flags: Mapping[str, object]) -> RuleFn:
        adapt = self.adapt.value
        return fn if adapt is None else adapt(primitive, fn, flags)

    def _in_force(self, primitive: Primitive, platform: str | None = None) -> Rule | None:
        """Return the written rule that `config.rule_overrides` puts in force."""
        for rule in self.registered(primitive, platform):
            # `plugin` is computed from the list of plugins, which is slow, so it is checked last.
            if not rule.overriding or config.rule_overrides is True or config.overrides_are_on(rule.provenance.plugin):
                return rule
        return None

    def rule_of(self, primitive: Primitive, platform: str | None = None) -> Rule | None:
        """Return the rule in force, with its provenance, without loading or deriving one."""
        rule = self._in_force(primitive, platform)
        return rule if rule is not None or platform is not None else self._derived.get(primitive)

    def registered(self, primitive: Primitive, platform: str | None = None) -> list[Rule]:
        """Return all written rules for a platform, each before the rules that it overrides."""
        rules: list[Rule] = []
        for entry in reversed(self._written.entries((primitive, platform))):
            rules.append(entry.value._replace(overridden=rules[-1]) if rules else entry.value)
        return rules[::-1]

    def platforms_of(self, primitive: Primitive) -> tuple[str, ...]:
        """Return the platforms that have a rule of their own in force."""
        return tuple(sorted(p for q, p in self._platform_table if q is primitive))

    def written(self, primitive: Primitive) -> list[tuple[str | None, Rule]]:
        """Return all written rules with their platforms; rules for all platforms (None) come first."""
        platforms = sorted(p for q, p in self._written if q is primitive and p is not None)
        return [(p, rule) for p in (None, *platforms) for rule in self.registered(primitive, p)]

    # -- lookup --------------------------------------------------------------------------------------------------------

    def lookup(self, primitive: Primitive, platform: str | None = None) -> RuleFn:
        """Return the rule ready to run: that of the platform, else that for all platforms, else a derived rule.

        Raises:
            MissingRuleError: no plugin provides a rule and none can be derived.
        """
        rule = self.find(primitive, platform)
        if rule is None:
            raise self.missing(primitive, platform)
        return rule

    def missing(self, primitive: Primitive, platform: str | None = None) -> MissingRuleError:
        """Return the error for a missing rule."""
        return self._error(_messages.missing_rule(self, primitive, platform), primitive)

    def _error(self, message: str, primitive: Primitive) -> MissingRuleError:
        return MissingRuleError(message, primitive=primitive, kind=self.kind)

    def find(self, primitive: Primitive, platform: str | None = None) -> RuleFn | None:
        """Do as `lookup`, but return None if the rule is missing."""
        if not observe.watched:
            return self._find(primitive, platform)
        # A derived rule is kept after the observation ends, and deriving it is not a step of the observed call.
        rule = observe.unwatched(self._find, primitive, platform)
        if rule is None:
            return None
        platform = platform if platform is not None and (primitive, platform) in self._platform_table else None
        return reporting(self.kind, primitive, rule, self.rule_of(primitive, platform), platform)

    def ready(self, primitive: Primitive) -> RuleFn | None:
        """Return the rule ready to run, or None, without loading or deriving it; its runs are not reported."""
        return self._ready.get(primitive)

    def _find(self, primitive: Primitive, platform: str | None) -> RuleFn | None:
        if platform is not None:
            self._load(primitive)  # a plugin may provide a rule for the platform even if a general rule is registered
            rule = self._platform_table.get((primitive, platform))
            if rule is not None:
                return rule
        rule = self._ready.get(primitive)
        if rule is None and self._load(primitive):
            rule = self._ready.get(primitive)
        return rule if rule is not None else self._derive(primitive)

    def _load(self, primitive: Primitive) -> bool:
        return plugin_access().load_rules(self.kind, primitive)

    def is_written(self, primitive: Primitive) -> bool:
        """Load the rule, and return whether a plugin provides one, for all platforms or for some."""
        if self._in_force(primitive) is None:
            self._load(primitive)
        return self._in_force(primitive) is not None or bool(self.platforms_of(primitive))

    def template_for(self, primitive: Primitive) -> str:
        """Return the code of a new rule for a primitive, for authors to complete."""
        name = re.sub(r"\W", "_", primitive.name)
        return self.template.replace("{name}", name).replace("{var}", f"{name}_p")

    # -- derived rules -------------------------------------------------------------------------------------------------

    def derived(self, primitive: Primitive) -> RuleFn:
        """Return the derived rule, for a written rule to fall back on.

            @vmap_rules.register(p)
            def p_vmap(axis_size, vals, dims, **params):
                if params["mode"] != "fast":
                    return vmap_rules.derived(p)(axis_size, vals, dims, **params)
                ...

        As with `by=`, the derived rule does not warn, and strict rules allow it.

        Raises:
            MissingRuleError: no rule can be derived; the message says what a rule is derived from.
        """
        return self.derived_rule(primitive)[1]

    def derived_rule(self, primitive: Primitive) -> tuple[Rule, RuleFn]:
        """Return the derived rule as a `Rule`, and as the callable ready to run."""
        self._load(primitive)  # a plugin that provides rules may provide derivations as well
        derivation = self._derivation(primitive)
        if derivation is None:
            raise self._error(_messages.no_derived_rule(self, primitive), primitive)
        return self._derived_entry(primitive, *derivation)

    def _derived_entry(self, primitive: Primitive, derivation: Derivation, fn: RuleFn) -> tuple[Rule, RuleFn]:
        rule = Rule(fn, primitive.provenance, derivation.name, derivation.flags)
        return rule, self._adapted(primitive, fn, derivation.flags)

    def _derivation(self, primitive: Primitive, by: str | None = None) -> tuple[Derivation, RuleFn] | None:
        """Return the best derivation that applies, or the one named `by`, and its rule; do not register the rule."""
        candidates = ((d, d.make(primitive)) for d in self.derivations if by is None or d.name == by)
        return next(((derivation, fn) for derivation, fn in candidates if fn is not None), None)

    def can_derive(self, primitive: Primitive) -> str | None:
        """Return the name of the derivation that applies, or None if none does or `config.strict_rules` is set."""
        derivation = self._derivation(primitive)
        return None if derivation is None or config.strict_rules else derivation[0].name

    def _derive(self, primitive: Primitive) -> RuleFn | None:
        written = self._in_force(primitive)
        by = None if written is None else written.flags.get("by")
        derivation = self._derivation(primitive, by)
        if derivation is None and by is not None:
            raise self._error(_messages.no_rule_by(self, primitive, by), primitive)
        if derivation is None or (by is None and config.strict_rules):
            return None
        rule, ready = self._derived_entry(primitive, *derivation)
        if by is None and derivation[0].slow:
            ready = self._with_warning(primitive, derivation[0], ready)
        self._install(primitive, None, ready, rule if by is None else None)
        return ready

    def _with_warning(self, primitive: Primitive, derivation: Derivation, ready: RuleFn) -> RuleFn:
        """Wrap a slow rule so that its first run warns."""

        def rule(*args: object, **params: object) -> Any:
            if primitive not in self._warned:
                source_info.warn_user(_messages.slow_rule(self, primitive, derivation), DerivedRuleWarning)
                self._warned.add(primitive)
            return ready(*args, **params)

        return rule

    def forget_derived(self) -> None:
        """Discard derived rules; the next lookup derives them again."""
        for primitive in list(self._derived):
            self._install(primitive, None, None)

    def follow_overrides(self) -> None:
        """Put overriding rules, or the rules that they override, in force according to `config.rule_overrides`."""
        for key, rule in list(self._written.items()):
            if rule.overriding:
                self._written.follow(key)

    def follow_watchers(self) -> None:
        """Make the rules of `table` report their runs while a thread is watched."""
        self.table: dict[Primitive, RuleFn] = _ReportingTable(self) if observe.watched else self._ready

    # -- a mapping -----------------------------------------------------------------------------------------------------

    def __getitem__(self, primitive: Primitive) -> RuleFn:
        return self.lookup(primitive)

    def __setitem__(self, primitive: Primitive, rule: RuleFn) -> None:
        self.register(primitive, rule)

    def __contains__(self, primitive: object) -> bool:
        return primitive in self._ready

    def get(self, primitive: Primitive, default: object = None) -> Any:
        """Return the rule, or `default` if it is missing."""
        rule = self.find(primitive)
        return default if rule is None else rule

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self._ready)

    def __len__(self) -> int:
        return len(self._ready)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<registry of {self.title}s: {len(self._ready)} primitives>"


registries: Table[str, RuleRegistry] = registered.registries


# -- rules that report their runs --------------------------------------------------------------------------------------


def reporting(
    kind: str, primitive: Primitive, rule: RuleFn, registered: Rule | None, platform: str | None = None
) -> RuleFn:
    """Return a rule that reports its runs to this thread's watchers, or the rule itself if it has no watchers."""
    if not observe.watched_here():
        return rule
    step = observe.Step(primitive, None, kind, platform, registered)

    @functools.wraps(rule)
    def reported(*args: object, **params: object) -> Any:
        return observe.run_step(step, rule, args, params)

    return reported


class _ReportingTable(dict["Primitive", RuleFn]):
    """A stand-in for a registry's table of ready rules, which wraps each rule that it returns in a reporting one."""

    def __init__(self, registry: RuleRegistry) -> None:
        self._registry = registry

    def get(self, primitive: Primitive, default: object = None) -> Any:
        return self[primitive] if primitive in self._registry._ready else default

    def __getitem__(self, primitive: Primitive) -> RuleFn:
        registry = self._registry
        return reporting(registry.kind, primitive, registry._ready[primitive], registry.rule_of(primitive))

    def __contains__(self, primitive: object) -> bool:
        return primitive in self._registry._ready


@observe.watched_changed.connect
def _report() -> None:
    for registry in list(registries.values()):
        registry.follow_watchers()


# -- settings ----------------------------------------------------------------------------------------------------------

_followed = config.rule_overrides


@config.changed.connect
def _follow_settings() -> None:
    global _followed
    earlier, _followed = _followed, config.rule_overrides
    for registry in list(registries.values()):
        if config.strict_rules:
            registry.forget_derived()
        if _followed != earlier:
            registry.follow_overrides()
