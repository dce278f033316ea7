"""Carries of loops: the fixed point of their types, carries that the body does not change, checks of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Tracer,
    Var,
    as_array,
    close_over_consts,
    fixpoint,
    get_aval,
    leaf_names,
    partition_list,
)
from corejax.extend.programs import Literal, subjaxprs
from corejax.extend.types import conform, join_refinements
from corejax_control_flow.programs.messages import place, shown, structural_difference, typed_tree, whence_wide
from corejax_control_flow.programs.rewriting import appended
from corejax_control_flow.programs.tracing import Traced
from corejax_control_flow.programs.weak_types import common_dtype, convert, same_but_weak_type, same_class

T = TypeVar("T")


def carry_fixed_point(
    transform: str,
    fun: Callable[..., Any],
    init: list[Any],
    init_tree: Any,
    trace_body: Callable[[list[ShapedArray]], Traced],
    carry_tree: Callable[[Traced], Any],
) -> tuple[list[Any], Traced]:
    """Find a fixed point of the carry's types, and trace the body on it.

    The body is traced on the types of the initial carry. If the body returns another type for a weakly typed leaf, the
    leaf is converted to that type and the body is traced again.

    Args:
        transform: name of the public function, for messages.
        fun: the body.
        init: leaves of the initial carry, after the initial values of carries that the loop itself adds.
        init_tree: structure of the initial carry.
        trace_body: traces the body on carries of the types passed to it. Its first outputs are the next carry.
        carry_tree: returns the structure of the carry that a traced body returns.

    Returns:
        The leaves of the initial carry, and the traced body.

    Raises:
        TypeError: if the body changes the structure of the carry or the type of a leaf. The message names the leaf.
    """
    earlier: Traced | None = None
    added = len(init) - init_tree.num_leaves

    def body_on(avals: list[ShapedArray]) -> tuple[Sequence[ShapedArray], Traced]:
        nonlocal earlier
        traced = None
        if earlier is not None and _dtypes(earlier.jaxpr.in_avals[: len(avals)]) == _dtypes(avals):
            traced = with_strong_carries(earlier, avals)
        earlier = traced = traced or trace_body(avals)
        outs = traced.jaxpr.out_avals
        _check_structure(transform, fun, init_tree, avals[added:], carry_tree(traced), outs[added:])
        return outs[: len(avals)], traced

    first = [get_aval(x) for x in init]
    avals, traced = fixpoint(body_on, first, _promoted)
    _check_types(transform, fun, init_tree, avals[added:], traced.jaxpr.out_avals[added : len(avals)])
    carry = [x if a is b else _of_type(x, a, b) for x, a, b in zip(init, first, avals, strict=True)]
    return carry, _with_refinements(traced, avals)


def _of_type(x: Any, aval: ShapedArray, wanted: ShapedArray) -> Any:
    same = (aval.dtype, aval.weak_type) == (wanted.dtype, wanted.weak_type)
    return conform(x if same else convert(x, wanted.dtype), wanted)


def _with_refinements(traced: Traced, avals: Sequence[ShapedArray]) -> Traced:
    """Conform the carries that the body returns to the refinements of the carries that it takes."""
    jaxpr = traced.jaxpr
    if all(v.aval.refinement == aval.refinement for v, aval in zip(jaxpr.outvars, avals, strict=False)):
        return traced
    count = len(avals)
    closed = appended(
        ClosedJaxpr(jaxpr, traced.consts),
        lambda outs, _: [*map(conform, outs[:count], avals), *outs[count:]],
    )
    return traced._replace(jaxpr=closed.jaxpr, consts=closed.consts)


def _dtypes(avals: Sequence[ShapedArray]) -> list[Any]:
    return [(a.dtype, a.refinement) for a in avals]


def _promoted(taken: ShapedArray, returned: ShapedArray) -> ShapedArray:
    """Return the type of an initial carry: a weak type is promoted to the strong type that the body returns."""
    dtype = common_dtype((taken, returned)) if taken.weak_type and returned is not taken else None
    promoted = taken if dtype is None or dtype != returned.dtype else taken.update(dtype=dtype, weak_type=False)
    return promoted.refined(join_refinements(taken.refinement, returned.refinement))


def _check_structure(
    transform: str, fun: Any, taken_tree: Any, taken: list[ShapedArray], returned_tree: Any, outs: list[ShapedArray]
) -> None:
    if returned_tree != taken_tree:
        raise TypeError(
            f"{transform}: {place(fun)} takes and returns carries of different structure:\n"
            f"  takes   {typed_tree(taken_tree, taken)}\n"
            f"  returns {typed_tree(returned_tree, outs[: returned_tree.num_leaves])}\n"
            f"  {structural_difference('carry', taken_tree, returned_tree)}: return a carry of the structure that is "
            "taken, or start from one of the structure that is returned"
        )


def _check_types(
    transform: str, fun: Any, init_tree: Any, taken: Sequence[ShapedArray], returned: Sequence[ShapedArray]
) -> None:
    lines, whence = [], ""
    for i, (a, b) in enumerate(zip(taken, returned, strict=True)):
        if same_but_weak_type(a, b):
            continue
        name = leaf_names(init_tree, "carry")[i]
        types = f"{name} is {shown(a)} when taken and {shown(b)} when returned"
        if a.shape != b.shape:
            lines.append(f"  {types}: the shapes must be equal{_broadcast_advice(name, a, b)}")
            continue
        if not same_class(a, b):
            lines.append(f"  {types}: the types must be equal")
            continue
        cast = f"return {name}.astype('{a.dtype.name}')"
        if (
            common_dtype((a, b.update(weak_type=False))) is None
            and common_dtype((a.update(weak_type=True), b)) == b.dtype
        ):
            cast += f", or start from init{name[len('carry') :]}.astype('{b.dtype.name}')"
        lines.append(f"  {types}: {cast}")
        whence = whence or whence_wide(a, b)
    if lines:
        raise TypeError(
            f"{transform}: {place(fun)} changes the carry's type from one iteration to the next:\n"
            + "\n".join(lines)
            + whence
        )


def _broadcast_advice(name: str, taken: ShapedArray, returned: ShapedArray) -> str:
    """Return advice if the initial carry can be broadcast to the shape that the body returns, else ''."""
    try:
        shape = np.broadcast_shapes(taken.shape, returned.shape)
    except ValueError:
        return ""
    if shape != returned.shape:
        return ""
    return f"; start from broadcast_to(init{name[len('carry') :]}, {returned.shape}) if that is intended"


def unchanged(invars: Sequence[Any], outvars: Sequence[Any]) -> list[bool]:
    """Flag the carries that a body returns unchanged."""
    return [v is w for v, w in zip(invars, outvars, strict=True)]


def without_carries(traced: Traced, num_carry: int, is_unchanged: Sequence[bool]) -> ClosedJaxpr:
    """Turn the flagged carries of a body into leading arguments, followed by the body's constants."""
    jaxpr = traced.jaxpr

    def make() -> ClosedJaxpr:
        if not any(is_unchanged):
            return close_over_consts(jaxpr)
        binders = jaxpr.invars[:num_carry]
        changing, same = partition_list(is_unchanged, binders)
        invars = [*same, *jaxpr.constvars, *changing, *jaxpr.invars[num_carry:]]
        outvars = [*partition_list(is_unchanged, jaxpr.outvars[:num_carry])[0], *jaxpr.outvars[num_carry:]]
        return ClosedJaxpr(Jaxpr((), invars, jaxpr.eqns, outvars, jaxpr.debug_info), ())

    return cached_on(jaxpr, ("without carries", num_carry, tuple(is_unchanged)), make)


