"""Helpers that register vmap rules of elementwise primitives, and align the batching axes of operands."""

from __future__ import annotations

from typing import Any

from corejax.arrays.structural import structural
from corejax.base.provenance import Provenance
from corejax.core.avals import Dims, Operands, Params, avals_of, get_aval
from corejax.core.primitive import Primitive
from corejax.interpreters.batching import mapped_aval
from corejax.rules import vmap_rules

__corejax_registers_for_caller__ = True


def defvectorized(*primitives: Primitive) -> None:
    """Register the vmap rule of elementwise primitives of one operand, which binds the primitive on the batch.

    Each result must have the operand's shape, or at least its leading axes.
    """
    for primitive in primitives:

        def vmap(axis_size: int, vals: Any, dims: Any, /, *, _primitive: Primitive = primitive, **params: Any) -> Any:
            if len(vals) != 1:
                raise TypeError(
                    f"primitive {_primitive.name!r}: defvectorized makes the vmap rule of primitives of one operand, "
                    f"but this one has {len(vals)}: use defbroadcasting"
                )
            out = _primitive.bind(*vals, **params)
            return out, [dims[0]] * len(out) if _primitive.multiple_results else dims[0]

        _register(primitive, vmap)


def defbroadcasting(*primitives: Primitive) -> None:
    """Register the vmap rule of elementwise primitives of several operands.

    The operands have one shape, are scalars, or broadcast against each other as in NumPy. The rule moves all batching
    axes to one position, and inserts axes of length 1 behind it in operands with fewer axes. It broadcasts an unmapped
    scalar only if the primitive needs equal shapes.
    """
    for primitive in primitives:

        def vmap(axis_size: int, vals: Any, dims: Any, /, *, _primitive: Primitive = primitive, **params: Any) -> Any:
            vals, dim = align_batch_axes(axis_size, vals, dims)
            if None in dims and not _accepts(_primitive, vals, params):
                vals = [x if get_aval(x).ndim else structural.broadcast_axis(x, axis_size, 0) for x in vals]
            out = _primitive.bind(*vals, **params)
            return out, [dim] * len(out) if _primitive.multiple_results else dim

        _register(primitive, vmap)


def _accepts(primitive: Primitive, vals: Operands, params: Params) -> bool:
    """Whether a primitive accepts batched scalars (vectors) together with scalars that are not mapped."""
    try:
        return primitive.abstract(avals_of(vals), params)[0].ndim > 0
    except (TypeError, ValueError):
        return False


def _register(primitive: Primitive, vmap: Any) -> None:
    vmap.__name__ = f"{primitive.name}_vmap"
    vmap.__provenance__ = Provenance.of_caller()
    vmap_rules.register(primitive, vmap)


def align_batch_axes(axis_size: int, vals: Operands, dims: Dims) -> tuple[list[Any], int]:
    """Convert elementwise operands to one shape, or scalars, with the batching axis at one position.

    Operands of different ranks, apart from scalars, are assumed to broadcast as in NumPy.

    Args:
        axis_size: size n of the batch.
        vals: the operands: of shape `s`, or `s` with an axis of size n at `dims[i]`, or scalars or batches of scalars.
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
        if common is not None:  # all batches have the same rank and axis, and all other operands are scalars
            return list(vals), common[0]
    ranks = [get_aval(x).ndim - (d is not None) for x, d in zip(vals, dims, strict=True)]
    rank = max(ranks)
    if any(0 < r < rank for r in ranks):
        return [_with_leading_batch(x, d, rank - r) for x, d, r in zip(vals, dims, ranks, strict=True)], 0
    shape = next(mapped_aval(get_aval(x), d).shape for x, d, r in zip(vals, dims, ranks, strict=True) if r == rank)
    dim = next((d for d, r in zip(dims, ranks, strict=True) if d is not None and r == rank), 0)
    out = []
    for x, d, r in zip(vals, dims, ranks, strict=True):
        if d is None:
            # Broadcast an unmapped operand of full rank; a scalar works with operands of any shape.
            out.append(x if r == 0 else structural.broadcast_axis(x, axis_size, dim))
        elif r == rank:
            out.append(x if d == dim else structural.move_axis(x, d, dim))
        else:  # batches of scalars get the shape of batches of arrays
            out.append(_broadcast_scalars(x, shape, dim))
    return out, dim


def _with_leading_batch(x: object, dim: int | None, missing: int) -> Any:
    """Move a batching axis to the front and insert `missing` axes of length 1 behind it; keep unmapped values."""
    if dim is None:
        return x
    x = structural.move_axis(x, dim, 0) if dim else x
    for _ in range(missing):
        x = structural.broadcast_axis(x, 1, 1)
    return x


def _broadcast_scalars(x: object, shape: tuple[int, ...], dim: int) -> Any:
    """Broadcast a batch of scalars over `shape`, with the batching axis at `dim`."""
    for axis, size in enumerate(shape):
        x = structural.broadcast_axis(x, size, axis if axis < dim else axis + 1)
    return x
