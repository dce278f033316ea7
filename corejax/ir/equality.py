"""Comparison of programs up to the names of variables; parameters, literals and constants must be identical."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import host_value
from corejax.core.avals import get_aval
from corejax.core.trace import Tracer
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var, opened
from corejax.ir.values import literal_scalar
from corejax.messages.source_info import scope_of


def same_jaxpr(
    a: Jaxpr | ClosedJaxpr, b: Jaxpr | ClosedJaxpr, *, scopes: bool = False, derivatives: bool = True
) -> bool:
    """Whether two programs are the same up to renaming of variables (alpha-equivalent).

    They must have the same equations in the same order on the same operands, and the same types (including weak types)
    and parameters. Literals and constants must have the same bits (a NaN equals itself; -0.0 differs from 0.0).
    Programs in parameters are compared in the same way. Source and debug info are ignored, and so is whether a program
    without constants is closed.

    If a parameter is an object that is created at each call, such as the rule of a function with its arguments, its
    class defines `same_as(other, same)`: whether two objects of the class are equivalent; `same` compares their parts.
    A class with `only_for_derivatives = True` has parameters that do not affect the values that are computed.

    Args:
        a: a program.
        b: the program to compare with it.
        scopes: whether the named scopes of equations have to agree as well.
        derivatives: whether to compare parameters that are only for derivatives. Programs that differ only in these
            compile to the same executable.
    """
    return _Comparison(scopes, derivatives).same(a, b)


class _Comparison:
    """One comparison; caches compared pairs, because a program may be in parameters of many equations at each level."""

    def __init__(self, scopes: bool, derivatives: bool) -> None:
        self.scopes = scopes
        self.derivatives = derivatives
        self._known: dict[tuple[int, int], bool] = {}

    def same(self, a: Jaxpr | ClosedJaxpr, b: Jaxpr | ClosedJaxpr) -> bool:
        if a is b:
            return True
        pair = id(a), id(b)
        if pair not in self._known:
            same_consts = _same_list(getattr(a, "consts", ()), getattr(b, "consts", ()), _same_const)
            self._known[pair] = same_consts and self._same_program(opened(a), opened(b))
        return self._known[pair]

    def _same_program(self, a: Jaxpr, b: Jaxpr) -> bool:
        if len(a.eqns) != len(b.eqns):
            return False
        to_b: dict[Var, Var] = {}
        if not (_pair(a.constvars, b.constvars, to_b) and _pair(a.invars, b.invars, to_b)):
            return False
        for x, y in zip(a.eqns, b.eqns, strict=True):
            if (
                x.primitive is not y.primitive
                or not _same_atoms(x.invars, y.invars, to_b)
                or ((x.params or y.params) and not self._same_params(x.params, y.params))
                or (self.scopes and scope_of(x.source_info) != scope_of(y.source_info))
                or not _pair(x.outvars, y.outvars, to_b)
            ):
                return False
        return len(set(to_b.values())) == len(to_b) and _same_atoms(a.outvars, b.outvars, to_b)

    def _same_params(self, xs: Mapping[str, object], ys: Mapping[str, object]) -> bool:
        return xs.keys() == ys.keys() and all(map(self._same_value, xs.values(), map(ys.__getitem__, xs)))

    def _same_value(self, x: Any, y: Any) -> bool:
        """Whether two parameters are equal and of one type; floats are compared bit by bit."""
        if x is y:
            return True
        if isinstance(x, (Jaxpr, ClosedJaxpr)) and isinstance(y, (Jaxpr, ClosedJaxpr)):
            return self.same(x, y)
        if isinstance(x, (tuple, list)) and type(x) is type(y):
            return _same_list(x, y, self._same_value)
        if isinstance(x, (type, np.dtype)) and isinstance(y, (type, np.dtype)):
            return bool(x == y)  # numpy.float32 and its dtype are equal
        if type(x) is not type(y):
            return False
        if isinstance(x, (float, complex, np.generic)):
            return _same_bits(x, y)
        if not self.derivatives and getattr(type(x), "only_for_derivatives", False):
            return True
        if hasattr(type(x), "same_as"):
            return bool(x.same_as(y, self._same_value))
        return bool(x == y)


def _pair(xs: Sequence[Var], ys: Sequence[Var], to_b: dict[Var, Var]) -> bool:
    """Pair the variables that two programs bind in one place; return whether their types are the same."""
    for x, y in zip(xs, ys, strict=False):
        if x.aval is not y.aval:
            return False
        to_b[x] = y
    return len(xs) == len(ys)


def _same_atoms(xs: Sequence[Any], ys: Sequence[Any], to_b: dict[Var, Var]) -> bool:
    """Whether operands are paired variables, or literals of one type with the same bits."""
    for x, y in zip(xs, ys, strict=False):
        if type(x) is Var:
            if to_b.get(x, x) is not y:
                return False
        elif x.aval is not y.aval or type(y) is Var or literal_scalar(x).tobytes() != literal_scalar(y).tobytes():
            return False
    return len(xs) == len(ys)


def _same_list(xs: Any, ys: Any, same: Callable[[Any, Any], bool]) -> bool:
    return len(xs) == len(ys) and all(map(same, xs, ys))


def _same_bits(x: object, y: object) -> bool:
    a, b = np.asarray(x), np.asarray(y)
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _same_const(x: object, y: object) -> bool:
    if x is y:
        return True
    if isinstance(x, Tracer) or isinstance(y, Tracer) or get_aval(x) is not get_aval(y):
        return False
    return _same_bits(host_value(x), host_value(y))
