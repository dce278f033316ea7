"""Large operations, which are compiled if their impl rule asks for it, because XLA is faster than NumPy.

    impl_rules.register(tanh_p, np.tanh, large=("float32",))

A large operation runs by its derived rule, a compiled program of one equation. Compiling takes as long as NumPy takes
for millions of elements, so that it pays only for large operations. The choice depends on types alone, so that a
repeated call returns the same bits.

Large programs of several elementwise operations (`remembered` records them) are fused: the default backend compiles
them as one program. NumPy would read and write memory for each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

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

_NEVER = 1 << 62
SIZE = 1 << 18  # elements of the result of the smallest large operation


class Flags(NamedTuple):
    """The flags of an impl rule, as the engine needs them.

    Attributes:
        prepare: the flag `prepared`, or None.
        should_compile: the flag `large` as a predicate of types of operands and results, and params.
    """

    prepare: Callable[..., Any] | None
    should_compile: Callable[[Sequence[ShapedArray], Sequence[ShapedArray], Mapping[str, Any]], bool]


_flags = Cache()  # primitive -> flags of its rule in force
_derived = Cache()  # primitive -> its derived rule, and the rule's function ready to run
_seen = Cache()  # keys of the operations that `comes_again` was called for


def run_program(program: ClosedJaxpr, arrays: Sequence[Array], name: str) -> list[Array] | None:
    """Run a program of several operations by the default backend; None if the backend does not compile it now."""
    try:
        return backends.find().backend.run_program(program, arrays, name)
    except BackendError:  # no backend is installed
        return None


def is_worth_fusing(program: ClosedJaxpr) -> bool:
    """Return whether fusing a program pays.

    A program of elementwise operations pays if it has two or more large operations, or one that is compiled anyway. If
    a program also has reductions or operations that copy, only elementwise operations on floating-point numbers count,
    because NumPy counts, moves and reduces as fast as XLA. Other operations, such as products of matrices, are fused
    only with operations that move elements.
    """
    eqns = program.jaxpr.eqns
    tags = [eqn.primitive.tags for eqn in eqns]
    if any(eqn.primitive.multiple_results for eqn in eqns):
        return False
    if any(own.isdisjoint(_FUSIBLE) and not own >= _MOVING for own in tags):
        are_compiled = [*map(is_compiled_equation, eqns)]
        return any(are_compiled) and all(one or own >= _MOVING for one, own in zip(are_compiled, tags, strict=True))
    large = [eqn for eqn in eqns if eqn.outvars[0].aval.size >= SIZE]
    if all("reduction" not in own and (own & _FUSIBLE) for own in tags):
        return len(large) > 1 or any(map(is_compiled_equation, eqns))
    return any(_makes_floats(eqn) for eqn in large) or any(map(is_compiled_equation, eqns))


def is_exact(program: ClosedJaxpr) -> bool:
    """Return whether no operation of a program rounds, so that NumPy returns the same bits."""
    return not any(may_round_differently(eqn.primitive, [v.aval for v in eqn.invars]) for eqn in program.jaxpr.eqns)


def run_compiled(primitive: Primitive, arrays: Sequence[Array], params: Mapping[str, Any]) -> Any:
    """Run the compiled program of one equation; None if no backend compiles it, or it cannot run in this process."""
    try:
        rule = _derived_rule(primitive)
        return None if rule is None else rule(*arrays, **params)
    except (MissingRuleError, BackendError):
        return None


_FUSIBLE = frozenset({"elementwise", "cheap", "reduction"})
_MOVING = frozenset({"structural", "linear"})


def _makes_floats(eqn: JaxprEqn) -> bool:
    """Return whether an elementwise equation maps floats to floats; XLA converts integers slowly."""
    if "elementwise" not in eqn.primitive.tags:
        return False
    floats = any(v.aval.size >= SIZE and dtypes.is_inexact(v.aval.dtype) for v in eqn.invars)
    return floats and dtypes.is_inexact(eqn.outvars[0].aval.dtype)


def flags_of(primitive: Primitive) -> Flags:
    """Return the flags of a primitive's impl rule in force."""
    found: Flags | None = _flags.get(primitive)
    if found is None:
        rule = impl_rules.rule_of(primitive)
        flags = {} if rule is None else rule.flags
        found = _flags.store(primitive, Flags(flags.get("prepared"), _should_compile(flags.get("large") or ())))
    return found


def _should_compile(large: Any) -> Callable[[Sequence[ShapedArray], Sequence[ShapedArray], Mapping[str, Any]], bool]:
    """Return the predicate of a flag `large`.

    The flag is a function of types and params, which is called if an operand or a result is large; or a list of
    dtypes; or a mapping from dtypes to the least sizes of results. The dtype that counts is that of the last operand.
    """
    if callable(large):
        return lambda avals, outs, params: max([a.size for a in (*avals, *outs)]) >= SIZE and large(avals, **params)
    least = large if isinstance(large, Mapping) else dict.fromkeys(large, SIZE)
    sizes = {dtypes.dtype(d): size for d, size in least.items()}
    return lambda avals, outs, params: bool(avals) and outs[0].size >= sizes.get(avals[-1].dtype, _NEVER)


def compiled_rule(
    primitive: Primitive, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], params: Mapping[str, Any]
) -> RuleFn | None:
    """Return the rule that compiles an operation on these types; None if it should not be compiled."""
    if not is_compiled(primitive, avals, avals_out, params):
        return None
    if not may_round_differently(primitive, avals) and not comes_again(primitive, avals, params):
        return None
    return _derived_rule(primitive)


def is_compiled(
    primitive: Primitive, avals: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], params: Mapping[str, Any]
) -> bool:
    """Return whether an operation is large, and its rule wants it compiled."""
    try:
        return bool(avals_out) and flags_of(primitive).should_compile(avals, avals_out, params)
    except Exception as error:
        note_origin(error, primitive, f"`large` of the impl rule of primitive {primitive.name!r}")
        raise


def is_compiled_equation(eqn: JaxprEqn) -> bool:
    """Return `is_compiled` for the operation of an equation."""
    return is_compiled(eqn.primitive, [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars], eqn.params)


def run_equation(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """Evaluate an equation on NumPy arrays; one that is to be compiled goes through the engine."""
    if eqn.primitive.multiple_results or not is_compiled_equation(eqn):
        return evaluation.evaluate_equation(eqn, operands)
    arrays = [evaluation.boxed(x, v.aval) for x, v in zip(operands, eqn.invars, strict=True)]
    return [o._fetch() for o in evaluation.bottom.process_primitive(eqn.primitive, arrays, eqn.params)]


def may_round_differently(primitive: Primitive, avals: Sequence[ShapedArray]) -> bool:
    """Return whether a compiled program may round differently from the rule in force."""
    return primitive.tags.isdisjoint(("exact", "structural")) or any(dtypes.is_complex(aval.dtype) for aval in avals)


def comes_again(primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> bool:
    """Return whether this was called before for an operation on these types: a single run is not worth compiling."""
    try:
        key = (primitive, *avals, *params.items())
        if key in _seen:
            return True
    except TypeError:  # a param has no hash
        return True
    _seen.store(key, True)
    return False


def _derived_rule(primitive: Primitive) -> RuleFn | None:
    """Return the rule that compiles a primitive by itself; None if no such rule can be derived."""
    entry = _derived.get(primitive)
    if entry is None:
        try:
            entry = _derived.store(primitive, observe.unwatched(impl_rules.derived_rule, primitive))
        except MissingRuleError:  # no backend compiles the primitive
            return None
    rule, fn = entry
    return reporting("impl", primitive, fn, rule) if observe.watched else fn
