"""Rule registries: one-to-one tables keyed by primitive (and platform), which know who contributed what.

The hot path reads `registry.table`, a plain dict; everything else (lazy loading, derived rules, good misses)
happens in `lookup`, once per primitive.
"""

from __future__ import annotations

import functools
import re
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from corejax import observe, source_info
from corejax.config import config
from corejax.derivation import Derivation as Derivation
from corejax.errors import DerivedRuleWarning, DuplicateRegistrationError, MissingRuleError
from corejax.journal import Table
from corejax.provenance import Provenance

if TYPE_CHECKING:
    from corejax.primitive import Primitive

RuleFn = Callable[..., Any]


@dataclass(frozen=True)
class Rule:
    """One rule as registered.

    Attributes:
        fn: the function as its author wrote it.
        provenance: who contributed it, from which file and line.
        derived: how it was made of others ("decomposition", ...); None for a rule of an author's own.
        flags: what its author declared (`symbolic_zeros=True`, `device=True`, ...; `by`, a derivation's name).
        overridden: the rule that this one replaced, if any.
        overriding: whether it was registered to replace another, whichever of the two comes first; such a rule is
            in force as `config.rule_overrides` says.
    """

    fn: RuleFn
    provenance: Provenance
    derived: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    overridden: Rule | None = None
    overriding: bool = False


