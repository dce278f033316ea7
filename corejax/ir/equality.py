"""When two programs are the same: alpha-equivalence; parameters, literals and constants compared exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
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
            self._known[pair] = same_consts and self._same_program(opened(a), opened(b))
        return self._known[pair]

    def _same_program(self, a: Jaxpr, b: Jaxpr) -> bool:
        if len(a.eqns) != len(b.eqns):
            return False
        in_a: dict[Var, int] = {}
        in_b: dict[Var, int] = {}
        numbers = itertools.count()

        def bind(xs: Sequence[Var], ys: Sequence[Var]) -> bool:
            """Give variables in the same place the same number, if their types are the same."""
            if len(xs) != len(ys):
                return False
            for x, y in zip(xs, ys, strict=True):
                if x.aval is not y.aval:
                    return False
                in_a[x] = in_b[y] = next(numbers)
            return True

        def same(xs: Sequence[Atom], ys: Sequence[Atom]) -> bool:
            return [_key(x, in_a) for x in xs] == [_key(y, in_b) for y in ys]

        if not (bind(a.constvars, b.constvars) and bind(a.invars, b.invars)):
            return False
        for x, y in zip(a.eqns, b.eqns, strict=True):
            if x.primitive is not y.primitive or not same(x.invars, y.invars):
                return False
            if (x.params or y.params) and not self._same_params(x.params, y.params):
                return False
            if not bind(x.outvars, y.outvars):
                return False
            if self.scopes and scope_of(x.source_info) != scope_of(y.source_info):
                return False
        return same(a.outvars, b.outvars)

    def _same_params(self, xs: Mapping[str, Any], ys: Mapping[str, Any]) -> bool:
        return xs.keys() == ys.keys() and all(self._same_value(value, ys[name]) for name, value in xs.items())

    def _same_value(self, x: Any, y: Any) -> bool:
        """Return whether two parameters are the same: equal, of one type, floats bit by bit."""
        if x is y:
            return True
        if isinstance(x, Jaxpr | ClosedJaxpr) and isinstance(y, Jaxpr | ClosedJaxpr):
            return self.same(x, y)
        if isinstance(x, tuple | list) and type(x) is type(y):
            return _same_list(x, y, self._same_value)
        if isinstance(x, type | np.dtype) and isinstance(y, type | np.dtype):
            return bool(x == y)  # numpy.float32 and its dtype are one
        if type(x) is not type(y):
            return False
        if isinstance(x, float | complex | np.generic):
            return _same_bits(x, y)
        if not self.derivatives and getattr(type(x), "only_for_derivatives", False):
            return True
        if hasattr(type(x), "same_as"):
            return bool(x.same_as(y, self._same_value))
        return bool(x == y)


def _key(atom: Atom, numbers: Mapping[Var, int]) -> Any:
    """Return what two atoms in the same place share: a number, for a free variable itself, for a literal its bits."""
    if type(atom) is Var:
        return numbers.get(atom, atom)
    return atom.aval, literal_scalar(atom).tobytes()  # type: ignore[arg-type]


def _same_list(xs: Any, ys: Any, same: Callable[[Any, Any], bool]) -> bool:
    return len(xs) == len(ys) and all(map(same, xs, ys))


def _same_bits(x: Any, y: Any) -> bool:
    a, b = np.asarray(x), np.asarray(y)
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _same_const(x: Any, y: Any) -> bool:
    if x is y:
        return True
    if isinstance(x, Tracer) or isinstance(y, Tracer) or get_aval(x) is not get_aval(y):
        return False
    return _same_bits(host_value(x), host_value(y))
