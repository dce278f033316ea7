"""`Rule`: what a registry keeps of one rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from corejax.base.provenance import Provenance

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
