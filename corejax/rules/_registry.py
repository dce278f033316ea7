"""`RuleRegistry`: the rules of one kind, those that come lazily and those that can be derived among them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from corejax import observe, source_info
from corejax.config import config
from corejax.derivation import Derivation, Derivations
from corejax.errors import DerivedRuleWarning, MissingRuleError
from corejax.provenance import Provenance
from corejax.rules import _messages
from corejax.rules._loading import load_rules
from corejax.rules._reporting import follow_watchers, reporting
from corejax.rules._rule import Rule, RuleFn
from corejax.rules._written import WrittenRules, follow_settings
from corejax.tables import Table

if TYPE_CHECKING:
    from corejax.primitive import Primitive

__corejax_registers_for_caller__ = True


class RuleRegistry(WrittenRules, Mapping["Primitive", RuleFn]):
    """The rules of one kind: a mapping from primitive to rule, with `register`, provenance and good misses.

    Attributes:
        kind: the registry's name in messages and tables ("jvp").
        title: the rule kind in a sentence ("JVP rule").
        template: the code that an author has to write, with `{name}` for the primitive.
        table: primitive -> callable ready to run; read by interpreters: `table.get(primitive) or lookup(primitive)`.
            While somebody watches (`corejax.observe`) its rules, and those of `lookup`, report their runs.
        required: whether a primitive without such a rule counts as incomplete. Rule kinds that plugins add say False.
        flags: declarations that `register` takes for rules of the kind.
        adapt: `(primitive, rule, flags)` to the callable ready to run; by default the rule itself.
        derivations: ways to make missing rules, tried in order; `derived_by` names this order, best first.
        changed: signal sent with a primitive whose rule has changed.
        provenance: who made the registry.

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
        super().__init__(kind, title, flags)
        self.provenance = Provenance.of_caller()
        self.template = template
        self.required = required
        self.derivations = Derivations(title, derived_by, self.forget_derived)
        self._warned: weakref.WeakSet[Primitive] = weakref.WeakSet()
        registries.register(kind, self, provenance=self.provenance)

    # -- lookup --------------------------------------------------------------------------------------------------------

    def lookup(self, primitive: Primitive, platform: str | None = None) -> RuleFn:
        """The rule ready to run: the platform's, else the general one, else a derived one.

        Raises:
            MissingRuleError: nobody wrote one and none can be derived.
        """
        found = self.find(primitive, platform)
        if found is None:
            raise self.missing(primitive, platform)
        return found

    def missing(self, primitive: Primitive, platform: str | None = None) -> MissingRuleError:
        """The error for a rule that nobody wrote."""
        return self._error(_messages.miss(self, primitive, platform), primitive)

    def _error(self, message: str, primitive: Primitive) -> MissingRuleError:
        return MissingRuleError(message, primitive=primitive, kind=self.kind)

    def find(self, primitive: Primitive, platform: str | None = None) -> RuleFn | None:
        """As `lookup`, with None instead of the error."""
        if not observe.watched:
            return self._find(primitive, platform)
        # What a derived rule is made of outlives the watching, and is no step of what is watched.
        found = observe.unwatched(self._find, primitive, platform)
        if found is None:
            return None
        platform = platform if platform is not None and (primitive, platform) in self._platform_table else None
        return reporting(self.kind, primitive, found, self.rule_of(primitive, platform), platform)

    def ready(self, primitive: Primitive) -> RuleFn | None:
        """The rule ready to run, if it is at hand: nothing is loaded or derived, and no run of it is reported."""
        return self._ready.get(primitive)

    def _find(self, primitive: Primitive, platform: str | None) -> RuleFn | None:
        if platform is not None:
            # A platform's rule may come with the lazy ones where a general one is here.
            load_rules(self.kind, primitive)
            found = self._platform_table.get((primitive, platform))
            if found is not None:
                return found
        found = self._ready.get(primitive)
        if found is None and load_rules(self.kind, primitive):
            found = self._ready.get(primitive)
        return found if found is not None else self._derive(primitive)

    def is_written(self, primitive: Primitive) -> bool:
        """Whether somebody wrote a rule, for all platforms or for some; loads what comes lazily."""
        rule = self.rule_of(primitive)
        if (rule is None or rule.derived is not None) and load_rules(self.kind, primitive):
            rule = self.rule_of(primitive)
        return (rule is not None and rule.derived is None) or bool(self.platforms_of(primitive))

    def template_for(self, primitive: Primitive) -> str:
        """The code that an author of this rule starts from."""
        return _messages.template(self.template, primitive)

    # -- derived rules -------------------------------------------------------------------------------------------------

    def derived(self, primitive: Primitive) -> RuleFn:
        """The rule that would be there had nobody written one: for a rule to hand on cases that it does not do.

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
        load_rules(self.kind, primitive)  # ways to derive come with the lazy ones
        found = self._derivation(primitive)
        if found is None:
            raise self._error(_messages.underivable(self, primitive), primitive)
        derivation, fn = found
        rule = Rule(fn, primitive.provenance, derivation.name, derivation.flags)
        return rule, self.adapt(primitive, fn, derivation.flags)

    def _derivation(self, primitive: Primitive) -> tuple[Derivation, RuleFn] | None:
        """The best derivation that gives a rule, and the rule; neither is kept."""
        made = ((derivation, derivation.make(primitive)) for derivation in self.derivations)
        return next(((derivation, fn) for derivation, fn in made if fn is not None), None)

    def can_derive(self, primitive: Primitive) -> str | None:
        """Name of the derivation that would supply the rule, without keeping it; None where it is refused."""
        found = self._derivation(primitive)
        return None if found is None or config.strict_rules else found[0].name

    def _derive(self, primitive: Primitive) -> RuleFn | None:
        written = self._in_force(primitive)
        by = None if written is None else written.flags.get("by")
        found = self._derivation(primitive) if by is None else self._made_by(primitive, by)
        if found is None or (by is None and config.strict_rules):
            return None
        derivation, fn = found
        ready = self.adapt(primitive, fn, derivation.flags)
        if by is None:
            ready = self._warning(primitive, derivation, ready) if derivation.slow else ready
            self._derived[primitive] = Rule(fn, primitive.provenance, derivation.name, derivation.flags)
        self._install(primitive, None, ready)
        return ready

    def _made_by(self, primitive: Primitive, by: str) -> tuple[Derivation, RuleFn]:
        found = self.derivations.named(by)
        fn = None if found is None else found.make(primitive)
        if found is None or fn is None:
            raise self._error(_messages.not_made(self, primitive, by, found), primitive)
        return found, fn

    def _warning(self, primitive: Primitive, derivation: Derivation, ready: RuleFn) -> RuleFn:
        """The rule, which says when it first runs that it is a stopgap."""

        def rule(*args: Any, **params: Any) -> Any:
            if primitive not in self._warned:
                source_info.warn_user(_messages.slow(self, primitive, derivation), DerivedRuleWarning)
                self._warned.add(primitive)
            return ready(*args, **params)

        return rule

    # -- a mapping -----------------------------------------------------------------------------------------------------

    def __getitem__(self, primitive: Primitive) -> RuleFn:
        return self.lookup(primitive)

    def __setitem__(self, primitive: Primitive, rule: RuleFn) -> None:
        self.register(primitive, rule)

    def __contains__(self, primitive: object) -> bool:
        return primitive in self._ready

    def get(self, primitive: Primitive, default: Any = None) -> Any:
        """The rule in the table or derivable, else `default`."""
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
follow_settings(registries)
follow_watchers(registries)
