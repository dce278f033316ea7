"""The interface of recomputation: a plugin decides which residuals are recomputed instead of saved.

A plugin exports a `Recomputation` as `corejax.recomputation`. Without one, partial evaluation saves every residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from corejax.base.plugin_access import plugin_access
from corejax.core.primitive import Primitive
from corejax.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from corejax.rules import OptionalRules


class Policy(Protocol):
    """`policy(primitive, *avals_in, **params) -> bool`: whether outputs of such an equation may be saved."""

    def __call__(self, primitive: Primitive, /, *avals: Any, **params: Any) -> bool:
        """Return True if they may be saved; equal hashable policies share cached results."""


def keep_all(primitive: Primitive, /, *avals: Any, **params: Any) -> bool:
    """Return True: the policy that allows to save everything."""
    return True


# primitive -> rule(policy, eqn) -> (eqn, copy, saved) for higher-order primitives: the equation with more outputs, the
# equation that recomputes the original outputs, and the variables that the first saves for the second; None if the
# policy saves no inner value.
Recomputed = tuple[JaxprEqn, JaxprEqn, list[Var]]
recompute_rules = OptionalRules("recompute")


class Recomputation(Protocol):
    """Decides which values are recomputed."""

    def split(
        self, eqns: list[JaxprEqn], residuals: Sequence[Var], constvars: Sequence[Var], policy: Policy | None
    ) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
        """Return the equations of the known half, some with more outputs, and the equations to recompute.

        Args:
            eqns: the known half.
            residuals: its variables that the unknown half uses.
            constvars: the program's constants, which are available in both halves.
            policy: the values that may be saved; None to save whatever takes the least memory.
        """

    def programs(self, closed: ClosedJaxpr, policy: Policy) -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
        """Return, for a program `a -> b` that runs twice, `first : a -> (b, saved)` and `again : (saved, a) -> b`.

        The third item is the number of saved values.
        """


def find_recomputation() -> Recomputation | None:
    """Return a plugin's `Recomputation`, or None."""
    found: Recomputation | None = plugin_access().exported_to_kernel("recomputation")
    return found
