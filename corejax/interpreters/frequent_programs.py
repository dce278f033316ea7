"""Eager programs that come often and take NumPy long: compiled in the background, if a backend does that.

    Frequent.count : seconds of one more run -> whether to go on counting

Compiling pays once the runs have taken about as long as it takes: what is spent is at most twice the least. Results
are equal up to rounding; the setting `compile_frequent` says whether.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from corejax.array import Array
from corejax.config import config
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from corejax.rules import load_rules

RUNS = 12  # that are looked at before cheap programs are left alone, on NumPy and compiled
CHEAP = 12e-6  # seconds of a run on NumPy: above what it takes to call a compiled program and read its results
SPENT = 0.05  # seconds of runs on NumPy, after which a program is compiled,
SPENT_EACH = 0.001  # and as many more for each of its equations: about what compiling takes

_Compiled = Callable[[list[Array]], "list[Array] | None"]
_Begin = Callable[[ClosedJaxpr, str, float, Callable[[_Compiled], None]], bool]
F = TypeVar("F", bound=_Begin)
_begins: list[_Begin] = []


def compiles_frequent_programs(begin: F) -> F:
    """Have programs compiled that eager calls of `remembered` functions run often.

    By a function `(program, name, spent, ready) -> bool`. `spent` is how many seconds NumPy has run the program. It
    returns at once: False where it is to be asked again later; else it calls `ready`, from any thread, or never, with
    what runs the program: a function of a list of its arguments, which gives a list of its results, or None where
    NumPy has to do it, this time. The last one to register is asked.
    """
    _begins[:] = [begin]
    return begin


class Frequent:
    """What the runs of a program take, and the program compiled.

    Attributes:
        compiled: runs the program; None before it is compiled.
    """

    __slots__ = ("_begun", "_least", "_least_compiled", "_limit", "_runs", "_runs_compiled", "_spent", "compiled")

    def __init__(self) -> None:
        self.compiled: _Compiled | None = None
        self._begun = False
        self._runs = self._runs_compiled = 0
        self._spent = self._limit = 0.0
        self._least = self._least_compiled = float("inf")

    def count(self, seconds: float, was_compiled: bool, program: ClosedJaxpr, name: str) -> bool:
        """Count a run; False where the program is to stay on NumPy, and need not be counted any more."""
        if was_compiled:
            return self._count_compiled(seconds)
        self._runs += 1
        self._spent += seconds
        self._least = min(self._least, seconds)
        if self._runs < RUNS:
            return True
        if self._least < CHEAP or not config.compile_frequent:
            return False
        if not self._limit:
            self._limit = SPENT + SPENT_EACH * _length(program.jaxpr)
        if self._spent > self._limit and not self._begun:
            load_rules("impl")  # a backend registers with them
            if not _begins:
                return False
            self._begun = _begins[0](program, name, self._spent, self._ready)
        return True

    def _ready(self, compiled: _Compiled) -> None:
        self.compiled = compiled

    def _count_compiled(self, seconds: float) -> bool:
        if self._runs_compiled < RUNS:
            self._runs_compiled += 1
            self._least_compiled = min(self._least_compiled, seconds)
        return self._runs_compiled < RUNS or self._least_compiled < 0.7 * self._least


def _length(jaxpr: Jaxpr) -> int:
    """Number of equations, those of programs inside of it included, as often as they are called."""
    known: dict[int, int] = {}

    def of(program: Jaxpr) -> int:
        found = known.get(id(program))
        if found is None:
            inner = (inner for eqn in program.eqns for inner in subjaxprs(eqn.params))
            found = len(program.eqns) + sum(of(x.jaxpr if isinstance(x, ClosedJaxpr) else x) for x in inner)
            known[id(program)] = found
        return found

    return of(jaxpr)