def cached_on(jaxpr: Jaxpr, key: tuple[Any, ...], make: Callable[[], T]) -> T:
    """Return the value of `make()`, cached on the jaxpr, so that transformations of the value are cached as well."""
    cached: T | None = jaxpr.memo.get(key)
    if cached is None:
        cached = jaxpr.memo[key] = make()
    return cached


def as_results(leaves: Sequence[Any]) -> list[Any]:
    """Convert initial carries that are also results to arrays, as the caller may have passed numbers."""
    return [x if isinstance(x, Tracer) else as_array(x) for x in leaves]


def function_or_raise(transform: str, expected: str, fun: Any) -> None:
    """Raise TypeError with the text `expected` if `fun` is not callable."""
    if not callable(fun):
        raise TypeError(f"{transform}: {expected}, got {fun!r} of type {type(fun).__name__}")


# -- strong carries ----------------------------------------------------------------------------------------------------
#
# A loop's initial carry may be a Python number, which is weakly typed. The body is traced on this type first, and only
# then is it known whether the body returns a strong type. A second trace would double the time of tracing for each
# level of a nest of loops. In most cases it would differ from the first only in the weak types of variables, so the
# first jaxpr is retyped instead. The body is traced again only if the weak type affected the trace.


def with_strong_carries(traced: Traced, avals: Sequence[ShapedArray]) -> Traced | None:
    """Retype a traced body for leading arguments with types that differ from its own only in weak type.

    Returns:
        The body, or None if the weak type affected the trace: a weakly typed value was converted to another dtype, or
        a primitive does not accept the strong type.
    """
    old = traced.jaxpr
    key = ("strong carries", tuple(avals))
    if key not in old.memo:  # cached on the jaxpr, so that transformations of the new jaxpr are cached as well
        old.memo[key] = _retyped(old, [*avals, *(v.aval for v in old.invars[len(avals) :])])
    new = old.memo[key]
    return None if new is None else traced._replace(jaxpr=new)


