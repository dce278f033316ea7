"""batched: a primitive with a JVP or transpose rule of its own, applied to each element of a batch.

batched[primitive, params, axis_size, dims] : (n a, ...) -> [n b]

It is the vmap rule that is derived for a primitive with a decomposition and a written JVP or transpose rule. A batch of
the decomposition alone would be differentiated operation by operation, and the written rule would be lost, which may be
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
    UndefPrimal,
    axis_of_rule,
    find_primitive,
    flat_decomposition,
    get_aval,
    is_undef_primal,
    jvp_flat,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.transforms import batch_flat, mapped_aval, unmapped_aval
from corejax.extend.types import ValueType
from corejax_lax_basic.values.pack import pack_p, unpack_p

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
        if dim is not None and (dim < 0 or aval.shape[dim : dim + 1] != (axis_size,)):
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


@transpose_rules.register(batched_p)
def _transpose(
    cts: Sequence[Any],
    *vals: Any,
    primitive: str | Primitive,
    params: Params,
    axis_size: int,
    dims: Dims,
    **axis: Any,
) -> list[Any]:
    """Apply the primitive's written transpose rule to each element, or transpose the decomposition."""
    named = _named(primitive)
    if not transpose_rules.is_written(named):
        of_batch = {"primitive": primitive, "params": params, "axis_size": axis_size, "dims": dims, **axis}
        derived: list[Any] = transpose_rules.derived(batched_p)(cts, *vals, **of_batch)
        return derived
    known = [i for i, x in enumerate(vals) if not is_undef_primal(x)]
    used = [i for i, ct in enumerate(cts) if ct is not None]
    elements = [UndefPrimal(mapped_aval(get_aval(x), d)) for x, d in zip(vals, dims, strict=True)]
    found: list[int] = []  # the operands that have cotangents

    def one(*given: Any) -> list[Any]:
        operands = {**dict(enumerate(elements)), **dict(zip(known, given, strict=False))}
        given_cts = dict(zip(used, given[len(known) :], strict=True))
        element_cts = [given_cts.get(i) for i in range(len(cts))]
        ct = element_cts if named.multiple_results else element_cts[0]
        outs = transpose_rules.lookup(named)(ct, *operands.values(), **dict(params))
        found[:] = [i for i, out in enumerate(outs) if out is not None]
        return [outs[i] for i in found]

    given = [*(vals[i] for i in known), *(cts[i] for i in used)]
    outs = batch_flat(one, axis_size, given, [*(dims[i] for i in known), *[0] * len(used)], **axis)
    cts_in: list[Any] = [None] * len(vals)
    for i, ct in zip(found, _in_front(axis_size, *outs), strict=True):
        d = dims[i]
        cts_in[i] = _summed(ct) if d is None else move_batch_axis(axis_size, 0, d, ct)
    return cts_in


def _summed(x: Any) -> Any:
    """Return the sum over the axis in front, of each part of a value."""
    from corejax_lax_basic.reductions.reduce import reduce_sum  # a first operation needs no reductions

    aval = get_aval(x)
    if not isinstance(aval, ValueType):
        return reduce_sum(x, (0,))
    parts = zip(unpack_p.bind(x), aval.part_axes(0), strict=True)
    return pack_p.bind(*(reduce_sum(part, (axis,)) for part, axis in parts), type=mapped_aval(aval, 0))


def _vmap(primitive: Primitive) -> Callable[..., Any] | None:
    written = jvp_rules.is_written(primitive) or transpose_rules.is_written(primitive)
    if primitive.decomposition is None or not written:
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
    Derivation(
        "batch of the written rules",
        _vmap,
        needs="a decomposition and a JVP or transpose rule of its own",
        preferred=True,
    )
)
