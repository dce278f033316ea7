"""`scan`: a loop over arrays with a carry, as a function of pytrees."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    ShapedArray,
    check_arguments,
    close_over_consts,
    fun_name,
    get_aval,
    leaf_names,
    mapped_aval,
    tree,
)
from corejax_control_flow import scan_linearity as scan_linearity  # the rest of the primitive's rules
from corejax_control_flow.scan_rules import scan_p
from corejax_control_flow.tracing import (
    Traced,
    common_dtype,
    convert,
    place,
    result_type,
    shown,
    trace,
    typed_tree,
)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Apply a function to each element of arrays in turn, passing a carry along.

    As this Python loop, but compiled (and differentiated, batched, ...) as one operation of any length:

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Args:
        f: function `(carry, x) -> (carry, y)` of pytrees of arrays; it may close over arrays and tracers.
        init: the first carry. Python scalars in it take the dtype that `f` gives them.
        xs: pytree of arrays that share the length of their first axis; None for none, `f` then gets None.
        length: number of iterations, needed where there is no array in `xs`.
        reverse: start from the end; `ys` are in the order of `xs` all the same.
        unroll: iterations of the compiled loop's body in one go; True for all.

    Returns:
        The last carry, and the pytree of `y` with a new first axis.

    Raises:
        TypeError: `f` does not return a pair or changes the carry's structure or types (says which leaf), or
            an argument is not an array.
        ValueError: the arrays' lengths differ (lists them), or `length` is missing, negative or not theirs.
    """
    if not callable(f):
        raise TypeError(f"scan applies a function (carry, x) -> (carry, y), got {f!r} of type {type(f).__name__}")
    init_leaves, init_tree = tree.tree_flatten(init)
    x_leaves, x_tree = tree.tree_flatten(xs)
    for leaves, treedef, name in ((init_leaves, init_tree, "init"), (x_leaves, x_tree, "xs")):
        check_arguments("scan", f, leaves, lambda t=treedef, n=name: leaf_names(t, n))
    length = _checked_length(f, x_leaves, x_tree, length)
    unroll = _checked_unroll(unroll, length)
    x_avals = [mapped_aval(get_aval(x), 0) for x in x_leaves]
    init_leaves, traced, num_carry = _trace_body(f, init_leaves, init_tree, x_avals, x_tree)
    args = [*traced.consts, *init_leaves, *x_leaves]
    outs = scan_p.bind(
        *args,
        jaxpr=close_over_consts(traced.jaxpr),
        length=length,
        linear=(False,) * len(args),
        num_carry=num_carry,
        num_consts=len(traced.consts),
        reverse=bool(reverse),
        unroll=unroll,
    )
    carry, ys = tree.tree_unflatten(traced.out_tree, outs)
    return carry, ys


# -- arguments -----------------------------------------------------------------------------------------------


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise TypeError(f"scan: {name} has to be an integer known while tracing, got {value!r}: {error}") from None


def _checked_length(f: Any, leaves: Sequence[Any], x_tree: Any, length: Any) -> int:
    names = leaf_names(x_tree, "xs")
    avals = [get_aval(x) for x in leaves]
    for name, aval in zip(names, avals, strict=True):
        if not aval.ndim:
            raise ValueError(
                f"scan of {fun_name(f)}: {name} is a scalar ({shown(aval)}), which has no "
                "axis to scan over; close over it, put it in the carry, or broadcast it to the length"
            )
    if length is not None:
        length = _integer("length", length)
        if length < 0:
            raise ValueError(f"scan of {fun_name(f)}: length is the number of iterations, got {length}")
    sizes = {a.shape[0] for a in avals} | ({length} if length is not None else set())
    if not sizes:
        raise ValueError(
            f"scan of {fun_name(f)}: there is no array in xs that gives the number of iterations; pass length"
        )
    if len(sizes) > 1:
        lines = [f"  {name}: {shown(aval)} has {aval.shape[0]}" for name, aval in zip(names, avals, strict=True)]
        if length is not None:
            lines.append(f"  length: {length}")
        raise ValueError(f"scan of {fun_name(f)}: the numbers of iterations differ:\n" + "\n".join(lines))
    return int(sizes.pop())


def _checked_unroll(unroll: Any, length: int) -> int:
    if unroll is True or unroll is False:
        return max(length, 1) if unroll else 1
    unroll = _integer("unroll", unroll)
    if unroll < 1:
        raise ValueError(f"scan: unroll is at least 1, got {unroll}")
    return min(unroll, max(length, 1))


# -- the body ------------------------------------------------------------------------------------------------


def _trace_body(
    f: Callable[..., Any], init: list[Any], init_tree: Any, x_avals: list[ShapedArray], x_tree: Any
) -> tuple[list[Any], Traced, int]:
    """Record the body on carries of the types that it gives back; weakly typed ones are converted to them."""
    in_tree = tree.treedef_tuple([init_tree, x_tree])
    while True:
        avals = [get_aval(x) for x in init]
        traced = trace("scan", f, in_tree, [*avals, *x_avals])
        carry_tree = _carry_tree(f, traced)
        if carry_tree != init_tree:
            given = traced.jaxpr.out_avals[: carry_tree.num_leaves]
            raise TypeError(
                f"scan: {place(f)} takes and returns carries of different structure:\n"
                f"  takes   {typed_tree(init_tree, avals)}\n"
                f"  returns {typed_tree(carry_tree, given)}"
            )
        avals_out = traced.jaxpr.out_avals[: len(avals)]
        wanted = [_promoted(a, b) for a, b in zip(avals, avals_out, strict=True)]
        if all(dtype is None for dtype in wanted):
            _check_types(f, init_tree, avals, avals_out)
            return init, traced, len(avals)
        init = [x if dtype is None else convert(x, dtype) for x, dtype in zip(init, wanted, strict=True)]


def _carry_tree(f: Any, traced: Traced) -> Any:
    out = tree.tree_unflatten(traced.out_tree, traced.jaxpr.out_avals)
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise TypeError(
            f"scan: {place(f)} has to return a pair (carry, y), got {result_type(traced)}"
            "; where there is nothing to stack, return (carry, None)"
        )
    return tree.tree_structure(out[0])


def _promoted(taken: ShapedArray, given: ShapedArray) -> Any:
    """The dtype that a weakly typed first carry takes to be what the body gives; None to leave it."""
    if not taken.weak_type or given is taken:
        return None
    dtype = common_dtype((taken, given))
    return dtype if dtype is not None and dtype == given.dtype else None


def _check_types(f: Any, init_tree: Any, taken: Sequence[ShapedArray], given: Sequence[ShapedArray]) -> None:
    lines = []
    for name, a, b in zip(leaf_names(init_tree, "carry"), taken, given, strict=True):
        if a.shape == b.shape and a.dtype == b.dtype:
            continue
        types = f"{name} is {shown(a)} when taken and {shown(b)} when returned"
        if a.shape != b.shape:
            lines.append(f"  {types}: the shapes have to be equal")
            continue
        cast = f"return {name}.astype('{a.dtype.name}')"
        if (
            common_dtype((a, b.update(weak_type=False))) is None
            and common_dtype((a.update(weak_type=True), b)) == b.dtype
        ):
            cast += f", or start from init{name[len('carry') :]}.astype('{b.dtype.name}')"
        lines.append(f"  {types}: {cast}")
    if lines:
        raise TypeError(
            f"scan: {place(f)} changes the carry's type from one iteration to the next:\n" + "\n".join(lines)
        )
