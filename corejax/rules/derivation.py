"""`Derivation`: a way to make a missing rule from what the primitive has (a decomposition, or impl and type)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from corejax.base.provenance import Provenance
from corejax.base.tables import Table

__corejax_registers_for_caller__ = True


class Derivation(NamedTuple):
    """A way to make a missing rule.

    Attributes:
        name: what marks the rule wherever it is shown ("decomposition").
        make: `make(primitive)` gives the rule, or None where it does not apply. Asked whenever rules are listed, so
            it computes nothing and leaves nothing behind.
        needs: what an author gives for it to apply, for messages ("a decomposition").
        flags: what the rule declares, as `register` takes it.
        slow: of a rule that is a stopgap, what happens for want of a real one; said once when it runs
            ("vmap applies it to one element at a time"), unless the author has chosen it (`register(p, by=...)`).
    """

    name: str
    make: Callable[[Any], Callable[..., Any] | None]
    needs: str = ""
    flags: Mapping[str, Any] = MappingProxyType({})
    slow: str = ""

    @property
    def provenance(self) -> Provenance:
        """The module of `make`, which contributed it."""
        return Provenance(self.make.__module__)


class Derivations(Sequence[Derivation]):
    """The derivations of one rule kind, best first; a table of them by name.

    The registry names their order, which therefore does not depend on the order of imports. Derivations that the
    registry does not name come after those that it names, and slow ones after all others.
    """

    def __init__(self, title: str, order: Sequence[str], changed: Callable[[], None]) -> None:
        self._table: Table[str, Derivation] = Table(f"derivation of {title}s", changed=lambda name, found: changed())
        self._ranks = {name: rank for rank, name in enumerate(order)}

    def append(self, derivation: Derivation) -> None:
        """Add a derivation.

        Raises:
            DuplicateRegistrationError: another one has its name.
        """
        self._table.register(derivation.name, derivation, provenance=Provenance.of(derivation.make))

    def remove(self, derivation: Derivation) -> None:
        """Remove a derivation."""
        del self._table[derivation.name]

    def __getitem__(self, i: Any) -> Any:
        return sorted(self._table.values(), key=lambda d: (bool(d.slow), self._ranks.get(d.name, len(self._ranks))))[i]

    def __len__(self) -> int:
        return len(self._table)
