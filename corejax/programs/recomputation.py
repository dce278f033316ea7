"""What is computed again instead of kept: the seam for the plugin that decides, and the rules that it asks.

A plugin exports a `Recomputation` as `corejax.recomputation`. Without one a partial evaluation keeps every residual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from corejax.base.seams import Slot
from corejax.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from corejax.rules import OptionalRules


class Policy(Protocol):
    """`policy(primitive, *avals_in, **params) -> bool`: whether the outputs of such an equation may be kept."""

    def __call__(self, primitive: Any, /, *avals: Any, **params: Any) -> bool:
        """True if they may; hashable policies that compare equal share what is made with them."""


def keep_all(primitive: Any, /, *avals: Any, **params: Any) -> bool:
    """The policy by which everything may be kept."""
    return True


# primitive -> rule(policy, eqn) -> (eqn, copy, saved) for higher-order primitives: the equation with more outputs,
# the equation that computes the original ones again, and the variables that the first leaves for the second. None
# where nothing inside is to be saved.
Recomputed = tuple[JaxprEqn, JaxprEqn, list[Var]]
recompute_rules = OptionalRules("recompute")


class Recomputation(Protocol):
    """Decides what is computed again."""

    def split(
        self, eqns: list[JaxprEqn], residuals: Sequence[Var], constvars: Sequence[Var], policy: Policy | None
    ) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
        """Return the known half of a program, some equations with more outputs, and equations to run once more.

        Args:
            eqns: the known half.
            residuals: those of its variables that the unknown half uses.
            constvars: the program's constants, which are at hand in both halves.
            policy: what may be kept; None: everything, as long as that takes the least memory.
        """

    def programs(self, closed: ClosedJaxpr, policy: Policy) -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
        """Return two programs for one, `a -> b`, that is run twice.

        They are `first : a -> (b, saved)` and `again : (saved, a) -> b`; the number of saved values comes third.
        """


# Finds the plugin's; None if no plugin has one.
find_recomputation: Slot[Callable[[], Recomputation | None]] = Slot("what finds the recomputation")
