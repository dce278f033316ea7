"""The carry of a loop: a fixed point of its types, the carries that a body does not change, and checks of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Tracer,
    Var,
    as_array,
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
from corejax_control_flow.programs.weak_types import common_dtype, convert, same_but_weak_type


def carry_fixed_point(
    transform: str,
    fun: Callable[..., Any],
    init: list[Any],
    init_tree: Any,
    trace_body: Callable[[list[ShapedArray]], Traced],
    carry_tree: Callable[[Traced], Any],
) -> tuple[list[Any], Traced]:
    """Find a fixed point of the carry's types, and trace the body on it.

    The body is traced on the types of the first carry. Where a leaf is weakly typed and the body returns another type
    for it, the leaf is converted to that type, and the body is traced again.

    Args:
        transform: the function that was called, for messages.
        fun: the body.
        init: leaves of the first carry.
        init_tree: their structure.
        trace_body: traces the body on carries of these types; its first outputs are the next carry's leaves.
        carry_tree: structure of the carry that the traced body returns.

    Returns:
        The leaves of the first carry, and the traced body.

    Raises:
        TypeError: the body changes the structure or a type; names the leaf.
    """
    earlier: Traced | None = None

    def body_on(avals: list[ShapedArray]) -> tuple[Sequence[ShapedArray], Traced]:
        nonlocal earlier
        traced = None
        if earlier is not None and _dtypes(earlier.jaxpr.in_avals[: len(avals)]) == _dtypes(avals):
            traced = with_strong_carries(earlier, avals)
        earlier = traced = traced or trace_body(avals)
        _check_structure(transform, fun, init_tree, avals, carry_tree(traced), traced.jaxpr.out_avals)
        return traced.jaxpr.out_avals[: len(avals)], traced

    first = [get_aval(x) for x in init]
    avals, traced = fixpoint(body_on, first, _promoted)
    _check_types(transform, fun, init_tree, avals, traced.jaxpr.out_avals[: len(avals)])
    carry = [x if a is b else _of_type(x, a, b) for x, a, b in zip(init, first, avals, strict=True)]
    return carry, _giving(traced, avals)


def _of_type(x: Any, given: ShapedArray, wanted: ShapedArray) -> Any:
    same = (given.dtype, given.weak_type) == (wanted.dtype, wanted.weak_type)
    return conform(x if same else convert(x, wanted.dtype), wanted)


def _giving(traced: Traced, avals: Sequence[ShapedArray]) -> Traced:
    """Return the body with carries of the refinements of the carries that it takes."""
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


def _promoted(taken: ShapedArray, given: ShapedArray) -> ShapedArray:
    """Return the type of a first carry: a weak type becomes the strong type that the body returns, if it can."""
    dtype = common_dtype((taken, given)) if taken.weak_type and given is not taken else None
    found = taken if dtype is None or dtype != given.dtype else taken.update(dtype=dtype, weak_type=False)
    return found.refined(join_refinements(taken.refinement, given.refinement))


def _check_structure(
    transform: str, fun: Any, taken_tree: Any, taken: list[ShapedArray], given_tree: Any, outs: list[ShapedArray]
) -> None:
    if given_tree != taken_tree:
        raise TypeError(
            f"{transform}: {place(fun)} takes and returns carries of different structure:\n"
            f"  takes   {typed_tree(taken_tree, taken)}\n"
            f"  returns {typed_tree(given_tree, outs[: given_tree.num_leaves])}\n"
            f"  {structural_difference('carry', taken_tree, given_tree)}: return a carry of the structure that is "
            "taken, or start from one of the structure that is returned"
        )


def _check_types(
    transform: str, fun: Any, init_tree: Any, taken: Sequence[ShapedArray], given: Sequence[ShapedArray]
) -> None:
    lines, whence = [], ""
    for i, (a, b) in enumerate(zip(taken, given, strict=True)):
        if same_but_weak_type(a, b):
            continue
        name = leaf_names(init_tree, "carry")[i]
        types = f"{name} is {shown(a)} when taken and {shown(b)} when returned"
        if a.shape != b.shape:
            lines.append(f"  {types}: the shapes have to be equal{_reshaped(name, a, b)}")
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


def _reshaped(name: str, taken: ShapedArray, given: ShapedArray) -> str:
    """Advice where the first carry can be broadcast to what the body returns."""
    try:
        whole = np.broadcast_shapes(taken.shape, given.shape)
    except ValueError:
        return ""
    if whole != given.shape:
        return ""
    return f"; start from broadcast_to(init{name[len('carry') :]}, {given.shape}) if that is what is meant"


def unchanged(invars: Sequence[Any], outvars: Sequence[Any]) -> list[bool]:
    """Which carries a body returns as it took them."""
    return [v is w for v, w in zip(invars, outvars, strict=True)]


def without_carries(traced: Traced, num_carry: int, gone: Sequence[bool]) -> ClosedJaxpr:
    """A body whose constants are leading arguments, and before them the carries that it does not change."""
    jaxpr = traced.jaxpr

    def make() -> ClosedJaxpr:
        binders = jaxpr.invars[:num_carry]
        changing, same = partition_list(gone, binders)
        invars = [*same, *jaxpr.constvars, *changing, *jaxpr.invars[num_carry:]]
        outvars = [*partition_list(gone, jaxpr.outvars[:num_carry])[0], *jaxpr.outvars[num_carry:]]
        return ClosedJaxpr(Jaxpr((), invars, jaxpr.eqns, outvars, jaxpr.debug_info), ())

    return kept_with(jaxpr, ("without carries", num_carry, tuple(gone)), make)  # type: ignore[no-any-return]


def kept_with(jaxpr: Jaxpr, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What `make` returns, kept with the jaxpr: it is made once, and so are transformations of it."""
    found = jaxpr.memo.get(key)
    if found is None:
        found = jaxpr.memo[key] = make()
    return found


