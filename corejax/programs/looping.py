"""The derived vmap rule of primitives without a vmap rule: apply the primitive to each element.

    loop : (a -> b) -> (n a -> n b)

It is correct for every primitive with an impl and an abstract-eval rule, and slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.arrays.structural import structural, unrolled_loop
from corejax.core.avals import Dims, FlatFun, Operands, get_aval
from corejax.core.primitive import Primitive
from corejax.core.trace import recording_trace
from corejax.interpreters.batching import mapped_aval, move_batch_axis, unmapped_aval
from corejax.rules import Derivation, RuleFn, abstract_eval_rules, impl_rules, vmap_rules


def _vmap_as_loop(primitive: Primitive) -> RuleFn | None:
    if not _can_loop(primitive):
        return None

    def rule(axis_size: int, vals: Operands, dims: Dims, /, **params: object) -> tuple[Any, Any]:
        def apply(*args: object) -> list[Any]:
            out = primitive.bind(*args, **params)
            return list(out) if primitive.multiple_results else [out]

        if axis_size == 0:
            avals = tuple(mapped_aval(get_aval(x), d) for x, d in zip(vals, dims, strict=True))
            outs = [structural.zeros(unmapped_aval(0, 0, aval)) for aval in primitive.abstract(avals, params)]
        else:  # in a program, use a plugin's loop; otherwise, apply the primitive to one element after the other
            unrolled = recording_trace() is None or axis_size == 1
            outs = for_each_element(apply, axis_size, vals, dims, unrolled=unrolled)
        return (outs, [0] * len(outs)) if primitive.multiple_results else (outs[0], 0)

    return rule


def _can_loop(primitive: Primitive) -> bool:
    """Whether the primitive can be applied to one element at a time; ordered effects have no order over a batch."""
    if "collective" in primitive.tags or any(effect.startswith("ordered:") for effect in primitive.effects):
        return False
    return abstract_eval_rules.is_written(primitive) and (
        impl_rules.is_written(primitive) or impl_rules.can_derive(primitive) is not None
    )


def for_each_element(
    apply: FlatFun, axis_size: int, vals: Operands, dims: Dims, *, unrolled: bool = False
) -> list[Any]:
    """Apply a function to each element of a batch, in order: for vmap rules.

    Args:
        apply: a function of the operands of one element, which returns a list.
        axis_size: number of elements.
        vals: operands of the batch.
        dims: their batching dimensions; at least one is not None.
        unrolled: whether to call `apply` for each element rather than once in a loop.

    Returns:
        The results, stacked along their first axis.
    """
    mapped = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True) if d is not None]

    def one(*elements: object) -> Sequence[Any]:
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
