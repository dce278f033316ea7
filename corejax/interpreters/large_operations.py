"""Large operations: those that an impl rule leaves to the rule that would be derived, where that is quicker.

    impl_rules.register(tanh_p, np.tanh, large=("float32",))

What is derived is a compiled program of one equation. Compiling takes as long as NumPy takes for millions of elements,
so that it pays for large operations only. Which ones depends on types alone: the same call gives the same bits again.

Programs of several operations on each element by itself (`remembered` records them) are compiled whole where they are
large, by the function that a backend has registered: NumPy reads and writes memory for each of the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax import dtypes, observe
from corejax.array import Array
from corejax.avals import ShapedArray
from corejax.errors import MissingRuleError
from corejax.ir.jaxpr import ClosedJaxpr
from corejax.primitive import Primitive
from corejax.rules import Rule, RuleFn, impl_rules, reporting

SIZE = 1 << 18  # elements of the result from which on an operation is large

# Primitives whose rule in force leaves large operations to the derived one: by the last operand's dtype, how many
# elements it has then at least.
left_by: dict[Primitive, dict[np.dtype[Any], int]] = {}

_derived: dict[Primitive, tuple[Rule, RuleFn]] = {}


_RunsPrograms = Callable[[ClosedJaxpr, Sequence[Array], str], "list[Array] | None"]
F = TypeVar("F", bound=_RunsPrograms)
_runs_programs: list[_RunsPrograms] = []


def runs_large_programs(run: F) -> F:
    """Have large programs run by a function: `(program, arrays, name) -> arrays`, or None where it does not.

    Programs of several elementwise primitives, which eager calls of `remembered` functions are on large arrays. The
    name is the function's. The last one to register is asked.
    """
    _runs_programs[:] = [run]
    return run


def run_whole(program: ClosedJaxpr, arrays: Sequence[Array], name: str) -> list[Array] | None:
    """Results of a program, compiled; None where nothing compiles."""
    return _runs_programs[0](program, arrays, name) if _runs_programs else None


def pays_whole(program: ClosedJaxpr) -> bool:
    """Whether two or more of its operations are large, or one that is compiled by itself, whose operands would be
    copied; and all are on each element by itself or on where it stands."""
    if any(_tags_of_one.isdisjoint(eqn.primitive.tags) or eqn.primitive.multiple_results for eqn in program.jaxpr.eqns):
        return False
    large = [eqn for eqn in program.jaxpr.eqns if eqn.outvars[0].aval.size >= SIZE]
    return len(large) > 1 or any(eqn.invars[-1].aval.dtype in left_by.get(eqn.primitive, ()) for eqn in large)


_tags_of_one = frozenset({"elementwise", "cheap"})


def follow(primitive: Primitive) -> None:
    """See to a primitive whose impl rule has changed."""
    rule = impl_rules.rule_of(primitive)
    _derived.pop(primitive, None)
    left_by.pop(primitive, None)
    if rule is not None and rule.flags.get("large"):
        large = rule.flags["large"]
        least = large if isinstance(large, Mapping) else dict.fromkeys(large, 0)
        left_by[primitive] = {dtypes.dtype(dtype): size for dtype, size in least.items()}


def derived_for(primitive: Primitive, operand: ShapedArray) -> RuleFn | None:
    """The rule for a large operation of a primitive in `left_by`; None where the rule in force has to do it.

    Args:
        primitive: the primitive.
        operand: the type of its last operand.
    """
    least = left_by[primitive].get(operand.dtype)
    if least is None or operand.size < least:
        return None
    found = _derived.get(primitive)
    if found is None:
        try:
            found = _derived[primitive] = observe.unwatched(impl_rules._derived_rule, primitive)
        except MissingRuleError:  # there is nothing that compiles
            return None
    rule, fn = found
    return reporting("impl", primitive, fn, rule) if observe.watched else fn
