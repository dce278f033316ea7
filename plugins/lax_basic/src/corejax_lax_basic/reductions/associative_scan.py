"""`associative_scan`: all prefixes of a sequence combined by an associative operation in about log2(n) steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from corejax.extend import FlatFunction, Tracer, as_array, check_arguments, fun_name, get_aval, leaf_names, tree
from corejax.extend.messages import api_boundary
from corejax.extend.types import ValueType
from corejax_lax_basic._base.axes import canonical_axis
from corejax_lax_basic.shape.broadcasting import expand_dims
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.rearranging import reshape, rev
from corejax_lax_basic.shape.slicing import slice_in_dim

__all__ = ["associative_scan"]

Leaves = list[Any]
Combine = Callable[[Leaves, Leaves], Leaves]


T = TypeVar("T")


@api_boundary
def associative_scan(fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0) -> T:
    """Combine each prefix of a sequence by an associative operation.

    Element i of the result is `fn(...fn(fn(e[0], e[1]), e[2])..., e[i])`. It is computed in parallel by about 2 log2(n)
    applications of `fn`, each to many elements at once, on about 2 n elements altogether.

    Args:
        fn: function of two pytrees as `elems`, each with the axis in place: it combines elements of the same position,
            like `lax.add`. It has to be associative; it need not be commutative.
        elems: pytree of arrays that share the length of the axis; any length.
        reverse: combine from the end: the last element is unchanged, and `fn` receives the later element first.
        axis: the axis; negative ones count from the end.

    Returns:
        A pytree as `elems`.

    Raises:
        TypeError: `fn` is not a function, an element is not an array (values of value types are not), or `fn` changes a
            structure, shape or dtype.
        ValueError: `elems` has no arrays, the lengths differ (the message lists them), or an array does not have the
            axis.

    Source: Blelloch, "Prefix sums and their applications" (1990).
    """
    if not callable(fn):
        raise TypeError(
            f"associative_scan: fn must be a function of two elements, got {fn!r} of type {type(fn).__name__}"
        )
    leaves, treedef = tree.tree_flatten(elems)
    names = leaf_names(treedef, "elems")
    check_arguments("associative_scan", fn, leaves, lambda: names)
    for x, name in zip(leaves, names, strict=True):
        if isinstance(aval := get_aval(x), ValueType):
            raise TypeError(
                f"associative_scan: {name} is of type {aval.str_short()}: scan over the arrays that store the value "
                "(corejax.lax.unpack), and make values of them in fn (corejax.lax.pack)"
            )
    axes = [
        canonical_axis(axis, get_aval(x).ndim, f"associative_scan: {n}: axis")
        for x, n in zip(leaves, names, strict=True)
    ]
    sizes = [get_aval(x).shape[a] for x, a in zip(leaves, axes, strict=True)]
    if len(set(sizes)) != 1:
        lines = [f"  {n}: {get_aval(x).str_short()} has {s}" for n, x, s in zip(names, leaves, sizes, strict=True)]
        what = "the lengths of the axis differ:\n" + "\n".join(lines) if lines else "there is no array to scan over"
        raise ValueError(f"associative_scan of {fun_name(fn)}: {what}")
    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)]
    outs = _prefixes(_checked(fn, treedef, names), [_array(x) for x in leaves], axes)
    if reverse:
        outs = [rev(x, (a,)) for x, a in zip(outs, axes, strict=True)]
    return tree.tree_unflatten(treedef, outs)  # type: ignore[no-any-return]  # unflattening loses the type


def _array(x: Any) -> Any:
    return x if isinstance(x, Tracer) else as_array(x)


def _checked(fn: Callable[[Any, Any], Any], treedef: Any, names: Sequence[str]) -> Combine:
    """Return the function on lists of leaves; it raises TypeError if the result changes its structure or types."""

    def combine(left: Leaves, right: Leaves) -> Leaves:
        flat = FlatFunction(fn, tree.treedef_tuple([treedef, treedef]))
        outs = flat(*left, *right)
        if flat.out_tree != treedef:
            raise TypeError(
                f"associative_scan: {fun_name(fn)} takes elements of structure {treedef} and returns {flat.out_tree}"
            )
        for name, x, out in zip(names, left, outs, strict=True):
            a, b = get_aval(x), get_aval(out)
            if a.shape != b.shape or a.dtype != b.dtype:
                raise TypeError(
                    f"associative_scan: {fun_name(fn)} takes {a.str_short()} for {name} and returns {b.str_short()}"
                )
        return outs

    return combine


def _prefixes(combine: Combine, xs: Leaves, axes: Sequence[int]) -> Leaves:
    """Combine neighbours, then all prefixes of the pairs (these have odd indices), then the even ones from them."""
    n = get_aval(xs[0]).shape[axes[0]]
    if n < 2:
        return xs

    def every_other(vs: Leaves, start: int, stop: int, step: int = 2) -> Leaves:
        return [slice_in_dim(v, start, stop, step, a) for v, a in zip(vs, axes, strict=True)]

    odd = _prefixes(combine, combine(every_other(xs, 0, n - 1), every_other(xs, 1, n)), axes)
    even = every_other(xs, 0, 1, 1)
    if n > 2:
        rest = combine(every_other(odd, 0, (n - 1) // 2, 1), every_other(xs, 2, n))
        even = [concatenate([first, r], a) for first, r, a in zip(even, rest, axes, strict=True)]
    return [_interleaved(e, o, a) for e, o, a in zip(even, odd, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Interleave the elements of two arrays; the first may have one element more."""
    shape = get_aval(odd).shape
    n = shape[axis]
    pairs = concatenate(
        [expand_dims(slice_in_dim(even, 0, n, 1, axis), (axis + 1,)), expand_dims(odd, (axis + 1,))], axis + 1
    )
    whole = reshape(pairs, (*shape[:axis], 2 * n, *shape[axis + 1 :]))
    count = get_aval(even).shape[axis]
    return whole if count == n else concatenate([whole, slice_in_dim(even, n, count, 1, axis)], axis)
