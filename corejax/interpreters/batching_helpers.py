"""Helpers that register vmap rules of elementwise primitives, and bring operands' batching axes to one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core.avals import get_aval
from corejax.core.primitive import Primitive
from corejax.core.structural import structural
from corejax.interpreters.batching import mapped_aval
from corejax.rules import vmap_rules

__corejax_registers_for_caller__ = True


def defvectorized(*primitives: Primitive) -> None:
    """Register the vmap rule of elementwise primitives of one operand: the batch passes through.

    Each result has the operand's shape, or at least its leading axes.
    """
    for primitive in primitives:

        def vmap(axis_size: int, vals: Any, dims: Any, /, *, _primitive: Primitive = primitive, **params: Any) -> Any:
            if len(vals) != 1:
                raise TypeError(
                    f"primitive {_primitive.name!r}: defvectorized makes the vmap rule of primitives of one operand, "
                    f"this one was given {len(vals)}: use defbroadcasting"
                )
            out = _primitive.bind(*vals, **params)
            return out, [dims[0]] * len(out) if _primitive.multiple_results else dims[0]

        _register(primitive, vmap)


def defbroadcasting(*primitives: Primitive) -> None:
    """Register the vmap rule of elementwise primitives of several operands.

    The operands are of one shape, or scalars, or broadcast against each other as NumPy's do. Batched operands get
    their batching axis in the same place, and axes of length 1 behind it where they have fewer axes than others; a
    scalar in the batch is broadcast where the primitive needs equal shapes.
    """
    for primitive in primitives:

        def vmap(axis_size: int, vals: Any, dims: Any, /, *, _primitive: Primitive = primitive, **params: Any) -> Any:
            vals, dim = align_batch_axes(axis_size, vals, dims)
            if None in dims and not _takes(_primitive, vals, params):
                vals = [x if get_aval(x).ndim else structural.broadcast_axis(x, axis_size, 0) for x in vals]
            out = _primitive.bind(*vals, **params)
            return out, [dim] * len(out) if _primitive.multiple_results else dim

        _register(primitive, vmap)


def _takes(primitive: Primitive, vals: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether a primitive that was applied to scalars takes a batch of them beside one that is not mapped."""
    avals = tuple(get_aval(x) for x in vals)
    if {aval.ndim for aval in avals} != {0, 1}:
        return True
    try:
        return all(out.ndim for out in primitive.abstract(avals, params))
    except (TypeError, ValueError):
        return False


def _register(primitive: Primitive, vmap: Any) -> None:
    from corejax.base.provenance import Provenance

    vmap.__name__ = f"{primitive.name}_vmap"
    vmap.__provenance__ = Provenance.of_caller()
    vmap_rules.register(primitive, vmap)


def align_batch_axes(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """Bring elementwise operands to one shape (or scalars) with the batching axis in one place.

    Operands of fewer axes than others, scalars apart, are those of a primitive that broadcasts as NumPy does.

    Args:
        axis_size: size n of the batch.
        vals: the operands; of unbatched shape `s`, or `s` with an axis of size n at `dims[i]`. Scalars may be among
            them.
        dims: their batching dimensions; None for those that are not mapped.

    Returns:
        The operands, and the position of the batching axis.
    """
    common: tuple[int, int] | None = None
    for x, d in zip(vals, dims, strict=True):
        ndim = get_aval(x).ndim
        if d is None:
            if ndim:
                break
        elif common is None:
            common = (d, ndim)
        elif common != (d, ndim):
            break
    else:
        if common is not None:  # batches alike, and scalars: nothing to do
            return list(vals), common[0]
    ranks = [get_aval(x).ndim - (d is not None) for x, d in zip(vals, dims, strict=True)]
    rank = max(ranks)
    if any(0 < r < rank for r in ranks):
        return [_leading(x, d, rank - r) for x, d, r in zip(vals, dims, ranks, strict=True)], 0
    shape = next(mapped_aval(get_aval(x), d).shape for x, d, r in zip(vals, dims, ranks, strict=True) if r == rank)
    dim = next((d for d, r in zip(dims, ranks, strict=True) if d is not None and r == rank), 0)
    out = []
    for x, d, r in zip(vals, dims, ranks, strict=True):
        if d is None:
            # A full-rank operand that is not mapped has to gain the axis; a scalar mixes as it is.
            out.append(x if r == 0 else structural.broadcast_axis(x, axis_size, dim))
        elif r == rank:
            out.append(x if d == dim else structural.move_axis(x, d, dim))
        else:  # a batch of scalars beside a batch of arrays
            out.append(_spread(x, shape, dim))
    return out, dim


def _leading(x: Any, dim: int | None, missing: int) -> Any:
    """A batch with its axis in front of as many axes as other operands have; what is not mapped as it is."""
    if dim is None:
        return x
    x = structural.move_axis(x, dim, 0) if dim else x
    for _ in range(missing):
        x = structural.broadcast_axis(x, 1, 1)
    return x


def _spread(x: Any, shape: tuple[int, ...], dim: int) -> Any:
    """A batch of scalars, repeated over `shape` with the batching axis at `dim`."""
    for axis, size in enumerate(shape):
        x = structural.broadcast_axis(x, size, axis if axis < dim else axis + 1)
    return x
