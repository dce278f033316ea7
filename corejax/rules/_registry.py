"""`RuleRegistry`: the rules of one kind, those that plugins load lazily and those that can be derived included."""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from corejax import observe
from corejax.base.plugin_access import plugin_access
from corejax.base.provenance import Provenance
from corejax.base.seams import Signal, Slot
from corejax.base.tables import Table
from corejax.core.primitive import Primitive, define_rules
from corejax.errors import DerivedRuleWarning, MissingRuleError
from corejax.messages import source_info
from corejax.rules import _messages
from corejax.rules.derivation import Derivation, Derivations
from corejax.settings.config import config

__corejax_registers_for_caller__ = True

RuleFn = Callable[..., Any]


class Rule(NamedTuple):
    """One rule as registered.

    Attributes:
        fn: the function as its author wrote it.
        provenance: the module, file and line that contributed it.
        derived: how it was made of others ("decomposition", ...); None for a rule of an author's own.
        flags: what its author declared (`symbolic_zeros=True`, `device=True`, ...; `by`, a derivation's name).
        overridden: the rule that this one replaced, if any.
        overriding: whether it was registered to replace another, whichever of the two comes first; such a rule is
            in force as `config.rule_overrides` says.
    """

    fn: RuleFn
    provenance: Provenance
    derived: str | None = None
    flags: Mapping[str, Any] = MappingProxyType({})
    overridden: Rule | None = None
    overriding: bool = False


Key = tuple[Primitive, str | None]  # with the platform that a rule is for; None: all


