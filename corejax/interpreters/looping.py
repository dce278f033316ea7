"""vmap of a primitive without a vmap rule: one application for each element.

    loop : (a -> b) -> (n a -> n b)

Right for every primitive that has an impl and a type, and slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.core.array import Array, as_array, host_value
from corejax.core.avals import ShapedArray, get_aval
from corejax.core.primitive import Primitive
from corejax.core.structural import structural, unrolled_loop
from corejax.core.trace import bottom_trace, state
from corejax.interpreters.batching import mapped_aval, move_batch_axis, unmapped_aval
from corejax.rules import Derivation, abstract_eval_rules, impl_rules, vmap_rules


def _vmap_as_loop(primitive: Primitive) -> Callable[..., Any] | None:
    if not _can_loop(primitive):
        return None

    def rule(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        def apply(args: Sequence[Any]) -> list[Any]:
            out = primitive.bind(*args, **params)
            return list(out) if primitive.multiple_results else [out]

        avals = tuple(mapped_aval(get_aval(x), d) for x, d in zip(vals, dims, strict=True))
        avals_out = primitive.abstract(avals, params)
        if axis_size == 0:
            outs = [structural.zeros(unmapped_aval(0, 0, aval)) for aval in avals_out]
        elif state.trace is bottom_trace():
            outs = _on_slices(apply, axis_size, vals, dims, avals, avals_out)
        else:
            outs = _on_traced(apply, axis_size, vals, dims)
        return (outs, [0] * len(outs)) if primitive.multiple_results else (outs[0], 0)

    return rule


def _can_loop(primitive: Primitive) -> bool:
    """Whether elements can be had one by one; the order of ordered effects over a batch is nobody's to choose."""
    if "collective" in primitive.tags or any(effect.startswith("ordered:") for effect in primitive.effects):
        return False
    return abstract_eval_rules.is_written(primitive) and (
        impl_rules.is_written(primitive) or impl_rules.can_derive(primitive) is not None
    )


def _on_slices(
    apply: Callable[..., list[Any]],
    axis_size: int,
    vals: Sequence[Any],
    dims: Sequence[int | None],
    avals: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray],
) -> list[Any]:
    """Concrete operands: NumPy's views of the elements, and one copy of the results."""
    arrays = [as_array(x) for x in vals]
    leading = [x if d is None else np.moveaxis(host_value(x), d, 0) for x, d in zip(arrays, dims, strict=True)]
    rows = []
    for i in range(axis_size):
        elements = [x if d is None else Array(x[i, ...], aval) for x, d, aval in zip(leading, dims, avals, strict=True)]
        rows.append([host_value(out) for out in apply(elements)])
    columns = zip(*rows, strict=True)
    return [Array(np.stack(c), unmapped_aval(axis_size, 0, a)) for c, a in zip(columns, avals_out, strict=True)]


def _on_traced(
    apply: Callable[..., list[Any]], axis_size: int, vals: Sequence[Any], dims: Sequence[int | None]
) -> list[Any]:
    """Traced operands: in a program under construction a loop (if a plugin has one), else one after the other."""
    trace = state.trace
    while trace.parent is not None:
        trace = trace.parent
    unrolled = trace is bottom_trace() or axis_size == 1
    return for_each_element(lambda *args: apply(args), axis_size, vals, dims, unrolled=unrolled)


def for_each_element(
    apply: Callable[..., Sequence[Any]],
    axis_size: int,
    vals: Sequence[Any],
    dims: Sequence[int | None],
    *,
    unrolled: bool = False,
) -> list[Any]:
    """What `apply` gives for each element of a batch, in their order: for vmap rules.

    Args:
        apply: function of operands of one element; it gives a list.
        axis_size: number of elements.
        vals: operands of the batch.
        dims: their batching dimensions; one at least is not None.
        unrolled: one application after the other, instead of a loop.

    Returns:
        The results, stacked along their first axis.
    """
    mapped = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True) if d is not None]

    def one(*elements: Any) -> Sequence[Any]:
        rest = iter(elements)
        return apply(*[x if d is None else next(rest) for x, d in zip(vals, dims, strict=True)])

    return list((unrolled_loop if unrolled else structural.loop)(one, axis_size, mapped))


vmap_rules.derivations.append(
    Derivation(
        "loop",
        _vmap_as_loop,
        needs="an impl and an abstract-eval rule, and no ordered effects",
        slow="vmap applies it to one element after the other",
    )
)
