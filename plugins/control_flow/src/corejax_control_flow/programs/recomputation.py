"""Selection of the values that the known half of a program saves for the unknown half, which recomputes the others.

    recompute : (a -> b) -> (a -> (b, saved), (saved, a) -> b)

Equations are visited from the last to the first. For each equation with outputs that are needed later, the policy
decides: either the outputs are saved, or the equation is copied into the unknown half and its operands are needed in
turn. Arguments are always available.

Without a policy, residuals that are cheap to recompute from other residuals are not saved (`cheap_again`): a
primitive tagged "cheap" takes less time than reading its result from memory. Each value is followed back through
such equations to its roots: arguments and results of other equations. A root is saved instead of the values that
need no other unsaved root, if together they are larger (Jain et al., Checkmate, 2020, has the general problem).
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
    """Split the computation of the variables that are needed later into saving and recomputing.

    Args:
        eqns: a program's equations.
        wanted: the variables that are needed later.
        policy: predicate that returns True if an equation's outputs may be saved. The outputs of equations with
            effects are always saved, as such equations never run twice.

    Returns:
        The equations, some with additional outputs; the equations that compute the wanted variables from the
        program's binders and the saved variables; and the saved variables.
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
    """Check the result of a recompute rule, which is None or two equations and the variables that the first saves.

    Both equations bind the results of the original; the second may also read the saved variables.

    Raises:
        TypeError: if the rule returned anything else.
    """
    if result is None:
        return None
    if not isinstance(result, list | tuple) or len(result) != 3:
        raise bad_equations("recompute", eqn, rule, f"{result!r} where it has to return (eqn, copy, saved)")
    whole, copy, saved = result
    problem = equations_mismatch([whole], eqn.invars, [*eqn.outvars, *saved])
    problem = problem or equations_mismatch([copy], [*eqn.invars, *saved], eqn.outvars)
    if problem is not None:
        raise bad_equations("recompute", eqn, rule, problem)
    return whole, copy, saved


def _trimmed(eqn: JaxprEqn, needed: set[Var]) -> JaxprEqn:
    """Drop the outputs that are not needed, and the operands that are then unused, if the primitive has a DCE rule."""
    rule = dce_rules.get(eqn.primitive)
    smaller = rule([v in needed for v in eqn.outvars], eqn)[1] if rule is not None else None
    return eqn if smaller is None else smaller


class _ByPolicyOrSize:
    """The plugin's `Recomputation`: follows the policy, or without one minimises the bytes that are saved."""

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
MOST_EQUATIONS = 12  # a longer recomputation would take more time than reading the result from memory


def cheap_again(eqns: Sequence[JaxprEqn], residuals: Sequence[Var], constvars: Iterable[Var]) -> list[JaxprEqn]:
    """Return the equations that recompute residuals cheaply, so that fewer bytes are saved.

    Args:
        eqns: the known half of a program.
        residuals: the variables of `eqns` that the unknown half uses.
        constvars: the program's constants, which are available in both halves.

    Returns:
        A subsequence of `eqns`. The residuals to save are the variables that it reads, and the residuals that it does
        not compute.
    """
    makers = {eqn.outvars[0]: eqn for eqn in eqns if "cheap" in eqn.primitive.tags and not eqn.effects}
    if makers.keys().isdisjoint(residuals):
        return []
    wanted = set(residuals)
    kept = {v for v in residuals if v not in makers}
    kept |= _larger_together(makers, wanted, kept, constvars)
    dropped: set[Var] = set()
    costs: _Costs = {v: (frozenset(), 0) for v in constvars}
    for v in makers:
        has_roots = _roots(v, makers, costs) <= kept
        if v in wanted and v not in kept and has_roots:
            dropped.add(v)
        elif v in wanted or v in kept:
            kept.add(v)
            costs[v] = (frozenset((v,)), 0)
    return _makers_of(eqns, dropped, kept)


# For each variable, the roots and the number of equations that recompute it from them.
_Costs = dict[Var, tuple[frozenset[Var], int]]


def _roots(v: Var, makers: dict[Var, JaxprEqn], costs: _Costs) -> frozenset[Var]:
    """Return the variables from which cheap equations compute `v`, and record its cost.

    Variables must be visited in program order. A variable is its own root if its computation takes more than
    MOST_EQUATIONS equations or MOST_ROOTS roots.
    """
    parts = [costs.get(x, (frozenset((x,)), 0)) for x in makers[v].invars if type(x) is Var]
    roots = frozenset[Var]().union(*[roots for roots, _ in parts])
    count = 1 + sum([count for _, count in parts])
    costs[v] = (roots, count) if len(roots) <= MOST_ROOTS and count <= MOST_EQUATIONS else (frozenset((v,)), 0)
    return costs[v][0]


def _larger_together(
    makers: dict[Var, JaxprEqn], wanted: set[Var], kept: set[Var], constvars: Iterable[Var]
) -> set[Var]:
    """Return the roots that are smaller than the residuals that they and the kept variables suffice to recompute."""
    costs: _Costs = {v: (frozenset(), 0) for v in constvars}
    recomputed_bytes: dict[Var, int] = {}
    for v in makers:
        missing = _roots(v, makers, costs) - kept
        if v in wanted and len(missing) == 1:
            (root,) = missing
            recomputed_bytes[root] = recomputed_bytes.get(root, 0) + _bytes(v)
    return {root for root, size in recomputed_bytes.items() if size > _bytes(root)}


def _bytes(v: Var) -> int:
    return v.aval.size * v.aval.dtype.itemsize


def _makers_of(eqns: Sequence[JaxprEqn], dropped: set[Var], kept: set[Var]) -> list[JaxprEqn]:
    """Return the equations that compute the dropped variables from the kept ones."""
    again = []
    needed = set(dropped)
    for eqn in reversed(eqns):
        v = eqn.outvars[0] if eqn.outvars else None
        if v in needed and v not in kept:
            again.append(eqn)
            needed.update(x for x in eqn.invars if type(x) is Var)
    return again[::-1]
