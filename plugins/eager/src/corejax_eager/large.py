"""Large operations: those that an impl rule leaves to the compiler, if that is quicker than NumPy.

    impl_rules.register(tanh_p, np.tanh, large=("float32",))

What runs then is the rule that would be derived, a compiled program of one equation. Compiling takes as long as NumPy
takes for millions of elements, so that it pays for large operations only. Which ones depends on types alone: the same
call gives the same bits again.

Programs of several operations on each element by itself (`remembered` records them) are compiled as one if they are
large, by the default backend: NumPy reads and writes memory for each of the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import (
    Array,
    BackendError,
    ClosedJaxpr,
    JaxprEqn,
    MissingRuleError,
    Primitive,
    ShapedArray,
    backends,
    dtypes,
    impl_rules,
)
from corejax.extend.messages import note_origin, observe
from corejax.extend.speed import RuleFn, evaluation, reporting
from corejax_eager.cache import Cache

SIZE = 1 << 18  # elements of the result from which on an operation is large


class Flags(NamedTuple):
    """What the flags of an impl rule say to the engine.

    Attributes:
        prepare: the flag `prepared`, or None. The others are what the flag `large` says.
        leaves: tells whether the rule leaves a large operation on given types to the compiler.
        least: elements of the result from which on an operation may be large.
        by_operands: whether an operation with a small result is large if an operand is.
    """

    prepare: Callable[..., Any] | None
    leaves: Callable[[Sequence[ShapedArray], Mapping[str, Any]], bool]
    least: int = SIZE
    by_operands: bool = False


_flags = Cache()  # by primitive, those of its rule in force
_derived = Cache()  # by primitive, the rule that would be derived, and that ready to run
_met = Cache()  # as keys, the operations that were asked about by `comes_again`


def run_program(program: ClosedJaxpr, arrays: Sequence[Array], name: str) -> list[Array] | None:
    """Have the default backend run a program of several operations; None if it leaves that to NumPy."""
    try:
        return backends.find().backend.run_program(program, arrays, name)
    except BackendError:  # no backend is installed
        return None


def is_worth_fusing(program: ClosedJaxpr) -> bool:
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
        left = [*map(is_compiled_equation, eqns)]
        return any(left) and all(one or _moving <= found for one, found in zip(left, tags, strict=True))
    large = [eqn for eqn in eqns if eqn.outvars[0].aval.size >= SIZE]
    if all("reduction" not in found and (found & _tags) for found in tags):
        return len(large) > 1 or any(map(is_compiled_equation, eqns))
    return any(_makes_floats(eqn) for eqn in large) or any(map(is_compiled_equation, eqns))


def is_exact(program: ClosedJaxpr) -> bool:
    """Whether nothing is rounded in a program: NumPy gives the same bits."""
    return not any(may_round_differently(eqn.primitive, [v.aval for v in eqn.invars]) for eqn in program.jaxpr.eqns)


def run_compiled(primitive: Primitive, arrays: Sequence[Array], params: Mapping[str, Any]) -> Any:
    """Run the compiled program of one equation; None if nothing compiles it, or runs it here."""
    try:
        rule = _derived_rule(primitive)
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


def flags_of(primitive: Primitive) -> Flags:
    """Return the flags of a primitive's impl rule in force."""
    found: Flags | None = _flags.get(primitive)
    if found is None:
        rule = impl_rules.rule_of(primitive)
        found = _flags.store(primitive, _read_flags({} if rule is None else rule.flags))
    return found


def _read_flags(flags: Mapping[str, Any]) -> Flags:
    large, prepare = flags.get("large"), flags.get("prepared")
    if callable(large):
        return Flags(prepare, lambda avals, params: large(avals, **params), by_operands=True)
    if not large:
        return Flags(prepare, lambda avals, params: False)
    sizes = large if isinstance(large, Mapping) else dict.fromkeys(large, 0)
    least = min(large.values()) if isinstance(large, Mapping) else SIZE
    return Flags(prepare, _by_dtype({dtypes.dtype(d): size for d, size in sizes.items()}), min(least, SIZE))


def _by_dtype(least: Mapping[np.dtype[Any], int]) -> Callable[[Sequence[ShapedArray], Mapping[str, Any]], bool]:
    never = 1 << 62
    return lambda avals, params: max([a.size for a in avals]) >= least.get(avals[-1].dtype, never)


def may_be_compiled(primitive: Primitive, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray]) -> bool:
    """Tell whether the result, or for some primitives an operand, is large."""
    flags = flags_of(primitive)
    return avals_out[0].size >= flags.least or (
        flags.by_operands and max([aval.size for aval in avals], default=0) >= SIZE
    )


def compiled_rule(
    primitive: Primitive, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], params: Mapping[str, Any]
) -> RuleFn | None:
    """Return the rule that compiles an operation on these types, if it is left to the compiler and worth compiling."""
    if not is_compiled(primitive, avals, avals_out, params):
        return None
    if not may_round_differently(primitive, avals) and not comes_again(primitive, avals, params):
        return None
    return _derived_rule(primitive)


def is_compiled(
    primitive: Primitive, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], params: Mapping[str, Any]
) -> bool:
    """Return whether an operation is large, and its rule leaves it to the derived rule."""
    if not avals_out or not may_be_compiled(primitive, avals, avals_out):
        return False
    try:
        return flags_of(primitive).leaves(avals, params)
    except Exception as error:
        note_origin(error, primitive, f"`large` of the impl rule of primitive {primitive.name!r}")
        raise


def is_compiled_equation(eqn: JaxprEqn) -> bool:
    """Return what `is_compiled` says of the operation of an equation."""
    return is_compiled(eqn.primitive, [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars], eqn.params)


def run_equation(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Evaluate an equation on NumPy arrays; a large one as an operation, which may be compiled."""
    is_large = any(v.aval.size >= SIZE for v in (*eqn.invars, *eqn.outvars)) or is_compiled_equation(eqn)
    if eqn.primitive.multiple_results or not is_large:
        return evaluation.evaluate_equation(eqn, operands)
    arrays = [Array(x, v.aval) for x, v in zip(operands, eqn.invars, strict=True)]
    return [o._fetch() for o in evaluation.bottom.process_primitive(eqn.primitive, arrays, eqn.params)]


def may_round_differently(primitive: Primitive, avals: Sequence[ShapedArray]) -> bool:
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
    _met.store(key, True)
    return False


def _derived_rule(primitive: Primitive) -> RuleFn | None:
    """The rule for the large operations of a primitive that are left; None where the rule in force has to do them."""
    found = _derived.get(primitive)
    if found is None:
        try:
            found = _derived.store(primitive, observe.unwatched(impl_rules.derived_rule, primitive))
        except MissingRuleError:  # there is nothing that compiles
            return None
    rule, fn = found
    return reporting("impl", primitive, fn, rule) if observe.watched else fn
