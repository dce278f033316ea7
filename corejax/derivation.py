"""`Derivation`: a way to make a missing rule from what the primitive has (a decomposition, or impl and type)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from corejax.provenance import Provenance


@dataclass(frozen=True)
class Derivation:
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
    flags: Mapping[str, Any] = field(default_factory=dict)
    slow: str = ""

    @property
    def provenance(self) -> Provenance:
        """Who contributed it: the module of `make`."""
        return Provenance(self.make.__module__)
