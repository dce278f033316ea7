"""Which values the known half of a program keeps for the unknown half; the others are computed again.

    recompute : (a -> b) -> (a -> (b, saved), (saved, a) -> b)

A policy is asked of each equation, from the last to the first, whose outputs are needed later: either its outputs
are kept, or the equation is copied and its operands are needed in turn. Arguments are always at hand.

Without a policy, what is cheap to compute again from other residuals is not kept (`cheap_again`): a primitive tagged
"cheap" takes less time than reading its result from memory. Values are traced back through such equations to their
roots: those that something else makes, and arguments. A root is kept instead of values that need no other root, where
together they are larger (Jain et al., Checkmate, 2020, has the general problem).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Var, memoised
from corejax.extend.programs import (
    Policy,
    Recomputed,
    bad_equations,
    dce_rules,
    equations_mismatch,
    recompute_rules,
)


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


class _ByPolicyOrSize:
    """The kernel's `Recomputation`: as the policy says; without one, what is cheap and leaves fewer bytes."""

    def split(
        self, eqns: list[JaxprEqn], residuals: Sequence[Var], constvars: Sequence[Var], policy: Policy | None
    ) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
        if policy is None:
            return eqns, cheap_again(eqns, residuals, constvars)
        return recompute(eqns, residuals, policy)[:2]

    def programs(self, closed: ClosedJaxpr, policy: Policy) -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
        def make() -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
            jaxpr = closed.jaxpr
            wanted = [v for v in jaxpr.outvars if type(v) is Var]
            first, again, kept = recompute(jaxpr.eqns, wanted, policy)
            one = Jaxpr(jaxpr.constvars, jaxpr.invars, first, [*jaxpr.outvars, *kept], jaxpr.debug_info)
            two = Jaxpr(jaxpr.constvars, [*kept, *jaxpr.invars], again, jaxpr.outvars, jaxpr.debug_info)
            return ClosedJaxpr(one, closed.consts), ClosedJaxpr(two, closed.consts), len(kept)

        return memoised(closed, ("recompute", policy), make)


RECOMPUTATION = _ByPolicyOrSize()


# -- without a policy: fewer bytes ---------------------------------------------------------------------------------

MOST_ROOTS = 3
MOST_EQUATIONS = 12  # more would take longer than memory does


def cheap_again(eqns: Sequence[JaxprEqn], residuals: Sequence[Var], constvars: Iterable[Var]) -> list[JaxprEqn]:
    """Equations that make residuals once more, and so leave fewer bytes to keep.

    Args:
        eqns: the known half of a program.
        residuals: those of its variables that the unknown half uses.
        constvars: the program's constants, which are at hand in both halves.

    Returns:
        Copies of equations of `eqns`, in their order. What they use, and the residuals that they do not make, are the
        residuals to keep.
    """
    makers = {eqn.outvars[0]: eqn for eqn in eqns if "cheap" in eqn.primitive.tags and not eqn.effects}
    if makers.keys().isdisjoint(residuals):
        return []
    wanted = set(residuals)
    kept = {v for v in residuals if v not in makers}
    kept |= _larger_together(makers, wanted, kept, constvars)
    dropped: set[Var] = set()
    found: _Found = {v: (frozenset(), 0) for v in constvars}
    for v in makers:
        enough = _roots(v, makers, found) <= kept
        if v in wanted and v not in kept and enough:
            dropped.add(v)
        elif v in wanted or v in kept:
            kept.add(v)
            found[v] = (frozenset((v,)), 0)
    return _makers_of(eqns, dropped, kept)


_Found = dict[Var, tuple[frozenset[Var], int]]  # of variables, their roots and the number of equations


def _roots(v: Var, makers: dict[Var, JaxprEqn], found: _Found) -> frozenset[Var]:
    """Find the variables from which cheap equations make a variable; asked in the order of the program.

    It is its own root if it is made by too many equations, or from too many roots.
    """
    parts = [found.get(x, (frozenset((x,)), 0)) for x in makers[v].invars if type(x) is Var]
    roots = frozenset[Var]().union(*[roots for roots, _ in parts])
    count = 1 + sum([count for _, count in parts])
    found[v] = (roots, count) if len(roots) <= MOST_ROOTS and count <= MOST_EQUATIONS else (frozenset((v,)), 0)
    return found[v][0]


def _larger_together(
    makers: dict[Var, JaxprEqn], wanted: set[Var], kept: set[Var], constvars: Iterable[Var]
) -> set[Var]:
    """Roots that are smaller than all that is made of them and of what is kept."""
    found: _Found = {v: (frozenset(), 0) for v in constvars}
    made: dict[Var, int] = {}
    for v in makers:
        missing = _roots(v, makers, found) - kept
        if v in wanted and len(missing) == 1:
            (root,) = missing
            made[root] = made.get(root, 0) + _bytes(v)
    return {root for root, size in made.items() if size > _bytes(root)}


def _bytes(v: Var) -> int:
    return v.aval.size * v.aval.dtype.itemsize


def _makers_of(eqns: Sequence[JaxprEqn], dropped: set[Var], kept: set[Var]) -> list[JaxprEqn]:
    again = []
    needed = set(dropped)
    for eqn in reversed(eqns):
        v = eqn.outvars[0] if eqn.outvars else None
        if v in needed and v not in kept:
            again.append(eqn)
            needed.update(x for x in eqn.invars if type(x) is Var)
    return again[::-1]
