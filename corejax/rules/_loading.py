"""What `corejax.plugins` installs here: loading of rules that come lazily, and what is known of plugins that failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corejax.primitive import Primitive

# What the loader of rules is asked for besides rules of a kind; so no rule kind may be called that.
NOT_KINDS = frozenset({"primitives", "rule_kinds"})


def _nobody(primitive: str, distribution: str | None) -> str:
    return "is the plugin that has it installed?"


def _no_faults(kind: str) -> Sequence[str]:
    return ()


# Set by `corejax.plugins`: imports what plugins contribute of one rule kind, True when something new was
# loaded; and the plugins that failed, or could not load their rules of a kind, one sentence each.
_rule_loader: Callable[[str, Primitive | None], bool] | None = None
_faults: Callable[[str], Sequence[str]] = _no_faults
_whose: Callable[[str, str | None], str] = _nobody


def set_rule_loader(
    loader: Callable[[str, Primitive | None], bool],
    faults: Callable[[str], Sequence[str]] = _no_faults,
    whose: Callable[[str, str | None], str] = _nobody,
) -> None:
    """Install what imports lazily loaded rules of a kind, what says which failed, and whose a primitive is."""
    global _rule_loader, _faults, _whose
    _rule_loader, _faults, _whose = loader, faults, whose


def load_rules(kind: str, primitive: Primitive | None = None) -> bool:
    """Import the rules of a kind that plugins have not contributed yet; True when something was loaded.

    Args:
        kind: name of the registry.
        primitive: whose rule is missing; of plugins that tell their primitives apart, others' rules may stay away.
    """
    return _rule_loader is not None and _rule_loader(kind, primitive)


def load_rule_kinds() -> bool:
    """Import the registries of rule kinds that plugins add; True when something was loaded."""
    return load_rules("rule_kinds")


def problems(kind: str) -> Sequence[str]:
    """Why rules of a kind (or "primitives") may be missing: plugins that failed or are off, one sentence each."""
    return _faults(kind)


def whose_primitive(name: str, distribution: str | None = None) -> str:
    """Where a primitive is that is not here, or what to install, in half a sentence."""
    return _whose(name, distribution)