class RuleRegistry(Mapping[Primitive, RuleFn]):
    """The rules of one kind: a mapping from primitive to rule, with `register`, provenance and good misses.

    Attributes:
        kind: the registry's name in messages and tables ("jvp").
        title: the rule kind in a sentence ("JVP rule").
        template: the code that an author has to write, with `{name}` for the primitive.
        table: primitive -> callable ready to run; read by interpreters: `table.get(primitive) or lookup(primitive)`.
            While a thread is watched (`corejax.observe`) its rules, and those of `lookup`, report their runs.
        required: whether a primitive without such a rule counts as incomplete. Rule kinds that plugins add say False.
        flags: declarations that `register` takes for rules of the kind.
        adapt: slot for a function `(primitive, rule, flags)` that returns the callable ready to run; without one, rules
            run as they are.
        derivations: ways to make missing rules, tried in order; `derived_by` names this order, best first.
        changed: signal sent with a primitive whose rule has changed.
        provenance: the module and line that made the registry.

    Raises:
        DuplicateRegistrationError: there is a registry of this kind, made elsewhere.
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
        self.derivations = Derivations(title, derived_by, self.forget_derived)
        self.changed = Signal(f"{title}s")
        self.provenance = Provenance.of_caller()
        self._written: Table[Key, Rule] = Table(
            title, changed=self._follow, refusal=functools.partial(_messages.duplicate_rule, title)
        )
        # What is in force, ready to run: written rules, and derived ones once they were needed.
        self._ready: dict[Primitive, RuleFn] = {}
        self._platform_table: dict[tuple[Primitive, str], RuleFn] = {}
        self._derived: dict[Primitive, Rule] = {}
        self._warned: weakref.WeakSet[Primitive] = weakref.WeakSet()
        self.follow_watchers()
        registries.register(kind, self, provenance=self.provenance)

    # -- written rules -------------------------------------------------------------------------------------------------

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

    def _chosen(self, primitive: Primitive) -> RuleFn:
        """Return a stand-in for the rule that a derivation makes at first use, once its plugin is loaded."""

        def rule(*args: Any, **params: Any) -> Any:
            return self.lookup(primitive)(*args, **params)

        rule.__provenance__ = Provenance.of_caller()  # type: ignore[attr-defined]
        return rule

    def unregister(self, primitive: Primitive, platform: str | None = None) -> None:
        """Remove a rule; the rule that it had overridden, if any, is in force again.

        Raises:
            KeyError: there is no such rule.
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
        """Put the written rule in force, in place of one that was derived."""
        primitive, platform = key
        rule = entry if entry is None or not entry.overriding else self._in_force(primitive, platform)
        ready = None
        if rule is not None and "by" not in rule.flags:  # those are made when they are looked for
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

    def _adapted(self, primitive: Primitive, fn: RuleFn, flags: Mapping[str, Any]) -> RuleFn:
        adapt = self.adapt.value
        return fn if adapt is None else adapt(primitive, fn, flags)

    def _in_force(self, primitive: Primitive, platform: str | None = None) -> Rule | None:
        """Return the written rule that `config.rule_overrides` puts in force."""
        for rule in self.registered(primitive, platform):
            # Whose a rule is costs a look at the plugins, so ask for it last.
            if not rule.overriding or config.rule_overrides is True or config.overrides_are_on(rule.provenance.plugin):
                return rule
        return None

    def rule_of(self, primitive: Primitive, platform: str | None = None) -> Rule | None:
        """Return the rule in force, with its provenance; nothing is loaded or derived."""
        found = self._in_force(primitive, platform)
        return found if found is not None or platform is not None else self._derived.get(primitive)

    def registered(self, primitive: Primitive, platform: str | None = None) -> list[Rule]:
        """Return every written rule, in force or not: each before the rules that it overrides."""
        found: list[Rule] = []
        for entry in reversed(self._written.entries((primitive, platform))):
            found.append(entry.value._replace(overridden=found[-1]) if found else entry.value)
        return found[::-1]

    def platforms_of(self, primitive: Primitive) -> tuple[str, ...]:
        """Return the platforms with a rule of their own in force."""
        return tuple(sorted(p for q, p in self._platform_table if q is primitive))

    def written(self, primitive: Primitive) -> list[tuple[str | None, Rule]]:
        """Return every written rule with its platform, in force or not: the general ones first (None)."""
        platforms = sorted(p for q, p in self._written if q is primitive and p is not None)
        return [(p, rule) for p in (None, *platforms) for rule in self.registered(primitive, p)]

    # -- lookup --------------------------------------------------------------------------------------------------------

    def lookup(self, primitive: Primitive, platform: str | None = None) -> RuleFn:
        """Return the rule ready to run: the platform's, else the general one, else a derived one.

        Raises:
            MissingRuleError: no plugin wrote one and none can be derived.
        """
        found = self.find(primitive, platform)
        if found is None:
            raise self.missing(primitive, platform)
        return found

    def missing(self, primitive: Primitive, platform: str | None = None) -> MissingRuleError:
        """Return the error for a missing rule."""
        return self._error(_messages.missing_rule(self, primitive, platform), primitive)

    def _error(self, message: str, primitive: Primitive) -> MissingRuleError:
        return MissingRuleError(message, primitive=primitive, kind=self.kind)

    def find(self, primitive: Primitive, platform: str | None = None) -> RuleFn | None:
        """Do as `lookup`, but return None if the rule is missing."""
        if not observe.watched:
            return self._find(primitive, platform)
        # A derived rule outlives the watching, and deriving it is no step of what is watched.
        found = observe.unwatched(self._find, primitive, platform)
        if found is None:
            return None
        platform = platform if platform is not None and (primitive, platform) in self._platform_table else None
        return reporting(self.kind, primitive, found, self.rule_of(primitive, platform), platform)

    def ready(self, primitive: Primitive) -> RuleFn | None:
        """Return the rule ready to run, or None, without loading or deriving it; its runs are not reported."""
        return self._ready.get(primitive)

    def _find(self, primitive: Primitive, platform: str | None) -> RuleFn | None:
        if platform is not None:
            self._load(primitive)  # a platform's rule may load lazily though a general one is here
            found = self._platform_table.get((primitive, platform))
            if found is not None:
                return found
        found = self._ready.get(primitive)
        if found is None and self._load(primitive):
            found = self._ready.get(primitive)
        return found if found is not None else self._derive(primitive)

    def _load(self, primitive: Primitive) -> bool:
        return plugin_access().load_rules(self.kind, primitive)

    def is_written(self, primitive: Primitive) -> bool:
        """Load the rule, and return whether a plugin wrote one, for all platforms or for some."""
        if self._in_force(primitive) is None:
            self._load(primitive)
        return self._in_force(primitive) is not None or bool(self.platforms_of(primitive))

    def template_for(self, primitive: Primitive) -> str:
        """Return the code that an author of this rule starts from."""
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

        As with `by=`, it is what the author means: no warning, and strict rules allow it.

        Raises:
            MissingRuleError: none can be derived; says what a rule is derived from.
        """
        return self.derived_rule(primitive)[1]

    def derived_rule(self, primitive: Primitive) -> tuple[Rule, RuleFn]:
        """Return the rule of `derived` as it is registered, and ready to run."""
        self._load(primitive)  # derivations load with the rules
        found = self._derivation(primitive)
        if found is None:
            raise self._error(_messages.no_derived_rule(self, primitive), primitive)
        return self._made(primitive, *found)

    def _made(self, primitive: Primitive, derivation: Derivation, fn: RuleFn) -> tuple[Rule, RuleFn]:
        rule = Rule(fn, primitive.provenance, derivation.name, derivation.flags)
        return rule, self._adapted(primitive, fn, derivation.flags)

    def _derivation(self, primitive: Primitive, by: str | None = None) -> tuple[Derivation, RuleFn] | None:
        """Return the best derivation that applies, or the one named `by`, and its rule; neither is kept."""
        made = ((d, d.make(primitive)) for d in self.derivations if by is None or d.name == by)
        return next(((derivation, fn) for derivation, fn in made if fn is not None), None)

    def can_derive(self, primitive: Primitive) -> str | None:
        """Return the name of the derivation that applies; None if none does or derived rules are refused."""
        found = self._derivation(primitive)
        return None if found is None or config.strict_rules else found[0].name

    def _derive(self, primitive: Primitive) -> RuleFn | None:
        written = self._in_force(primitive)
        by = None if written is None else written.flags.get("by")
        found = self._derivation(primitive, by)
        if found is None and by is not None:
            raise self._error(_messages.no_rule_by(self, primitive, by), primitive)
        if found is None or (by is None and config.strict_rules):
            return None
        rule, ready = self._made(primitive, *found)
        if by is None and found[0].slow:
            ready = self._warning(primitive, found[0], ready)
        self._install(primitive, None, ready, rule if by is None else None)
        return ready

    def _warning(self, primitive: Primitive, derivation: Derivation, ready: RuleFn) -> RuleFn:
        """Wrap a slow rule so that it warns when it first runs."""

        def rule(*args: Any, **params: Any) -> Any:
            if primitive not in self._warned:
                source_info.warn_user(_messages.slow_rule(self, primitive, derivation), DerivedRuleWarning)
                self._warned.add(primitive)
            return ready(*args, **params)

        return rule

    def forget_derived(self) -> None:
        """Drop derived rules; they are derived again when they are needed."""
        for primitive in list(self._derived):
            self._install(primitive, None, None)

    def follow_overrides(self) -> None:
        """Put overriding rules in force, or the rules that they override, as `config.rule_overrides` says."""
        for key, rule in list(self._written.items()):
            if rule.overriding:
                self._written.follow(key)

    def follow_watchers(self) -> None:
        """Have the rules of `table` report their runs while a thread is watched."""
        self.table: dict[Primitive, RuleFn] = _ReportingTable(self) if observe.watched else self._ready

    # -- a mapping -----------------------------------------------------------------------------------------------------

    def __getitem__(self, primitive: Primitive) -> RuleFn:
        return self.lookup(primitive)

    def __setitem__(self, primitive: Primitive, rule: RuleFn) -> None:
        self.register(primitive, rule)

    def __contains__(self, primitive: object) -> bool:
        return primitive in self._ready

    def get(self, primitive: Primitive, default: Any = None) -> Any:
        """Return the rule, or `default` if it is missing."""
        found = self.find(primitive)
        return default if found is None else found

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


registries: Table[str, RuleRegistry] = Table(
    "rule kind",
    refusal=lambda kind, earlier, given: (
        f"rule kind {kind!r} exists, from {earlier.provenance}; {given.provenance} makes a second one"
    ),
)


@define_rules.provide
def _define(primitive: Primitive, rules: Mapping[str, RuleFn]) -> None:
    """Register the rules that a primitive is built with."""
    for kind, rule in rules.items():
        registries[kind].register(primitive, rule)


# -- rules that report their runs --------------------------------------------------------------------------------------


def reporting(
    kind: str, primitive: Primitive, rule: RuleFn, registered: Rule | None, platform: str | None = None
) -> RuleFn:
    """Return a rule that reports its runs to this thread's watchers; the rule itself if there are none."""
    if not observe.watched_here():
        return rule
    step = observe.Step(primitive, None, kind, platform, registered)

    @functools.wraps(rule)
    def reported(*args: Any, **params: Any) -> Any:
        return observe.run_step(step, rule, args, params)

    return reported


class _ReportingTable(dict[Primitive, RuleFn]):
    """Looks like a registry's table of ready rules, and holds none itself; the rules that it returns report."""

    def __init__(self, registry: RuleRegistry) -> None:
        self._registry = registry

    def get(self, primitive: Primitive, default: Any = None) -> Any:
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
