"""`Rule`: what a registry keeps of one rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from corejax.config import config
from corejax.provenance import Provenance
from corejax.tables import Entries

RuleFn = Callable[..., Any]


class Rule(NamedTuple):
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
    flags: Mapping[str, Any] = MappingProxyType({})
    overridden: Rule | None = None
    overriding: bool = False


def chain(entries: Entries) -> Rule | None:
    """The first of a table's rules for one primitive, with those that it replaces; None where there is none."""
    found: Rule | None = None
    for entry in reversed(entries):
        found = entry.value if found is None else entry.value._replace(overridden=found)
    return found


def in_force(rule: Rule | None) -> Rule | None:
    """The rule, or the one that it replaces where it is switched off."""
    if config.rule_overrides is True:  # the usual case: nobody has to find out whose it is
        return rule
    while rule is not None and rule.overriding and not config.overrides_are_on(rule.provenance.plugin):
        rule = rule.overridden
    return rule