class RuleRegistry(Mapping["Primitive", RuleFn]):
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
        derivations: ways to make missing rules, tried in order.
        on_change: called with a primitive whose rule has changed.
        provenance: who made the registry.

    Raises:
        DuplicateRegistrationError: there is a registry of this kind, made elsewhere.
    """

    def __init__(
        self, kind: str, title: str, template: str, *, required: bool = True, flags: tuple[str, ...] = ()
    ) -> None:
        self.provenance = Provenance.of_frame(sys._getframe(1))
        earlier = registries.get(kind)
        if earlier is not None and not self.provenance.redefines(earlier.provenance):
            raise DuplicateRegistrationError(
                f"rule kind {kind!r} exists, from {earlier.provenance}; {self.provenance} makes a second one"
            )
        self.kind = kind
        self.title = title
        self.template = template
        self.required = required
        self.flags = frozenset(flags)
        self._ready: dict[Primitive, RuleFn] = {}
        self.table = reporting_table(self, self._ready)
        self.derivations: list[Derivation] = []
        self.adapt: Callable[[Any, RuleFn, Mapping[str, Any]], RuleFn] = lambda primitive, fn, flags: fn
        self.on_change: Callable[[Any], None] = lambda primitive: None
        self._rules: dict[tuple[Primitive, str | None], Rule] = Table(f"rules:{kind}", put=self._put)
        self._platform_table: dict[tuple[Primitive, str], RuleFn] = {}
        self._stand_ins: dict[Primitive, Rule] = {}  # derived ones, while an override is switched off
        self._warned: weakref.WeakSet[Primitive] = weakref.WeakSet()
        registries[kind] = self

    # -- registration ----------------------------------------------------------------------------------------

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
        declared = flags if by is None else {"by": by}
        entry = Rule(rule, Provenance.of(rule), None, declared, overriding=override)
        earlier = self._rules.get((primitive, platform))
        if earlier is None or earlier.derived is not None:
            self.reinstate(primitive, platform, entry)
        elif entry.provenance.redefines(earlier.provenance) and override == earlier.overriding:
            self.reinstate(primitive, platform, replace(entry, overridden=earlier.overridden))
        elif override:
            self.reinstate(primitive, platform, replace(entry, overridden=earlier))
        elif earlier.overriding and (
            earlier.overridden is None or entry.provenance.redefines(earlier.overridden.provenance)
        ):
            # Loaded after the one that replaces it: the order of loading is nobody's choice.
            self.reinstate(primitive, platform, replace(earlier, overridden=entry))
        else:
            raise self._duplicate(primitive, platform, earlier, entry)
        return rule

    def _duplicate(self, primitive: Primitive, platform: str | None, earlier: Rule, entry: Rule) -> Exception:
        where = f" on platform {platform!r}" if platform else ""
        return DuplicateRegistrationError(
            f"primitive {primitive.name!r} has a {self.title}{where} from {earlier.provenance}; "
            f"{entry.provenance} registers a second one. If that is meant, register it with override=True."
        )

    def unregister(self, primitive: Primitive, platform: str | None = None) -> None:
        """Take a rule back; the rule that it had overridden, if any, is in force again.

        Raises:
            KeyError: there is no such rule.
        """
        entry = self._rules.get((primitive, platform))
        if entry is None:
            where = f" on platform {platform!r}" if platform else ""
            raise KeyError(f"primitive {primitive.name!r} has no {self.title}{where} to unregister")
        self.reinstate(primitive, platform, entry.overridden)

    def reinstate(self, primitive: Primitive, platform: str | None, entry: Rule | None) -> None:
        """Put exactly this entry in place, or none; a derived one is left to be derived again."""
        if entry is not None and entry.derived is not None:
            entry = None
        rule = _in_force(entry)
        ready = None
        if rule is not None and "by" not in rule.flags:  # those are made when they are looked for
            ready = self.adapt(primitive, rule.fn, rule.flags)
        if entry is None:
            self._rules.pop((primitive, platform), None)
        else:
            self._rules[primitive, platform] = entry
        self._install(primitive, platform, ready)

    def _chosen(self, primitive: Primitive) -> RuleFn:
        """Stands for a rule that a derivation makes at first use: the plugin that has the derivation may load later."""

        def rule(*args: Any, **params: Any) -> Any:
            return self.lookup(primitive)(*args, **params)

        rule.__provenance__ = Provenance.of_caller()  # type: ignore[attr-defined]
        return rule

    def _made_by(self, primitive: Primitive, by: str) -> RuleFn:
        found = next((derivation for derivation in self.derivations if derivation.name == by), None)
        fn = None if found is None else found.make(primitive)
        if found is None or fn is None:
            known = ", ".join(repr(derivation.name) for derivation in self.derivations) or "none"
            reason = f"there are {known}" if found is None else f"it needs {found.needs}"
            raise MissingRuleError(
                f"primitive {primitive.name!r} (from {primitive.provenance.owner}) has a {self.title} by {by!r}, which "
                f"cannot be made: {reason}.{source_info.needed(' It was needed at')}",
                primitive=primitive,
                kind=self.kind,
            )
        ready = self.adapt(primitive, fn, found.flags)
        self._install(primitive, None, ready)
        return ready

    def _put(self, key: tuple[Primitive, str | None], entry: Rule | None) -> None:
        self.reinstate(*key, entry)

    def _install(self, primitive: Primitive, platform: str | None, ready: RuleFn | None) -> None:
        table: dict[Any, RuleFn] = self._ready if platform is None else self._platform_table
        key = primitive if platform is None else (primitive, platform)
        if ready is None:
            table.pop(key, None)
        else:
            table[key] = ready
        if platform is None:
            self._stand_ins.pop(primitive, None)
        self.on_change(primitive)

    def follow_overrides(self) -> None:
        """Put rules that replace others in force, or those that they replace, as `config.rule_overrides` says."""
        for (primitive, platform), rule in list(self._rules.items()):
            if rule.overriding:
                self.reinstate(primitive, platform, rule)

    # -- lookup ----------------------------------------------------------------------------------------------

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
        return MissingRuleError(self._miss_message(primitive, platform), primitive=primitive, kind=self.kind)

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
        derivation, fn = self._derivation(primitive)
        if derivation is None or fn is None:
            needs = "; or ".join(dict.fromkeys(d.needs for d in self.derivations if d.needs)) or "nothing"
            raise MissingRuleError(
                f"primitive {primitive.name!r} (from {primitive.provenance.owner}): no {self.title} can be derived, "
                f"which was asked for by {self.kind}_rules.derived at {source_info.user_line()}. It is derived from "
                f"{needs}.",
                primitive=primitive,
                kind=self.kind,
            )
        return self.adapt(primitive, fn, derivation.flags)

    def find(self, primitive: Primitive, platform: str | None = None) -> RuleFn | None:
        """As `lookup`, with None instead of the error."""
        if not observe.watched:
            return self._find(primitive, platform)
        # What a derived rule is made of outlives the watching, and is no step of what is watched.
        found = observe.unwatched(self._find, primitive, platform)
        return None if found is None else self._reporting(primitive, found, platform)

    def _find(self, primitive: Primitive, platform: str | None) -> RuleFn | None:
        if platform is not None:
            load_rules(self.kind)  # a platform's rule may come with the lazy ones where a general one is here
            found = self._platform_table.get((primitive, platform))
            if found is not None:
                return found
        found = self._ready.get(primitive)
        if found is None and load_rules(self.kind):
            found = self._ready.get(primitive)
        return found if found is not None else self._derive(primitive)

    def ready(self, primitive: Primitive) -> RuleFn | None:
        """The rule ready to run, if it is at hand: nothing is loaded or derived, and no run of it is reported."""
        return self._ready.get(primitive)

    def _reporting(self, primitive: Primitive, rule: RuleFn, platform: str | None = None) -> RuleFn:
        if not observe.watched_here():
            return rule
        if platform is not None and (primitive, platform) not in self._platform_table:
            platform = None
        step = observe.Step(primitive, None, self.kind, platform, self.rule_of(primitive, platform))

        @functools.wraps(rule)
        def reported(*args: Any, **params: Any) -> Any:
            return observe.run_step(step, rule, args, params)

        return reported

    def _derive(self, primitive: Primitive) -> RuleFn | None:
        written = _in_force(self._rules.get((primitive, None)))
        if written is not None and "by" in written.flags:
            return self._made_by(primitive, written.flags["by"])
        derivation, fn = self._derivation(primitive)
        if derivation is None or fn is None or config.strict_rules:
            return None
        ready = self.adapt(primitive, fn, derivation.flags)
        if derivation.slow:
            ready = self._warning(primitive, derivation, ready)
        self._install(primitive, None, ready)
        rule = Rule(fn, primitive.provenance, derivation.name, derivation.flags)
        if (primitive, None) in self._rules:  # an override that is switched off
            self._stand_ins[primitive] = rule
        else:
            self._rules[primitive, None] = rule
        return ready

    def _derivation(self, primitive: Primitive) -> tuple[Derivation, RuleFn] | tuple[None, None]:
        made = ((derivation, derivation.make(primitive)) for derivation in self.derivations)
        return next(((derivation, fn) for derivation, fn in made if fn is not None), (None, None))

    def _warning(self, primitive: Primitive, derivation: Derivation, ready: RuleFn) -> RuleFn:
        """The rule, which says when it first runs that it is a stopgap."""

        def rule(*args: Any, **params: Any) -> Any:
            if primitive not in self._warned:
                message = (
                    f"primitive {primitive.name!r} (from {primitive.provenance.owner}) has no {self.title}: "
                    f"{derivation.slow}, which is slow. To make it fast, write one:\n\n"
                    f"{self.template_for(primitive)}\n\n"
                    f"Or register it with by={derivation.name!r} in place of a function, if that is what you mean."
                )
                place = source_info.locate(source_info.capture())
                where = (place.file, place.line) if place is not None else (__file__, 1)
                warnings.warn_explicit(message, DerivedRuleWarning, *where)
                self._warned.add(primitive)
            return ready(*args, **params)

        return rule

    def can_derive(self, primitive: Primitive) -> str | None:
        """Name of the derivation that would supply the rule, without keeping it; None where it is refused."""
        derivation, _ = self._derivation(primitive)
        return None if derivation is None or config.strict_rules else derivation.name

    def forget_derived(self) -> None:
        """Drop derived rules; they are made again when they are needed, if they are not refused by then."""
        for (primitive, platform), rule in list(self._rules.items()):
            if rule.derived is not None:
                self.reinstate(primitive, platform, None)
        for primitive in list(self._stand_ins):
            self.reinstate(primitive, None, self._rules[primitive, None])

    def is_written(self, primitive: Primitive) -> bool:
        """Whether somebody wrote a rule, for all platforms or for some; loads what comes lazily."""
        rule = self.rule_of(primitive)
        if (rule is None or rule.derived is not None) and load_rules(self.kind):
            rule = self.rule_of(primitive)
        return (rule is not None and rule.derived is None) or bool(self.platforms_of(primitive))

    def rule_of(self, primitive: Primitive, platform: str | None = None) -> Rule | None:
        """The rule in force, with provenance; nothing is loaded or derived."""
        found = _in_force(self._rules.get((primitive, platform)))
        return found if found is not None or platform is not None else self._stand_ins.get(primitive)

    def registered(self, primitive: Primitive, platform: str | None = None) -> Iterator[Rule]:
        """Every rule that somebody wrote: in force or not, the one that replaces others before those."""
        entry = self._rules.get((primitive, platform))
        while entry is not None and entry.derived is None:
            yield entry
            entry = entry.overridden

    def platforms_of(self, primitive: Primitive) -> tuple[str, ...]:
        """Platforms with a rule of their own in force."""
        return tuple(sorted(p for q, p in self._platform_table if q is primitive))

    def platforms_registered(self, primitive: Primitive) -> tuple[str, ...]:
        """Platforms that somebody wrote a rule for, in force or not."""
        return tuple(sorted(p for q, p in self._rules if q is primitive and p is not None))

    def template_for(self, primitive: Primitive) -> str:
        """The code that an author of this rule starts from."""
        name = re.sub(r"\W", "_", primitive.name)
        return self.template.replace("{name}", name).replace("{var}", f"{name}_p")

    def _miss_message(self, primitive: Primitive, platform: str | None) -> str:
        where = f" for platform {platform!r}" if platform else ""
        notes = "".join(f"Note: {fault}\n" for fault in [*_faults(self.kind), *self._nonlinear(primitive)])
        line = source_info.needed("It was needed at")
        where_needed = f"{line}.\n" if line else ""
        return (
            f"primitive {primitive.name!r} (from {primitive.provenance.owner}) "
            f"has no {self.title}{where}{self._refused(primitive)}.\n"
            f"{where_needed}{notes}Write one:\n\n"
            f"{self.template_for(primitive)}{self._linear_way(primitive)}{self._other_ways()}"
        )

    def _nonlinear(self, primitive: Primitive) -> list[str]:
        if self.kind != "transpose" or primitive.linear_in or "linear" in primitive.tags:
            return []
        return [
            f"{primitive.name} is not declared linear. If a JVP rule applies it to a tangent, that rule is what is "
            "wrong: it has to be linear in the tangents."
        ]

    def _linear_way(self, primitive: Primitive) -> str:
        if self.kind not in ("jvp", "transpose") or not primitive.linear_in:
            return ""
        return "\n\nIf it is linear in all operands together: deflinear(primitive, transpose) gives JVP and transpose."

    def _refused(self, primitive: Primitive) -> str:
        if not config.strict_rules:
            return ""
        derivation, _ = self._derivation(primitive)
        name = f", here the one by {derivation.name}" if derivation is not None else ""
        return f" (derived rules are refused: config.strict_rules{name})"

    def _other_ways(self) -> str:
        needs = [d.needs for d in self.derivations if d.needs]
        if not needs or config.strict_rules:
            return ""
        return f"\n\nOr give the primitive what such a rule is derived from: {'; or '.join(dict.fromkeys(needs))}."

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
        return f"<registry of {self.title}s: {len(self)} primitives>"


class _ReportingTable(dict["Primitive", RuleFn]):
    """What takes the place of a table of ready rules while somebody watches: empty itself, it gives reporting ones."""

    def __init__(self, registry: RuleRegistry, ready: dict[Primitive, RuleFn]) -> None:
        self._registry = registry
        self._ready = ready

    def get(self, primitive: Primitive, default: Any = None) -> Any:
        rule = self._ready.get(primitive)
        return default if rule is None else self._registry._reporting(primitive, rule)

    def __getitem__(self, primitive: Primitive) -> RuleFn:
        return self._registry._reporting(primitive, self._ready[primitive])

    def __contains__(self, primitive: object) -> bool:
        return primitive in self._ready


def reporting_table(registry: RuleRegistry, ready: dict[Primitive, RuleFn]) -> dict[Primitive, RuleFn]:
    """A table of rules ready to run; while somebody watches, one in its place whose rules report their runs."""
    return _ReportingTable(registry, ready) if observe.watched else ready


registries: dict[str, RuleRegistry] = Table("registries")


def _follow_watchers() -> None:
    for registry in list(registries.values()):
        registry.table = reporting_table(registry, registry._ready)


observe.on_watched.append(_follow_watchers)

# What the loader of rules is asked for besides rules of a kind; so no rule kind may be called that.
NOT_KINDS = frozenset({"primitives", "rule_kinds"})


def _in_force(rule: Rule | None) -> Rule | None:
    """The rule, or the one that it replaces where it is switched off."""
    if config.rule_overrides is True:  # the usual case: nobody has to find out whose it is
        return rule
    while rule is not None and rule.overriding and not config.overrides_are_on(rule.provenance.plugin):
        rule = rule.overridden
    return rule


_overrides_followed = config.rule_overrides


def _follow_settings() -> None:
    global _overrides_followed
    for registry in list(registries.values()):
        if config.strict_rules:
            registry.forget_derived()
        if config.rule_overrides != _overrides_followed:
            registry.follow_overrides()
    _overrides_followed = config.rule_overrides


config.on_change.append(_follow_settings)


def _nobody(primitive: str, distribution: str | None) -> str:
    return "is the plugin that has it installed?"


def _no_faults(kind: str) -> Sequence[str]:
    return ()


# Set by `corejax.plugins`: imports what plugins contribute of one rule kind, True when something new was
# loaded; and the plugins that failed, or could not load their rules of a kind, one sentence each.
_rule_loader: Callable[[str], bool] | None = None
_faults: Callable[[str], Sequence[str]] = _no_faults
_whose: Callable[[str, str | None], str] = _nobody


def set_rule_loader(
    loader: Callable[[str], bool],
    faults: Callable[[str], Sequence[str]] = _no_faults,
    whose: Callable[[str, str | None], str] = _nobody,
) -> None:
    """Install what imports lazily loaded rules of a kind, what says which failed, and whose a primitive is."""
    global _rule_loader, _faults, _whose
    _rule_loader, _faults, _whose = loader, faults, whose


def load_rules(kind: str) -> bool:
    """Import the rules of a kind that plugins have not contributed yet; True when something was loaded."""
    return _rule_loader is not None and _rule_loader(kind)


def load_rule_kinds() -> bool:
    """Import the registries of rule kinds that plugins add; True when something was loaded."""
    return load_rules("rule_kinds")


def problems(kind: str) -> Sequence[str]:
    """Why rules of a kind (or "primitives") may be missing: plugins that failed or are off, one sentence each."""
    return _faults(kind)


def whose_primitive(name: str, distribution: str | None = None) -> str:
    """Where a primitive is that is not here, or what to install, in half a sentence."""
    return _whose(name, distribution)


impl_rules = RuleRegistry(
    "impl",
    "impl rule",
    """\
    @impl_rules.register({var})
    def {name}_impl(*arrays, **params):      # NumPy arrays in, NumPy arrays out
        return out""",
    flags=("device",),
)
abstract_eval_rules = RuleRegistry(
    "abstract_eval",
    "abstract-eval rule",
    """\
    @abstract_eval_rules.register({var})
    def {name}_abstract_eval(*avals, **params):
        return ShapedArray(shape, dtype)""",
)
jvp_rules = RuleRegistry(
    "jvp",
    "JVP rule",
    """\
    @jvp_rules.register({var})
    def {name}_jvp(primals, tangents, **params):
        return out, tangent_out""",
    flags=("symbolic_zeros", "nondifferentiable"),
)
vmap_rules = RuleRegistry(
    "vmap",
    "vmap rule",
    """\
    @vmap_rules.register({var})
    def {name}_vmap(axis_size, vals_in, dims_in, **params):
        return out, dim_out""",
)
transpose_rules = RuleRegistry(
    "transpose",
    "transpose rule",
    """\
    @transpose_rules.register({var})
    def {name}_transpose(ct, *primals_in, **params):   # UndefPrimal marks the linear operands
        return [ct_or_None_for_each_operand]""",
    required=False,
    flags=("symbolic_zeros",),
)
partial_eval_rules = RuleRegistry(
    "partial_eval",
    "partial-eval rule",
    """\
    @partial_eval_rules.register({var})
    def {name}_partial_eval(trace, args, **params):
        return outs""",
    required=False,
)
partial_eval_jaxpr_rules = RuleRegistry(
    "partial_eval_jaxpr",
    "partial-eval rule for equations",
    """\
    @partial_eval_jaxpr_rules.register({var})
    def {name}_partial_eval_eqn(unknowns_in, eqn):
        return eqn_known, eqn_unknown, unknowns_out, residuals""",
    required=False,
)
xla_translations = RuleRegistry(
    "xla_translation",
    "XLA translation rule",
    """\
    @xla_translations.register({var})
    def {name}_translation(ctx, in_avals, in_vals, **params):
        return out_value""",
)
