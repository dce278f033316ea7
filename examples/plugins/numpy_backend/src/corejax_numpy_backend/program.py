"""A jaxpr as a flat list of steps, each of which applies an impl rule to values in numbered slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    ShapedArray,
    Var,
    attribute_to_rule,
    decomposed,
    host_value,
    impl_rules,
    mismatch,
)


class Step(NamedTuple):
    """One equation.

    Attributes:
        rule: the impl rule, a function of NumPy arrays.
        eqn: the equation.
        operands, results: slots of the operands and results.
        dead: slots of values that no later step reads.
    """

    rule: Callable[..., Any]
    eqn: JaxprEqn
    operands: list[int]
    results: list[int]
    dead: list[int]

    def __str__(self) -> str:
        left = ", ".join(f"%{i}:{v.aval.str_short()}" for i, v in zip(self.results, self.eqn.outvars, strict=True))
        return " ".join([left, "=", self.eqn.primitive.name, *(f"%{i}" for i in self.operands)])


class Program(NamedTuple):
    """A program whose values are in numbered slots, the arguments in the first ones.

    Attributes:
        steps: the steps, in order.
        places: initial contents of the slots: constants, and None for computed values.
        results: slots of the results.
        in_avals, out_avals: types of arguments and results.
    """

    steps: list[Step]
    places: list[Any]
    results: list[int]
    in_avals: Sequence[ShapedArray]
    out_avals: Sequence[ShapedArray]

    def __call__(self, arguments: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run the program. An exception of a rule gets a note with the rule and the user's line."""
        places = [*arguments, *self.places[len(arguments) :]]
        for rule, eqn, operands, results, dead in self.steps:
            try:
                out = rule(*[places[i] for i in operands], **eqn.params)
                outs = out if eqn.primitive.multiple_results else [out]
                for i, value, v in zip(results, outs, eqn.outvars, strict=True):
                    places[i] = _as_promised(value, v.aval, eqn)
            except Exception as error:
                attribute_to_rule(error, eqn.primitive, eqn.source_info, "impl")
                raise
            for i in dead:
                places[i] = None
        return [places[i] for i in self.results]

    def __str__(self) -> str:
        return "\n".join([*map(str, self.steps), "return " + " ".join(f"%{i}" for i in self.results)])


def _as_promised(value: Any, aval: ShapedArray, eqn: JaxprEqn) -> np.ndarray[Any, Any]:
    """Return a rule's result as a read-only NumPy array.

    Raises:
        TypeError: the type differs from the result of abstract evaluation.
    """
    array = np.asarray(value, aval.dtype if type(value) in (bool, int, float, complex) else None)
    if array.shape != aval.shape or array.dtype != aval.dtype:
        got = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
        raise mismatch(impl_rules, eqn.primitive, f"{got} where abstract evaluation promises {aval.str_short()}")
    array.flags.writeable = False
    return array


def program_of(closed: ClosedJaxpr) -> Program:
    """Convert a jaxpr to a `Program`.

    Raises:
        MissingRuleError: a primitive has no impl rule.
    """
    building = _Building()
    arguments = [building.place() for _ in closed.in_avals]
    results = building.inline(closed, arguments)
    read: set[int] = {*results, *(i for i, value in enumerate(building.places) if value is not None)}
    for step in reversed(building.steps):
        step.dead.extend({*step.operands, *step.results} - read)
        read.update(step.operands)
    return Program(building.steps, building.places, results, closed.in_avals, closed.out_avals)


class _Building:
    """A program under construction."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.places: list[Any] = []

    def place(self, value: Any = None) -> int:
        """Add a slot, for a constant or for a computed value."""
        self.places.append(value)
        return len(self.places) - 1

    def inline(self, closed: ClosedJaxpr, arguments: Sequence[int]) -> list[int]:
        """Append the steps of a program, and return the slots of its results."""
        jaxpr = closed.jaxpr
        env: dict[Any, int] = dict(zip(jaxpr.invars, arguments, strict=True))
        env.update((v, self.place(_constant(c, v.aval))) for v, c in zip(jaxpr.constvars, closed.consts, strict=True))

        def place_of(atom: Any) -> int:
            return env[atom] if isinstance(atom, Var) else self.place(_constant(atom.val, atom.aval))

        for eqn in jaxpr.eqns:
            operands = [place_of(atom) for atom in eqn.invars]
            env.update(zip(eqn.outvars, self._apply(eqn, operands), strict=True))
        return [place_of(atom) for atom in jaxpr.outvars]

    def _apply(self, eqn: JaxprEqn, operands: list[int]) -> list[int]:
        primitive = eqn.primitive
        rule = impl_rules.lookup(primitive)
        if primitive.decomposition is not None and not _is_of_numpy(eqn):
            return self.inline(decomposed(primitive, [v.aval for v in eqn.invars], eqn.params), operands)
        results = [self.place() for _ in eqn.outvars]
        self.steps.append(Step(rule, eqn, operands, results, []))
        return results


def _is_of_numpy(eqn: JaxprEqn) -> bool:
    """Return whether the primitive has an impl rule on NumPy arrays.

    Some impl rules compile instead, such as the rule of a jitted call.
    """
    rule = impl_rules.rule_of(eqn.primitive)
    return rule is not None and rule.derived is None and not rule.flags.get("device", False)


def _constant(value: Any, aval: ShapedArray) -> np.ndarray[Any, Any]:
    array = np.array(host_value(value), aval.dtype)
    array.flags.writeable = False
    return array