def _retyped(old: Jaxpr, avals: Sequence[ShapedArray]) -> Jaxpr | None:
    """Infer the types of all variables again, from arguments of types `avals`."""
    new: dict[Var, Any] = {}
    invars = [_retyped_var(v, aval, new) for v, aval in zip(old.invars, avals, strict=True)]
    eqns: list[JaxprEqn] = []
    for eqn in old.eqns:
        if not any(type(v) is Var and v in new for v in eqn.invars):
            eqns.append(eqn)
            continue
        if _converts_weak_value(eqn):
            return None
        operands = [_strong_literal(eqn, v) if isinstance(v, Literal) else new.get(v, v) for v in eqn.invars]
        if _is_conversion(eqn) and operands[0].aval is eqn.outvars[0].aval:
            new[eqn.outvars[0]] = operands[0]
            continue
        try:
            avals_out = eqn.primitive.abstract(tuple(v.aval for v in operands), eqn.params)
        except (TypeError, ValueError):
            return None
        outvars = [_retyped_var(v, aval, new) for v, aval in zip(eqn.outvars, avals_out, strict=True)]
        eqns.append(eqn.replace(invars=operands, outvars=outvars))
    results = [new.get(v, v) if type(v) is Var else v for v in old.outvars]
    return Jaxpr(old.constvars, invars, eqns, results, old.debug_info)


def _retyped_var(v: Var, aval: ShapedArray, new: dict[Var, Any]) -> Var:
    """Return `v` if it has the type `aval`, else a new variable, which is recorded in `new`."""
    if v.aval is aval:
        return v
    new[v] = fresh = Var(aval)
    return fresh


def _strong_literal(eqn: JaxprEqn, literal: Literal) -> Literal:
    """Return a literal with a strong type, as beside a strong operand; higher-order primitives keep weak literals."""
    if "higher_order" in eqn.primitive.tags:
        return literal
    return Literal(literal.val, literal.aval.strip_weak_type())


def _is_conversion(eqn: JaxprEqn) -> bool:
    name: str = eqn.primitive.name
    return name == "convert_element_type"


def _converts_weak_value(eqn: JaxprEqn) -> bool:
    """Return whether the equation or its jaxprs convert a weakly typed value to another dtype."""
    if _is_conversion(eqn):
        operand, out = eqn.invars[0].aval, eqn.outvars[0].aval
        return bool(operand.weak_type and operand.dtype != out.dtype)
    return any(_converts_weak_value(inner) for program in subjaxprs(eqn.params) for inner in program.eqns)
