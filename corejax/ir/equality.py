"""When two programs are the same: alpha-equivalence; parameters, literals and constants compared exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corejax.core.array import host_value
from corejax.core.avals import get_aval
from corejax.core.trace import Tracer
from corejax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, Var, opened
from corejax.ir.values import literal_scalar
from corejax.messages.source_info import scope_of


def same_jaxpr(
    a: Jaxpr | ClosedJaxpr, b: Jaxpr | ClosedJaxpr, *, scopes: bool = False, derivatives: bool = True
) -> bool:
    """Whether two programs differ in nothing but the identity of their variables.

    Same equations in the same order on the same operands, same types (weak types too), same parameters;
    literals and constants the same bit by bit (so a NaN is itself, and -0.0 is not 0.0). Programs in
    parameters are compared in the same way. Source and debug info do not count, and neither does whether a
    program without constants is closed.

    A parameter may be an object that is made anew at each call, the rule of a function and its arguments, say. Its
    class then has a method `same_as(other, same)`: whether it does what another one of its class does, where `same`
    compares parts as parameters are. A class with `only_for_derivatives = True` is of parameters that say nothing of
    what is computed.

    Args:
        a, b: the programs.
        scopes: whether what `named_scope` said where equations were recorded counts, too.
        derivatives: whether parameters count that are only for derivatives. Programs that differ in nothing else are
            compiled to the same.
    """
    return _Comparison(scopes, derivatives).same(a, b)


class _Comparison:
    """Remembers pairs of programs that are the same: one may be in parameters of many equations, at each level."""

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
            self._known[pair] = same_consts and _same_program(opened(a), opened(b), self)
        return self._known[pair]


def _same_list(xs: Any, ys: Any, same: Any) -> bool:
    return len(xs) == len(ys) and all(same(x, y) for x, y in zip(xs, ys, strict=True))


class _Partners:
    """Variables of two programs that stand in the same place, as they are bound; a free one is its own."""

    def __init__(self) -> None:
        self.in_a: dict[Atom, Atom] = {}
        self.in_b: dict[Atom, Atom] = {}

    def bind(self, xs: Sequence[Var], ys: Sequence[Var]) -> bool:
        if len(xs) != len(ys):
            return False
        for x, y in zip(xs, ys, strict=True):
            if x.aval is not y.aval:
                return False
            self.in_a[x] = y
            self.in_b[y] = x
        return True

    def same(self, xs: Sequence[Atom], ys: Sequence[Atom]) -> bool:
        if len(xs) != len(ys):
            return False
        in_a, in_b = self.in_a, self.in_b
        for x, y in zip(xs, ys, strict=True):
            if (in_b.get(y, y) is not x or in_a.get(x, x) is not y) and not _same_literal(x, y):
                return False
        return True


def _same_literal(x: Atom, y: Atom) -> bool:
    if type(x) is Var or type(y) is Var:
        return False
    return x.aval is y.aval and literal_scalar(x).tobytes() == literal_scalar(y).tobytes()  # type: ignore[arg-type]


def _same_bits(x: Any, y: Any) -> bool:
    a, b = np.asarray(x), np.asarray(y)
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _same_program(a: Jaxpr, b: Jaxpr, of: _Comparison) -> bool:
    if len(a.eqns) != len(b.eqns):
        return False
    partners = _Partners()
    if not (partners.bind(a.constvars, b.constvars) and partners.bind(a.invars, b.invars)):
        return False
    for x, y in zip(a.eqns, b.eqns, strict=True):
        if x.primitive is not y.primitive or not partners.same(x.invars, y.invars):
            return False
        if (x.params or y.params) and not _same_params(x.params, y.params, of):
            return False
        if not partners.bind(x.outvars, y.outvars):
            return False
        if of.scopes and x.source_info is not y.source_info and scope_of(x.source_info) != scope_of(y.source_info):
            return False
    return partners.same(a.outvars, b.outvars)


def _same_params(xs: Mapping[str, Any], ys: Mapping[str, Any], of: _Comparison) -> bool:
    return xs.keys() == ys.keys() and all(_same_value(value, ys[name], of) for name, value in xs.items())


def _same_const(x: Any, y: Any) -> bool:
    if x is y:
        return True
    if isinstance(x, Tracer) or isinstance(y, Tracer) or get_aval(x) is not get_aval(y):
        return False
    return _same_bits(host_value(x), host_value(y))


def _same_value(x: Any, y: Any, of: _Comparison) -> bool:
    """Whether two parameters are the same: equal, of one type, floats bit by bit."""
    if x is y:
        return True
    if isinstance(x, Jaxpr | ClosedJaxpr) and isinstance(y, Jaxpr | ClosedJaxpr):
        return of.same(x, y)
    if isinstance(x, tuple | list) and type(x) is type(y):
        return _same_list(x, y, lambda v, w: _same_value(v, w, of))
    if isinstance(x, type | np.dtype) and isinstance(y, type | np.dtype):
        return bool(x == y)  # numpy.float32 and its dtype are one
    if type(x) is not type(y):
        return False
    if isinstance(x, float | complex | np.generic):
        return _same_bits(x, y)
    if not of.derivatives and getattr(type(x), "only_for_derivatives", False):
        return True
    if hasattr(type(x), "same_as"):
        return bool(x.same_as(y, lambda v, w: _same_value(v, w, of)))
    return bool(x == y)
