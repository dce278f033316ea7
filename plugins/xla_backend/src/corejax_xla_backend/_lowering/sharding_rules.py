"""Derivation of sharding rules from vmap rules: dimensions of operands and results that may be split together.

Suppose that the vmap rule turns a batch of applications into one application of the same primitive, with the same
parameters, to the unchanged operands. Then each element of the batch is computed independently, and so each device may
compute its part of the batch. The derivation guesses batch dimensions, stages the vmapped primitive, and accepts the
guess if the program is that single application.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Primitive, ShapedArray, as_array, bottom_trace, set_current_trace, stage_closed, vmap_rules
from corejax.extend.messages import clears_cache
from corejax.extend.transforms import batch_flat, unmapped_aval
from corejax.extend.types import SymbolicDim

_MAX_CACHED = 4096  # entries of the cache
_MAX_CANDIDATES = 64  # combinations of the other operands' dimensions that are tried for one dimension

Dims = tuple[int | None, ...]


class Factors(NamedTuple):
    """Dimensions that are split together: those with the same factor.

    Attributes:
        operands, results: for each operand or result the factor's number for each dimension; None if it is not split.
        sizes: the factors' sizes.
    """

    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    sizes: tuple[int, ...]


_cache: dict[Any, Factors | None] = {}
clears_cache(_cache.clear)


def factors_of(primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Factors | None:
    """Return the factors of an application; None if no dimension may be split."""
    try:
        key = (primitive, tuple(avals), tuple(params.items()))
        if key in _cache:
            return _cache[key]
    except TypeError:  # a parameter is not hashable
        return _derive_factors(primitive, tuple(avals), params)
    factors = _derive_factors(primitive, tuple(avals), params)
    if len(_cache) >= _MAX_CACHED:
        _cache.clear()
    _cache[key] = factors
    return factors


def _derive_factors(primitive: Primitive, avals: tuple[ShapedArray, ...], params: Mapping[str, Any]) -> Factors | None:
    """Try each dimension of each operand as a batch dimension, and collect the factors that the vmap rule confirms."""
    sizes = {size for aval in avals for size in aval.shape}
    if not vmap_rules.is_written(primitive) or any(isinstance(size, SymbolicDim) for size in sizes):
        return None
    out_avals = primitive.abstract(avals, dict(params))
    builder = _FactorsBuilder(avals, out_avals)
    for i, aval in enumerate(avals):
        for dim, size in enumerate(aval.shape):
            if size < 2 or builder.operands[i][dim] is not None:
                continue
            for dims in _candidate_dims(builder.operands, avals, i, dim):
                batch = _as_batch(primitive, avals, out_avals, params, dims, size)
                if batch is not None and builder.add(dims, batch.dims_out, size):
                    if len(builder.sizes) == 1:
                        builder.add_inner(batch, dims, factors_of(primitive, batch.elements, batch.params))
                    break
    return builder.factors()


class _Batch(NamedTuple):
    """An application that is a batch of smaller applications.

    Attributes:
        dims_out: the batch dimension of each result.
        elements, params: operand types and parameters of one smaller application.
    """

    dims_out: tuple[int, ...]
    elements: tuple[ShapedArray, ...]
    params: Mapping[str, Any]


class _FactorsBuilder:
    """The factors of an application that are confirmed so far."""

    def __init__(self, avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]) -> None:
        self.operands: list[list[int | None]] = [[None] * a.ndim for a in avals]
        self.results: list[list[int | None]] = [[None] * a.ndim for a in out_avals]
        self.sizes: list[int] = []

    def add(self, dims: Dims, dims_out: Dims, size: int) -> bool:
        """Add a factor and return True, or return False if one of its dimensions has a factor already."""
        places = [*zip((*self.operands, *self.results), (*dims, *dims_out), strict=True)]
        if any(d is not None and numbers[d] is not None for numbers, d in places):
            return False
        for numbers, d in places:
            if d is not None:
                numbers[d] = len(self.sizes)
        self.sizes.append(size)
        return True

    def add_inner(self, batch: _Batch, dims: Dims, inner: Factors | None) -> None:
        """Add the factors of one element of a batch, with dimensions counted in the whole batch."""
        for number, size in enumerate(inner.sizes if inner is not None else ()):
            assert inner is not None
            sides = zip((*inner.operands, *inner.results), (*dims, *batch.dims_out), strict=True)
            places = [_dim_in_batch(numbers.index(number) if number in numbers else None, d) for numbers, d in sides]
            self.add(tuple(places[: len(dims)]), tuple(places[len(dims) :]), size)

    def factors(self) -> Factors | None:
        """Return all confirmed factors, or None."""
        if not self.sizes:
            return None
        return Factors(tuple(map(tuple, self.operands)), tuple(map(tuple, self.results)), tuple(self.sizes))


def _dim_in_batch(dim: int | None, batch: int | None) -> int | None:
    """Return the number of an element's dimension in the batch, which has one dimension more."""
    return dim if dim is None or batch is None or dim < batch else dim + 1


