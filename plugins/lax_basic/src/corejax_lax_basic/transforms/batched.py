"""batched: a primitive with a JVP rule of its own, applied to each element of a batch.

batched[primitive, params, axis_size, dims] : (n a, ...) -> [n b]

It is the vmap rule that is derived for a primitive with a decomposition and a written JVP rule. A batch of the
decomposition alone would be differentiated operation by operation, and the written rule would be lost, which may be
another derivative on purpose (the straight-through estimator) or one that avoids NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from corejax.extend import (
    Derivation,
    Primitive,
    ShapedArray,
    axis_of_rule,
    find_primitive,
    flat_decomposition,
    jvp_flat,
    jvp_rules,
    move_batch_axis,
    vmap_rules,
)
from corejax.extend.transforms import batch_flat, mapped_aval, unmapped_aval

__all__ = ["batched_p"]

Params: TypeAlias = tuple[tuple[str, Any], ...]  # names and values of the primitive's parameters
Dims: TypeAlias = tuple[int | None, ...]


def _in_front(axis_size: int, outs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Return results with the batching axis in front."""
    return [move_batch_axis(axis_size, d, 0, x) for x, d in zip(outs, dims, strict=True)]


def _named(name: str | Primitive) -> Primitive:
    """Return the primitive of a name; programs in text form have only the name."""
    primitive = name if isinstance(name, Primitive) else find_primitive(name)
    if primitive is None:
        raise TypeError(f"batched: there is no primitive {name!r}")
    return primitive


def _flat(primitive: Primitive, params: Params) -> Callable[..., list[Any]]:
    def bind(*vals: Any) -> list[Any]:
        out = primitive.bind(*vals, **dict(params))
        return list(out) if primitive.multiple_results else [out]

    return bind


def _abstract_eval(
    *avals: ShapedArray, primitive: str | Primitive, params: Params, axis_size: int, dims: Dims, **axis: Any
) -> list[ShapedArray]:
    if len(dims) != len(avals):
        raise TypeError(f"batched takes {len(dims)} operands, got {len(avals)}")
    for aval, dim in zip(avals, dims, strict=True):
        if dim is not None and aval.shape[dim : dim + 1] != (axis_size,):
            raise TypeError(f"batched: axis {dim} of {aval.str_short()} does not have the batch's size {axis_size}")
    elements = tuple(map(mapped_aval, avals, dims))
    return [unmapped_aval(axis_size, 0, aval) for aval in _named(primitive).abstract(elements, dict(params))]


def _decomposition(
    *vals: Any, primitive: str | Primitive, params: Params, axis_size: int, dims: Dims, **axis: Any
) -> list[Any]:
    body = flat_decomposition(_named(primitive))
    if body is None:
        raise TypeError(f"batched: primitive {primitive!r} has no decomposition")
    return _in_front(axis_size, *batch_flat(partial(body, **dict(params)), axis_size, vals, dims, **axis))


batched_p = Primitive(
    "batched",
    multiple_results=True,
    abstract_eval=_abstract_eval,
    decomposition=_decomposition,
    tags=("value_types",),
    doc="Apply a primitive with a JVP rule of its own to each element of a batch.",
)


@jvp_rules.register(batched_p, symbolic_zeros=True)
def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    primitive: str | Primitive,
    params: Params,
    axis_size: int,
    dims: Dims,
    **axis: Any,
) -> tuple[list[Any], list[Any]]:
    """Apply the primitive's JVP rule to each element."""
    nonzero = [i for i, t in enumerate(tangents) if t is not None]
    has_tangent: list[bool] = []

    def one(*vals: Any) -> list[Any]:
        given = dict(zip(nonzero, vals[len(primals) :], strict=True))
        outs, outs_dot = jvp_flat(
            _flat(_named(primitive), params), vals[: len(primals)], [given.get(i) for i in range(len(primals))]
        )
        has_tangent[:] = [t is not None for t in outs_dot]
        return [*outs, *(t for t in outs_dot if t is not None)]

    vals = [*primals, *(tangents[i] for i in nonzero)]
    found = _in_front(axis_size, *batch_flat(one, axis_size, vals, [*dims, *(dims[i] for i in nonzero)], **axis))
    rest = iter(found[len(has_tangent) :])
    return found[: len(has_tangent)], [next(rest) if t else None for t in has_tangent]


def _vmap(primitive: Primitive) -> Callable[..., Any] | None:
    if primitive.decomposition is None or not jvp_rules.is_written(primitive):
        return None

    def rule(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        named = primitive.name if find_primitive(primitive.name) is primitive else primitive  # it was defined again
        of_batch: dict[str, Any] = {"primitive": named, "params": tuple(params.items()), "axis_size": axis_size}
        if (name := axis_of_rule().name) is not None:  # for collectives in the decomposition or the JVP rule
            of_batch["axis_name"] = name
        outs = batched_p.bind(*vals, dims=tuple(dims), **of_batch)
        return (outs, [0] * len(outs)) if primitive.multiple_results else (outs[0], 0)

    return rule


vmap_rules.derivations.append(
    Derivation("batch of the JVP rule", _vmap, needs="a decomposition and a JVP rule of its own")
)
