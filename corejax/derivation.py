"""`Derivation`: a way to make a missing rule from what the primitive has (a decomposition, or impl and type)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from corejax.provenance import Provenance
from corejax.tables import Table

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
        """Who contributed it: the module of `make`."""
        return Provenance(self.make.__module__)


class Derivations(Sequence[Derivation]):
    """The derivations of one rule kind, in the order in which they are asked; a table of them by name.

    Args:
        title: the rule kind in a sentence ("JVP rule").
        removed: called when there is one less.
    """

    def __init__(self, title: str, removed: Callable[[], None]) -> None:
        def changed(name: str, derivation: Derivation | None) -> None:
            if derivation is None:
                removed()

        self._table: Table[str, Derivation] = Table(f"derivation of {title}s", changed=changed)

    def append(self, derivation: Derivation) -> None:
        """Add one, to be asked after the others.

        Raises:
            DuplicateRegistrationError: there is one of that name.
        """
        self._table.register(derivation.name, derivation, provenance=Provenance.of(derivation.make))

    def __iadd__(self, more: Iterable[Derivation]) -> Derivations:
        for derivation in more:
            self.append(derivation)
        return self

    def remove(self, derivation: Derivation) -> None:
        """Take one back."""
        del self._table[derivation.name]

    def clear(self) -> None:
        """Take all of them back."""
        self._table.clear()

    def named(self, name: str) -> Derivation | None:
        """The one of that name."""
        return self._table.get(name)

    def __getitem__(self, i: Any) -> Any:
        return list(self._table.values())[i]

    def __len__(self) -> int:
        return len(self._table)