def _candidate_dims(
    operands: Sequence[Sequence[int | None]], avals: Sequence[ShapedArray], first: int, dim: int
) -> Iterator[Dims]:
    """Yield candidates for the batch dimensions of all operands, likelier ones first.

    The operand `first` has the batch at `dim`, operands before it are not batched, and operands after it may have the
    batch at a dimension of the same size.
    """
    size, from_end = avals[first].shape[dim], dim - avals[first].ndim

    def candidates(k: int) -> list[int | None]:
        if k <= first:
            return [dim if k == first else None]
        free = [d for d, n in enumerate(avals[k].shape) if n == size and operands[k][d] is None]
        free.sort(key=lambda d: (d != dim, d - avals[k].ndim != from_end))
        return [*free, None]

    return itertools.islice(itertools.product(*map(candidates, range(len(avals)))), _MAX_CANDIDATES)


def _as_batch(
    primitive: Primitive,
    avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    params: Mapping[str, Any],
    dims: Dims,
    size: int,
) -> _Batch | None:
    """Return the batch that an application is if operands have the batch at `dims`; None if the vmap rule disagrees."""
    elements = tuple([_without(a, d) for a, d in zip(avals, dims, strict=True)])
    for inner_params in _candidate_params(params, min(d for d in dims if d is not None)):
        try:
            dims_out = _batch_dims_out(primitive, elements, inner_params, params, dims, size)
            if dims_out is None or any(d is None for d in dims_out):
                continue
            shapes = [_without(a, d) for a, d in zip(out_avals, dims_out, strict=True)]
            if [(a.shape, a.dtype) for a in shapes] != [
                (a.shape, a.dtype) for a in primitive.abstract(elements, dict(inner_params))
            ]:
                continue
            # Parts have other sizes, so that the guess must hold for other sizes of the batch.
            if all(
                _batch_dims_out(primitive, elements, inner_params, params, dims, n) == dims_out for n in (1, size + 1)
            ):
                if not _is_independent_on_scalars(primitive, elements, inner_params):
                    continue
                return _Batch(dims_out, elements, inner_params)  # type: ignore[arg-type]  # checked for None by `all`
        except Exception:  # a rule may fail for arguments that are only a guess
            continue
    return None


def _is_independent_on_scalars(
    primitive: Primitive, elements: Sequence[ShapedArray], params: Mapping[str, Any]
) -> bool:
    """Return False if the elements are scalars and a batch of two differs from two single applications.

    A vmap rule may hold for rows only. A primitive that normalises along an axis, say, has no axis for a scalar, and
    its vmap rule passes it the axis of the batch.
    """
    if any(aval.ndim for aval in elements) or "elementwise" in primitive.tags:
        return True

    def results(*args: Any) -> list[Any]:
        out = primitive.bind(*map(as_array, args), **params)
        return [np.asarray(x) for x in (out if primitive.multiple_results else [out])]

    values = [np.array([2, 3]).astype(aval.dtype) for aval in elements]
    with set_current_trace(bottom_trace()):
        both = results(*values)
        each = zip(*(results(*(x[i] for x in values)) for i in range(2)), strict=True)
        return all(np.array_equal(x, np.stack(rows), equal_nan=True) for x, rows in zip(both, each, strict=True))


def _without(aval: ShapedArray, dim: int | None) -> ShapedArray:
    """Return the type without a dimension."""
    return aval if dim is None else aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])


def _candidate_params(params: Mapping[str, Any], dim: int) -> Iterator[Mapping[str, Any]]:
    """Yield candidates for an element's parameters: the batch's own, then with axes counted without the batch's."""
    yield params
    shifted = {name: _shift_axes(value, dim) for name, value in params.items()}
    if shifted != dict(params):
        yield shifted


def _shift_axes(value: Any, dim: int) -> Any:
    """Return a parameter with its axes (an int, or a tuple of ints) after `dim` reduced by one."""
    if type(value) is int:
        return value - 1 if value > dim else value
    if type(value) is tuple and value and all(type(x) is int for x in value):
        return tuple(x - 1 if x > dim else x for x in value)
    return value


def _batch_dims_out(
    primitive: Primitive,
    elements: Sequence[ShapedArray],
    inner_params: Mapping[str, Any],
    params: Mapping[str, Any],
    dims: Dims,
    size: int,
) -> tuple[int | None, ...] | None:
    """Return the results' batch dimensions if vmap turns applications with `inner_params` into one with `params`."""
    dims_out: list[int | None] = []

    def apply(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **inner_params)
        return list(out) if primitive.multiple_results else [out]

    def batched(*args: Any) -> list[Any]:
        outs, out_dims = batch_flat(apply, size, args, dims)
        dims_out.extend(out_dims)
        return list(outs)

    avals = [unmapped_aval(size, d, a) for d, a in zip(dims, elements, strict=True)]
    jaxpr = stage_closed(batched, avals).jaxpr
    if len(jaxpr.eqns) != 1 or jaxpr.constvars:
        return None
    (eqn,) = jaxpr.eqns
    same = eqn.primitive is primitive and list(eqn.invars) == list(jaxpr.invars)
    if not same or dict(eqn.params) != dict(params) or list(eqn.outvars) != list(jaxpr.outvars):
        return None
    return tuple(dims_out)