def as_results(leaves: Sequence[Any]) -> list[Any]:
    """First carries that are results too, as arrays: the caller may have passed numbers."""
    return [x if isinstance(x, Tracer) else as_array(x) for x in leaves]


def function_or_raise(transform: str, what: str, fun: Any) -> None:
    """Refuse what cannot be called.

    Raises:
        TypeError: `fun` is not callable; says what was expected.
    """
    if not callable(fun):
        raise TypeError(f"{transform}: {what}, got {fun!r} of type {type(fun).__name__}")


# -- strong carries ----------------------------------------------------------------------------------------------------
#
# A loop's first carry may be a Python number, which is weakly typed. Its body is traced on that type first, and only
# then is it known whether the body returns a strong type. Tracing it a second time would double the time for each level
# of a nest of loops. Mostly the second trace would differ from the first in the weak types of variables only.


def with_strong_carries(traced: Traced, avals: Sequence[ShapedArray]) -> Traced | None:
    """The traced body with first arguments of other types, which differ from its own in weak type only.

    Returns:
        The body. None where the weak type mattered: a weakly typed value was converted to another dtype, or a primitive
        does not take the strong type.
    """
    old = traced.jaxpr
    key = ("strong carries", tuple(avals))
    if key not in old.memo:  # kept with the jaxpr, so that transformations of it are made once
        old.memo[key] = _strong(old, [*avals, *(v.aval for v in old.invars[len(avals) :])])
    found = old.memo[key]
    return None if found is None else traced._replace(jaxpr=found)


def _strong(old: Jaxpr, avals: Sequence[ShapedArray]) -> Jaxpr | None:
    new: dict[Var, Any] = {}
    invars = [_bound(v, aval, new) for v, aval in zip(old.invars, avals, strict=True)]
    eqns: list[JaxprEqn] = []
    for eqn in old.eqns:
        if not any(type(v) is Var and v in new for v in eqn.invars):
            eqns.append(eqn)
            continue
        if _decides(eqn):
            return None
        operands = [_literal(eqn, v) if type(v) is Literal else new.get(v, v) for v in eqn.invars]
        if _converts(eqn) and operands[0].aval is eqn.outvars[0].aval:
            new[eqn.outvars[0]] = operands[0]
            continue
        try:
            avals_out = eqn.primitive.abstract(tuple(v.aval for v in operands), eqn.params)
        except (TypeError, ValueError):
            return None
        outvars = [_bound(v, aval, new) for v, aval in zip(eqn.outvars, avals_out, strict=True)]
        eqns.append(eqn.replace(invars=operands, outvars=outvars))
    outvars = [new.get(v, v) if type(v) is Var else v for v in old.outvars]
    return Jaxpr(old.constvars, invars, eqns, outvars, old.debug_info)


def _bound(v: Var, aval: ShapedArray, new: dict[Var, Any]) -> Var:
    """A variable in place of `v` if its type is another."""
    if v.aval is aval:
        return v
    new[v] = fresh = Var(aval)
    return fresh


def _literal(eqn: JaxprEqn, literal: Literal) -> Literal:
    """A literal beside a strongly typed operand is strongly typed; operands of higher-order primitives stay weak."""
    if "higher_order" in eqn.primitive.tags:
        return literal
    return Literal(literal.val, literal.aval.strip_weak_type())


def _converts(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name == "convert_element_type"


def _decides(eqn: JaxprEqn) -> bool:
    """Whether a weakly typed value is converted to another dtype, in the equation or in its programs."""
    if _converts(eqn):
        operand, out = eqn.invars[0].aval, eqn.outvars[0].aval
        return bool(operand.weak_type and operand.dtype != out.dtype)
    return any(_decides(inner) for program in subjaxprs(eqn.params) for inner in program.eqns)
