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
from corejax.attribution import note_origin
from corejax.avals import ShapedArray
from corejax.caches import clears_cache
from corejax.errors import BackendError, MissingRuleError
from corejax.ir.jaxpr import ClosedJaxpr, JaxprEqn
from corejax.primitive import Primitive
from corejax.rules import Rule, RuleFn, impl_rules, load_rules, reporting
from corejax.seams import Slot

SIZE = 1 << 18  # elements of the result from which on an operation is large

# Primitives whose rule in force leaves large operations to the derived one, and whether it leaves one of some types.
left_by: dict[Primitive, Callable[[Sequence[ShapedArray], Mapping[str, Any]], bool]] = {}
# Those whose operands may be what is large: the rule has been registered with a function.
by_operands: set[Primitive] = set()
# Those of which some are left from fewer elements on: from how many.
left_from: dict[Primitive, int] = {}

_derived: dict[Primitive, tuple[Rule, RuleFn]] = {}


_RunsPrograms = Callable[[ClosedJaxpr, Sequence[Array], str], "list[Array] | None"]
F = TypeVar("F", bound=_RunsPrograms)
_runs_programs: Slot[_RunsPrograms] = Slot("what runs large programs")


def runs_large_programs(run: F) -> F:
    """Have large programs run by a function: `(program, arrays, name) -> arrays`, or None where it does not.

    Programs of several elementwise primitives, which eager calls of `remembered` functions are on large arrays. The
    name is the function's.

    Raises:
        DuplicateRegistrationError: another function is registered.
    """
    _runs_programs.provide(run)
    return run


def run_whole(program: ClosedJaxpr, arrays: Sequence[Array], name: str) -> list[Array] | None:
    """Results of a program, compiled; None where nothing compiles."""
    load_rules("impl")  # what compiles comes with the lazy ones
    return _runs_programs.value(program, arrays, name) if _runs_programs.value is not None else None


def pays_whole(program: ClosedJaxpr) -> bool:
    """Whether it has two or more large operations, or one that is compiled by itself, whose operands would be copied.

    All of them are on each element by itself or on where it stands, or reductions. With reductions, and with what NumPy
    has to copy for, only those on floating-point numbers count: NumPy counts, moves and reduces as quickly. Others, a
    product of matrices say, are compiled by themselves and with what moves elements.
    """
    eqns = program.jaxpr.eqns
    tags = [eqn.primitive.tags for eqn in eqns]
    if any(eqn.primitive.multiple_results for eqn in eqns):
        return False
    if any(found.isdisjoint(_tags) and not _moving <= found for found in tags):
        left = [*map(is_left_equation, eqns)]
        return any(left) and all(one or _moving <= found for one, found in zip(left, tags, strict=True))
    large = [eqn for eqn in eqns if eqn.outvars[0].aval.size >= SIZE]
    if all("reduction" not in found and (found & _tags) for found in tags):
        return len(large) > 1 or any(map(is_left_equation, eqns))
    return any(_makes_floats(eqn) for eqn in large) or any(map(is_left_equation, eqns))


def is_exact(program: ClosedJaxpr) -> bool:
    """Whether nothing is rounded in a program: NumPy gives the same bits."""
    return not any(gives_other_bits(eqn.primitive, [v.aval for v in eqn.invars]) for eqn in program.jaxpr.eqns)


def run_compiled(primitive: Primitive, *arrays: Array, **params: Any) -> Any:
    """What the compiled program of one equation gives; None where nothing compiles it, or runs it here.

    For impl rules that say themselves what they leave; others are registered with `large`.

    Args:
        primitive, params: the operation.
        arrays: its operands.

    Returns:
        Its results, as its impl rule for `Array`s would give them.
    """
    try:
        rule = derived_for(primitive)
        return None if rule is None else rule(*arrays, **params)
    except (MissingRuleError, BackendError):
        return None


_tags = frozenset({"elementwise", "cheap", "reduction"})
_moving = frozenset({"structural", "linear"})


def _makes_floats(eqn: JaxprEqn) -> bool:
    """Whether floating-point numbers come of such ones, and not of integers, which XLA converts slowly."""
    if "elementwise" not in eqn.primitive.tags:
        return False
    floats = any(v.aval.size >= SIZE and dtypes.is_inexact(v.aval.dtype) for v in eqn.invars)
    return floats and dtypes.is_inexact(eqn.outvars[0].aval.dtype)


def follow(primitive: Primitive) -> None:
    """See to a primitive whose impl rule has changed."""
    rule = impl_rules.rule_of(primitive)
    _derived.pop(primitive, None)
    left_by.pop(primitive, None)
    by_operands.discard(primitive)
    left_from.pop(primitive, None)
    if rule is None or not rule.flags.get("large"):
        return
    large = rule.flags["large"]
    if callable(large):
        left_by[primitive] = lambda avals, params: large(avals, **params)
        by_operands.add(primitive)
    else:
        least = large if isinstance(large, Mapping) else dict.fromkeys(large, 0)
        if isinstance(large, Mapping) and min(large.values()) < SIZE:
            left_from[primitive] = min(large.values())
        left_by[primitive] = _by_dtype({dtypes.dtype(dtype): size for dtype, size in least.items()})


def _by_dtype(least: Mapping[np.dtype[Any], int]) -> Callable[[Sequence[ShapedArray], Mapping[str, Any]], bool]:
    never = 1 << 62
    return lambda avals, params: max([a.size for a in avals]) >= least.get(avals[-1].dtype, never)


def is_left(
    primitive: Primitive, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], params: Mapping[str, Any]
) -> bool:
    """Whether an operation is large, and the rule in force leaves it to the derived one.

    Args:
        primitive, params: the operation.
        avals, avals_out: types of its operands and results.
    """
    if not avals_out:
        return False
    if avals_out[0].size < left_from.get(primitive, SIZE):  # most are small: without a call
        if primitive not in by_operands:
            return False
        for aval in avals:
            if aval.size >= SIZE:
                break
        else:
            return False
    leaves = left_by.get(primitive)
    try:
        return leaves is not None and leaves(avals, params)
    except Exception as error:
        note_origin(error, primitive, f"`large` of the impl rule of primitive {primitive.name!r}")
        raise


def is_left_equation(eqn: JaxprEqn) -> bool:
    """The same of an equation."""
    return is_left(eqn.primitive, [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars], eqn.params)


def gives_other_bits(primitive: Primitive, avals: Sequence[ShapedArray]) -> bool:
    """Whether a compiled program may round otherwise than the rule in force."""
    return primitive.tags.isdisjoint(("exact", "structural")) or any(dtypes.is_complex(aval.dtype) for aval in avals)


def comes_again(primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> bool:
    """Whether an operation on these types was asked about before: what comes once is not worth compiling."""
    try:
        key = (primitive, *avals, *params.items())
        if key in _met:
            return True
    except TypeError:  # a param that has no hash
        return True
    if len(_met) >= _MOST_MET:
        _met.clear()
    _met.add(key)
    return False


_met: set[Any] = set()
clears_cache(_met.clear)
_MOST_MET = 4096


def derived_for(primitive: Primitive) -> RuleFn | None:
    """The rule for the large operations of a primitive that are left; None where the rule in force has to do them."""
    found = _derived.get(primitive)
    if found is None:
        try:
            found = _derived[primitive] = observe.unwatched(impl_rules._derived_rule, primitive)
        except MissingRuleError:  # there is nothing that compiles
            return None
    rule, fn = found
    return reporting("impl", primitive, fn, rule) if observe.watched else fn
