"""`map`: apply a function to each element of arrays, one after the other or in batches."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar, overload

from corejax.extend import FlatFunction, fun_name, get_aval, leaf_names, move_batch_axis, tree
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import batch_flat
from corejax_control_flow.loops._carries import function_or_raise
from corejax_control_flow.loops.progress import Progress
from corejax_control_flow.loops.scan import scan
from corejax_control_flow.programs.messages import shown
from corejax_control_flow.programs.tracing import check_leaves

X = TypeVar("X")
Y = TypeVar("Y")


@overload
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None, progress: Progress = False) -> Y: ...
@overload
def map(f: Callable[[Any], Y], xs: Any, *, batch_size: int | None = None, progress: Progress = False) -> Y: ...
@api_boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None, progress: Progress = False) -> Any:
    """Apply a function to each element of arrays along their first axis, and stack the results.

    Like `vmap`, but the elements run one after the other (as a `scan`), so that the memory of one suffices.

    Args:
        f: function of a pytree of arrays, of the shapes of `xs` without their first axis; it may close over arrays and
            tracers.
        xs: pytree of arrays that share the length of their first axis, which may be 0.
        batch_size: number of elements that run at once, with `vmap`. If the length is not a multiple, the remaining
            elements run as a last, smaller batch. 0: all elements at once. None: one element at a time, without
            `vmap`.
        progress: progress bar to show: True, its label, or a `ProgressBar`.

    Returns:
        The pytree of results with a new first axis.

    Raises:
        TypeError: if `f` is not a function, an argument is not an array, or `batch_size` is not an integer.
        ValueError: if the arrays' lengths differ, `xs` has no array, or `batch_size` is negative.
    """
    function_or_raise("map", "f must be a function of one element", f)
    if batch_size is None:
        return scan(_body(f), (), xs, progress=progress)[1]
    try:
        batch_size = operator.index(batch_size)
    except TypeError:
        raise TypeError(f"map: batch_size must be an integer or None, got {batch_size!r}") from None
    if batch_size < 0:
        raise ValueError(f"map: batch_size must be a number of elements, or 0 for all of them; got {batch_size}")
    return _in_batches(f, xs, batch_size, progress)


def _body(f: Callable[[Any], Any]) -> Callable[..., Any]:
    def body(carry: Any, x: Any) -> Any:
        return carry, f(x)

    # Error messages follow `__wrapped__` and so name the user's function.
    body.__wrapped__ = f  # type: ignore[attr-defined]  # for messages, as functools.wraps sets it
    return body


def _in_batches(f: Callable[[Any], Any], xs: Any, batch_size: int, progress: Progress) -> Any:
    from corejax_lax_basic import lax

    leaves, x_tree = check_leaves("map", f, xs, "xs")
    length = _length(f, leaves, x_tree)
    count = length // batch_size if batch_size else 0
    whole = count * batch_size
    if not count:
        return _batched(f, x_tree, length)(xs)
    rows = [
        lax.reshape(lax.slice_in_dim(x, 0, whole, axis=0), (count, batch_size, *get_aval(x).shape[1:])) for x in leaves
    ]
    batches = scan(_body(_batched(f, x_tree, batch_size)), (), tree.tree_unflatten(x_tree, rows), progress=progress)[1]
    outs = tree.tree_map(lambda y: lax.reshape(y, (whole, *get_aval(y).shape[2:])), batches)
    if whole == length:
        return outs
    rest = [lax.slice_in_dim(x, whole, length, axis=0) for x in leaves]
    last = _batched(f, x_tree, length - whole)(tree.tree_unflatten(x_tree, rest))
    return tree.tree_map(lambda a, b: lax.concatenate([a, b], 0), outs, last)


def _length(f: Any, leaves: list[Any], x_tree: Any) -> int:
    avals = [get_aval(x) for x in leaves]
    if not avals or any(not a.ndim for a in avals) or len({a.shape[0] for a in avals}) > 1:
        lines = [f"  {name}: {shown(a)}" for name, a in zip(leaf_names(x_tree, "xs"), avals, strict=True)]
        raise ValueError(
            f"map of {fun_name(f)}: xs must be arrays that share the length of their first axis, got"
            + (":\n" + "\n".join(lines) if lines else " none")
        )
    return int(avals[0].shape[0])


def _batched(f: Callable[[Any], Any], x_tree: Any, size: int) -> Callable[[Any], Any]:
    """Return `f` mapped over a batch of `size` elements along the first axis."""

    def batched(xs: Any) -> Any:
        flat = FlatFunction(f, tree.treedef_tuple([x_tree]))
        leaves = tree.tree_leaves(xs)
        outs, dims = batch_flat(flat, size, leaves, [0] * len(leaves))
        moved = [move_batch_axis(size, d, 0, x) for x, d in zip(outs, dims, strict=True)]
        return tree.tree_unflatten(flat.out_tree, moved)

    batched.__wrapped__ = f  # type: ignore[attr-defined]  # as in `_body`
    return batched
