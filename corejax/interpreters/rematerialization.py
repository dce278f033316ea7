"""Which values the known half of a program keeps for the unknown half; the others are computed again.

    recompute : (a -> b) -> (a -> (b, saved), (saved, a) -> b)

A policy is asked of each equation, from the last to the first, whose outputs are needed later: either its outputs
are kept, or the equation is copied and its operands are needed in turn. Arguments are always at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from corejax.ir.dce import bad_equations, dce_rules, equations_mismatch
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from corejax.rules import OptionalRules

__corejax_registers_for_caller__ = True


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


def recompute(
    eqns: Sequence[JaxprEqn], wanted: Iterable[Var], policy: Policy
) -> tuple[list[JaxprEqn], list[JaxprEqn], list[Var]]:
    """Decide how variables become known once more.

    Args:
        eqns: a program's equations.
        wanted: the variables that are needed later.
        policy: what may be kept. Equations with effects are never run twice: their outputs are kept.

    Returns:
        The equations, some with more outputs than before; the equations that compute what is wanted from the
        program's binders and what was kept; and the variables kept.
    """
    needed = set(wanted)
    first: list[JaxprEqn] = []
    again: list[JaxprEqn] = []
    kept: list[Var] = []
    for eqn in reversed(eqns):
        if needed.isdisjoint(eqn.outvars):
            first.append(eqn)
            continue
        if eqn.effects or policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params):
            kept.extend(v for v in reversed(eqn.outvars) if v in needed)
            first.append(eqn)
            continue
        rule = recompute_rules.get(eqn.primitive)
        inside = _checked(eqn, rule, rule(policy, eqn)) if rule is not None else None
        whole, copy, saved = inside if inside is not None else (eqn, eqn, [])
        copy = _trimmed(copy, needed)
        first.append(whole)
        again.append(copy)
        kept.extend(reversed(saved))
        needed.update(v for v in copy.invars if type(v) is Var)
        needed.difference_update(saved)
    return first[::-1], again[::-1], kept[::-1]


def _checked(eqn: JaxprEqn, rule: Any, result: Any) -> Recomputed | None:
    """What a rule makes of an equation: two that each bind its results, the second from what the first saves too.

    Raises:
        TypeError: the rule gives something else; names it.
    """
    if result is None:
        return None
    if not isinstance(result, list | tuple) or len(result) != 3:
        raise bad_equations("recompute", eqn, rule, f"{result!r} where it has to give (eqn, copy, saved)")
    whole, copy, saved = result
    problem = equations_mismatch([whole], eqn.invars, [*eqn.outvars, *saved])
    problem = problem or equations_mismatch([copy], [*eqn.invars, *saved], eqn.outvars)
    if problem is not None:
        raise bad_equations("recompute", eqn, rule, problem)
    return whole, copy, saved


def _trimmed(eqn: JaxprEqn, needed: set[Var]) -> JaxprEqn:
    """An equation with programs, without outputs that are not needed and operands that are then not used."""
    rule = dce_rules.get(eqn.primitive)
    smaller = rule([v in needed for v in eqn.outvars], eqn)[1] if rule is not None else None
    return eqn if smaller is None else smaller


def recompute_jaxpr(closed: ClosedJaxpr, policy: Policy) -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
    """Two programs for one that is run twice.

    Args:
        closed: a program `a -> b`.
        policy: what the first run may keep.

    Returns:
        `first : a -> (b, saved)`, `again : (saved, a) -> b` and the number of saved values. Memoised.
    """
    key = ("recompute", policy)
    found = closed.memo.get(key)
    if found is None:
        jaxpr = closed.jaxpr
        wanted = [v for v in jaxpr.outvars if type(v) is Var]
        first, again, kept = recompute(jaxpr.eqns, wanted, policy)
        one = Jaxpr(jaxpr.constvars, jaxpr.invars, first, [*jaxpr.outvars, *kept], jaxpr.debug_info)
        two = Jaxpr(jaxpr.constvars, [*kept, *jaxpr.invars], again, jaxpr.outvars, jaxpr.debug_info)
        found = closed.memo[key] = (ClosedJaxpr(one, closed.consts), ClosedJaxpr(two, closed.consts), len(kept))
    return found


__all__ = ["Policy", "Recomputed", "keep_all", "recompute", "recompute_jaxpr", "recompute_rules"]
