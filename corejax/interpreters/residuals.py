"""Fewer residuals: what is cheap to compute again from other residuals is not kept.

    cheaper : (a1 -> res)  to  a1 -> res'  and  res' -> res        res' of fewer bytes

A primitive tagged "cheap" takes less time than reading its result from memory. Values are traced back through such
equations to their roots: those that something else makes, and arguments. A root is kept instead of values that need no
other root, where together they are larger (Jain et al., Checkmate, 2020, has the general problem).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from corejax.ir.jaxpr import JaxprEqn, Var

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
    roots = _Roots(makers, constvars)
    for v in makers:
        enough = roots.trace(v) <= kept
        if v in wanted and v not in kept and enough:
            dropped.add(v)
        elif v in wanted or v in kept:
            kept.add(v)
            roots.found[v] = (frozenset((v,)), 0)
    return _makers_of(eqns, dropped, kept)


class _Roots:
    """From which variables cheap equations make a variable; asked in the order of the program.

    Attributes:
        found: of variables, their roots and the number of equations.
    """

    def __init__(self, makers: dict[Var, JaxprEqn], constvars: Iterable[Var]) -> None:
        self._makers = makers
        self.found: dict[Var, tuple[frozenset[Var], int]] = {v: (frozenset(), 0) for v in constvars}

    def trace(self, v: Var) -> frozenset[Var]:
        """The roots of a variable: itself, where it is made by too many equations, or from too many roots."""
        parts = [self.found.get(x, (frozenset((x,)), 0)) for x in self._makers[v].invars if type(x) is Var]
        roots = frozenset[Var]().union(*[roots for roots, _ in parts])
        count = 1 + sum([count for _, count in parts])
        self.found[v] = (roots, count) if len(roots) <= MOST_ROOTS and count <= MOST_EQUATIONS else (frozenset((v,)), 0)
        return self.found[v][0]


def _larger_together(
    makers: dict[Var, JaxprEqn], wanted: set[Var], kept: set[Var], constvars: Iterable[Var]
) -> set[Var]:
    """Roots that are smaller than all that is made of them and of what is kept."""
    roots = _Roots(makers, constvars)
    made: dict[Var, int] = {}
    for v in makers:
        missing = roots.trace(v) - kept
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
