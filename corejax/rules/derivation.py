"""`Derivation`: a way to derive a missing rule from other parts of a primitive, such as its decomposition."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from corejax.base.provenance import Provenance
from corejax.base.tables import Table

if TYPE_CHECKING:
    from corejax.core.avals import FlatFun
    from corejax.core.primitive import Primitive

    OfBody = Callable[[Primitive, FlatFun], Callable[..., Any]]

__corejax_registers_for_caller__ = True


class Derivation(NamedTuple):
    """A way to derive a missing rule.

    Attributes:
        name: the name of derived rules in lists and messages ("decomposition").
        make: `make(primitive)` returns the rule, or None if the derivation does not apply. It is called whenever rules
            are listed, so it must be cheap and have no side effects.
        needs: the parts that an author must provide for it, for messages ("a decomposition").
        flags: the flags of the derived rule, as in `register`.
        slow: for a slow rule, what makes it slow ("vmap applies it to one element at a time"). The first run warns
            with this text, unless the author has chosen the derivation (`register(p, by=...)`).
        preferred: whether it comes before the derivations of the registry's own package.
    """

    name: str
    make: Callable[[Any], Callable[..., Any] | None]
    needs: str = ""
    flags: Mapping[str, Any] = MappingProxyType({})
    slow: str = ""
    preferred: bool = False

    @property
    def provenance(self) -> Provenance:
        """The module of `make`, which contributed the derivation."""
        return Provenance(self.make.__module__)


class Derivations(Sequence[Derivation]):
    """The derivations of one rule kind, best first, in an order that does not depend on the order of imports.

    Preferred ones come first, then those that the registry lists in `derived_by`, then others, and slow ones last.
    """

    def __init__(self, title: str, order: Sequence[str], changed: Callable[[], None]) -> None:
        self._table: Table[str, Derivation] = Table(f"derivation of {title}s", changed=lambda name, found: changed())
        self._ranks = {name: rank for rank, name in enumerate(order)}

    def append(self, derivation: Derivation) -> None:
        """Add a derivation.

        Raises:
            DuplicateRegistrationError: another derivation has the same name.
        """
        self._table.register(derivation.name, derivation, provenance=Provenance.of(derivation.make))

    def from_decomposition(self, **flags: object) -> Callable[[OfBody], OfBody]:
        """Derive rules from decompositions by the decorated function `(primitive, body) -> rule`.

        `body` is the decomposition as a function that returns a list of results; `flags` are those of the rules.
        """
        from corejax.core.primitive import flat_decomposition  # here, because tables import no arrays

        def decorate(of_body: OfBody) -> OfBody:
            @functools.wraps(of_body)
            def make(primitive: Primitive) -> Callable[..., Any] | None:
                body = flat_decomposition(primitive)
                return None if body is None else of_body(primitive, body)

            self.append(Derivation("decomposition", make, needs="a decomposition", flags=flags))
            return of_body

        return decorate

    def remove(self, derivation: Derivation) -> None:
        """Remove a derivation."""
        del self._table[derivation.name]

    def __getitem__(self, i: Any) -> Any:
        return sorted(self._table.values(), key=self._rank)[i]

    def _rank(self, derivation: Derivation) -> tuple[bool, bool, int]:
        return bool(derivation.slow), not derivation.preferred, self._ranks.get(derivation.name, len(self._ranks))

    def __len__(self) -> int:
        return len(self._table)
