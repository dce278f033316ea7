"""`scan`: a loop over arrays with a carry, as a function of pytrees."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from corejax.extend import (
    Array,
    ClosedJaxpr,
    as_array,
    get_aval,
    leaf_names,
    merge_lists,
    partition_list,
    split_list,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import Cell, cell_arguments, mapped_aval, named_as, with_cells, write_cells
from corejax.extend.types import SymbolicDim, as_dim
from corejax_control_flow.loops import scan_partial_eval as scan_partial_eval  # registers rules of the primitive
from corejax_control_flow.loops import scan_transpose as scan_transpose
from corejax_control_flow.loops._carries import as_results, carry_fixed_point, unchanged, without_carries
from corejax_control_flow.loops.progress import Progress, ProgressBar, as_progress_bar, counted, first_count
from corejax_control_flow.loops.scan_rules import scan_p
from corejax_control_flow.programs.in_python import in_python, scan_in_python
from corejax_control_flow.programs.messages import place, shown
from corejax_control_flow.programs.tracing import Traced, check_leaves, place_cells, result_type, trace_with_cells

Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Any, Any], tuple[Any, Y]],
    init: complex,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    progress: Progress = False,
    _split_transpose: bool | None = None,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    progress: Progress = False,
    _split_transpose: bool | None = None,
) -> tuple[Carry, Y]: ...
@overload
def scan(  # a carry or elements that are numbers inside, or NumPy's arrays
    f: Callable[[Any, Any], tuple[Carry, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    progress: Progress = False,
    _split_transpose: bool | None = None,
) -> tuple[Carry, Y]: ...
@api_boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    progress: Progress = False,
    _split_transpose: bool | None = None,
) -> tuple[Any, Any]:
    """Apply a function to each element of arrays in turn, passing a carry along.

    Equivalent to this Python loop, but compiled (and differentiated, batched, ...) as one operation of any length:

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Supports forward- and reverse-mode differentiation. Reverse mode saves the residuals of each iteration; wrap `f` in
    `checkpoint` to save fewer. Outside `jit`, a short scan runs on NumPy without compiling.

    Args:
        f: function `(carry, x) -> (carry, y)` of pytrees of arrays; it may close over arrays and tracers. The returned
            `carry` must have the structure, shapes and dtypes of the argument; `x` has the shapes of `xs` without
            their first axis; `y` is any pytree, None if there is nothing to stack.
        init: initial carry. Python scalars in it take the dtype that `f` returns for them.
        xs: pytree of arrays that share the length of their first axis, which may be 0. If it is None, `x` is None.
        length: number of iterations, required if `xs` has no array.
        reverse: if True, start from the last element; `ys` are in the order of `xs` all the same.
        unroll: number of iterations in one pass of the compiled loop; 0 or True for all.
        progress: progress bar to show: True, its label, or a `ProgressBar`.
        _split_transpose: ignored; JAX's hint for the derivative.

    Returns:
        The last carry, and the pytree of `y` with a new first axis.

    Raises:
        TypeError: if `f` is not a function, does not return a pair or changes the carry's structure or types (the
            message names the leaf, both types and the cast); if an argument is not an array; if `length` or `unroll`
            is not an integer.
        ValueError: if the arrays' lengths differ; if `length` is missing, negative or not the arrays' length; if
            `xs` has a scalar; if `unroll` is negative.
    """
    if not callable(f):
        raise TypeError(f"scan applies a function (carry, x) -> (carry, y), got {f!r} of type {type(f).__name__}")
    if xs is not None and cell_arguments.value is not None and (pairs := cell_arguments.value.mapped(xs, 0)):
        return _over_cells(f, init, xs, [cell for cell, _ in pairs], length, reverse, unroll, progress)
    return _scan(f, init, xs, length, reverse, unroll, progress)


def _scan(
    f: Any, init: Any, xs: Any, length: Any, reverse: bool, unroll: int | bool, progress: Progress
) -> tuple[Any, Any]:
    init_leaves, init_tree = check_leaves("scan", f, init, "init")
    x_leaves, x_tree = check_leaves("scan", f, xs, "xs")
    length = _checked_length(f, x_leaves, x_tree, length)
    unroll = checked_unroll("scan", unroll, length)
    if in_python() and length and not isinstance(length, SymbolicDim):
        indices = range(length - 1, -1, -1) if reverse else range(length)
        return scan_in_python(f, init, x_leaves, x_tree, indices)
    bar = as_progress_bar("scan", progress)
    x_avals = [mapped_aval(get_aval(x), 0) for x in x_leaves]
    in_tree = tree.treedef_tuple([init_tree, x_tree])
    init_leaves, traced = carry_fixed_point(
        "scan",
        f,
        init_leaves,
        init_tree,
        lambda avals: trace_with_cells("scan", f, in_tree, [*avals, *x_avals]),
        lambda traced: _carry_tree(f, traced),
    )
    num_carry, cells = len(init_leaves), traced.cells
    traced = place_cells(traced, cells, num_carry, num_carry)
    init_leaves = [*init_leaves, *[cell.get() for cell in cells]]
    outs = scan_traced(traced, init_leaves, x_leaves, length, bool(reverse), unroll, bar)
    last, values, stacked = split_list(outs, [num_carry, len(cells)])
    write_cells(cells, values)
    carry, ys = tree.tree_unflatten(traced.out_tree, [*last, *stacked])
    return carry, ys


def _over_cells(f: Any, init: Any, xs: Any, cells: Sequence[Cell], *options: Any) -> tuple[Any, Any]:
    """Scan over cells among `xs`: the elements of their values are scanned, and what they become is stacked."""

    @named_as(f)
    def body(carry: Any, x: Any) -> Any:
        x, values = x
        out, *last = with_cells(lambda: [f(carry, x)], cells)(*values)
        return (out[0], (out[1], last)) if isinstance(out, tuple | list) and len(out) == 2 else out

    carry, (ys, values) = _scan(body, init, (xs, [cell.get() for cell in cells]), *options)
    for cell, value in zip(cells, values, strict=True):
        cell.set(value)
    return carry, ys


def scan_traced(
    traced: Traced,
    init: Sequence[Any],
    xs: Sequence[Any],
    length: int,
    reverse: bool,
    unroll: int,
    bar: ProgressBar | None,
) -> list[Any]:
    """Bind `scan` to a traced body. Carries that the body returns unchanged become constants of the loop.

    Returns:
        The last carries and the stacked results.
    """
    num_carry = len(init)
    jaxpr = traced.jaxpr
    same = unchanged(jaxpr.invars[:num_carry], jaxpr.outvars[:num_carry])
    body = without_carries(traced, num_carry, same)
    carry, unchanging = partition_list(same, init)
    consts = [*unchanging, *traced.consts]
    if bar is not None:
        body, carry = _counted(body, len(consts), bar, length), [first_count(), *carry]
    args = [*consts, *carry, *xs]
    outs = scan_p.bind(
        *args,
        jaxpr=body,
        length=length,
        linear=(False,) * len(args),
        num_carry=len(carry),
        num_consts=len(consts),
        reverse=reverse,
        unroll=unroll,
    )
    if bar is not None:
        outs = outs[1:]
    last, ys = split_list(outs, [len(same) - sum(same)])
    return [*merge_lists(same, last, as_results(unchanging)), *ys]


def _counted(body: ClosedJaxpr, num_consts: int, bar: ProgressBar, length: int) -> ClosedJaxpr:
    from corejax_lax_basic import lax

    end = as_array(np.asarray(min(length, np.iinfo(np.int32).max), np.int32))
    return counted(body, num_consts, bar, length, lambda count, *_: lax.lt(count, end))


# -- arguments -----------------------------------------------------------------------------------------------


def _integer(transform: str, name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise TypeError(f"{transform}: {name} must be an integer known while tracing, got {value!r}: {error}") from None


def _checked_length(f: Any, leaves: Sequence[Any], x_tree: Any, length: Any) -> int:
    avals = [get_aval(x) for x in leaves]
    for i, aval in enumerate(avals):
        if not aval.ndim:
            raise ValueError(
                f"scan of {place(f)}: {leaf_names(x_tree, 'xs')[i]} is a scalar ({shown(aval)}), which has no "
                "axis to scan over; close over it, put it in the carry, or broadcast it to the length"
            )
    if length is not None:
        length = length if isinstance(length, SymbolicDim) else _integer("scan", "length", length)
        if length < 0:
            raise ValueError(
                f"scan of {place(f)}: length, the number of iterations, must not be negative, got {length}"
            )
    sizes = {a.shape[0] for a in avals} | ({length} if length is not None else set())
    if not sizes:
        raise ValueError(f"scan of {place(f)}: xs has no array that determines the number of iterations; pass length")
    if len(sizes) > 1:
        names = leaf_names(x_tree, "xs")
        lines = [f"  {name}: {shown(aval)} has {aval.shape[0]!r}" for name, aval in zip(names, avals, strict=True)]
        if length is not None:
            lines.append(f"  length: {length!r}")
        raise ValueError(f"scan of {place(f)}: the numbers of iterations differ:\n" + "\n".join(lines))
    size: int = as_dim(sizes.pop())
    return size


def checked_unroll(transform: str, unroll: Any, length: int) -> int:
    """Return the argument `unroll` as a number of iterations, from 1 to `length`.

    Raises:
        TypeError: if `unroll` is not an integer.
        ValueError: if `unroll` is negative.
    """
    if isinstance(length, SymbolicDim):  # a loop of unknown length cannot be divided into blocks
        return 1
    if unroll is True or unroll is False:
        return max(length, 1) if unroll else 1
    unroll = _integer(transform, "unroll", unroll)
    if unroll < 0:
        raise ValueError(f"{transform}: `unroll` must be a number of iterations, or 0 for all of them; got {unroll}")
    return max(min(unroll or length, length), 1)


# -- the body ------------------------------------------------------------------------------------------------


def _carry_tree(f: Any, traced: Traced) -> Any:
    kind, parts = (traced.out_tree.node_data() or (object,))[0], traced.out_tree.children()
    if not issubclass(kind, tuple | list) or len(parts) != 2:
        raise TypeError(
            f"scan: {place(f)} must return a pair (carry, y), got {result_type(traced)}"
            "; if there is nothing to stack, return (carry, None)"
        )
    return parts[0]
