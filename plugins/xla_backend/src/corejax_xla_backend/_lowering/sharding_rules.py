"""Which dimensions of a primitive's operands and results may be split together, found out from its vmap rule.

Where the rule makes of an application to a batch an application of the same primitive, with the same parameters, to the
operands as they are, each element of the batch is computed by itself, and so may be each part of it.
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

_LIMIT = 4096  # of what is remembered
_CHOICES = 64  # of the other operands' dimensions for one of a first operand's

Dims = tuple[int | None, ...]


class Factors(NamedTuple):
    """Dimensions that are split together.

    Attributes:
        operands, results: for each the number of a factor for each dimension; None where it is kept whole.
        sizes: the factors' sizes.
    """

    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    sizes: tuple[int, ...]


_found: dict[Any, Factors | None] = {}
clears_cache(_found.clear)


def factors_of(primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Factors | None:
    """The factors of an application; None where nothing may be split."""
    try:
        key = (primitive, tuple(avals), tuple(params.items()))
        if key in _found:
            return _found[key]
    except TypeError:  # a parameter that is not hashable
        return _derived(primitive, tuple(avals), params)
    found = _derived(primitive, tuple(avals), params)
    if len(_found) >= _LIMIT:
        _found.clear()
    _found[key] = found
    return found


def _derived(primitive: Primitive, avals: tuple[ShapedArray, ...], params: Mapping[str, Any]) -> Factors | None:
    sizes = {size for aval in avals for size in aval.shape}
    if not vmap_rules.is_written(primitive) or any(isinstance(size, SymbolicDim) for size in sizes):
        return None
    out_avals = primitive.abstract(avals, dict(params))
    found = _Found(avals, out_avals)
    for i, aval in enumerate(avals):
        for dim, size in enumerate(aval.shape):
            if size < 2 or found.operands[i][dim] is not None:
                continue
            for dims in _choices(found.operands, avals, i, dim):
                batch = _batched(primitive, avals, out_avals, params, dims, size)
                if batch is not None and found.add(dims, batch.dims_out, size):
                    if len(found.sizes) == 1:
                        found.add_those_of(batch, dims, factors_of(primitive, batch.elements, batch.params))
                    break
    return found.factors()


class _Batch(NamedTuple):
    """An application that is a batch of others.

    Attributes:
        dims_out: where results have the batch.
        elements, params: types of operands and parameters of one application.
    """

    dims_out: tuple[int, ...]
    elements: tuple[ShapedArray, ...]
    params: Mapping[str, Any]


class _Found:
    """The factors that were found, so far."""

    def __init__(self, avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]) -> None:
        self.operands: list[list[int | None]] = [[None] * a.ndim for a in avals]
        self.results: list[list[int | None]] = [[None] * a.ndim for a in out_avals]
        self.sizes: list[int] = []

    def add(self, dims: Dims, dims_out: Dims, size: int) -> bool:
        """A factor of dimensions that are of no other yet; whether they are."""
        places = [*zip((*self.operands, *self.results), (*dims, *dims_out), strict=True)]
        if any(d is not None and own[d] is not None for own, d in places):
            return False
        for own, d in places:
            if d is not None:
                own[d] = len(self.sizes)
        self.sizes.append(size)
        return True

    def add_those_of(self, batch: _Batch, dims: Dims, inner: Factors | None) -> None:
        """The factors of each element of a batch, too."""
        for number, size in enumerate(inner.sizes if inner is not None else ()):
            assert inner is not None
            sides = zip((*inner.operands, *inner.results), (*dims, *batch.dims_out), strict=True)
            places = [_around(own.index(number) if number in own else None, d) for own, d in sides]
            self.add(tuple(places[: len(dims)]), tuple(places[len(dims) :]), size)

    def factors(self) -> Factors | None:
        """All of them."""
        if not self.sizes:
            return None
        return Factors(tuple(map(tuple, self.operands)), tuple(map(tuple, self.results)), tuple(self.sizes))


def _around(dim: int | None, batch: int | None) -> int | None:
    """A dimension of an element, counted with the batch's."""
    return dim if dim is None or batch is None or dim < batch else dim + 1


def _choices(
    operands: Sequence[Sequence[int | None]], avals: Sequence[ShapedArray], first: int, dim: int
) -> Iterator[Dims]:
    """Dimensions of all operands that may be one batch with that of the first that has it, likelier ones first."""
    size, left = avals[first].shape[dim], dim - avals[first].ndim

    def of(k: int) -> list[int | None]:
        if k <= first:
            return [dim if k == first else None]
        free = [d for d, n in enumerate(avals[k].shape) if n == size and operands[k][d] is None]
        free.sort(key=lambda d: (d != dim, d - avals[k].ndim != left))
        return [*free, None]

    return itertools.islice(itertools.product(*map(of, range(len(avals)))), _CHOICES)


def _batched(
    primitive: Primitive,
    avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    params: Mapping[str, Any],
    dims: Dims,
    size: int,
) -> _Batch | None:
    """What an application is a batch of, which operands have at some dimensions; None if it is none that rules tell."""
    elements = tuple([_without(a, d) for a, d in zip(avals, dims, strict=True)])
    for given in _parameters(params, min(d for d in dims if d is not None)):
        try:
            first = _applied(primitive, elements, given, params, dims, size)
            if first is None or any(d is None for d in first):
                continue
            shapes = [_without(a, d) for a, d in zip(out_avals, first, strict=True)]
            if [(a.shape, a.dtype) for a in shapes] != [
                (a.shape, a.dtype) for a in primitive.abstract(elements, dict(given))
            ]:
                continue
            # Parts have other sizes: what holds for this one only is no batch.
            if all(_applied(primitive, elements, given, params, dims, n) == first for n in (1, size + 1)):
                if not _is_of_scalars(primitive, elements, given):
                    continue
                return _Batch(first, elements, given)  # type: ignore[arg-type]
        except Exception:  # rules need not take what is only guessed
            continue
    return None


def _is_of_scalars(primitive: Primitive, elements: Sequence[ShapedArray], params: Mapping[str, Any]) -> bool:
    """Whether a batch of scalars is computed one by one, too: rules may promise it and be meant for rows.

    What normalises along an axis, say, has none there, and its vmap rule gives it that of the batch.
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
    return aval if dim is None else aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])


def _parameters(params: Mapping[str, Any], dim: int) -> Iterator[Mapping[str, Any]]:
    """Parameters that an element of a batch might have: the same, or with axes after the batch's counted without it."""
    yield params
    moved = {name: _moved(value, dim) for name, value in params.items()}
    if moved != dict(params):
        yield moved


def _moved(value: Any, dim: int) -> Any:
    if type(value) is int:
        return value - 1 if value > dim else value
    if type(value) is tuple and value and all(type(x) is int for x in value):
        return tuple(x - 1 if x > dim else x for x in value)
    return value


def _applied(
    primitive: Primitive,
    elements: Sequence[ShapedArray],
    given: Mapping[str, Any],
    wanted: Mapping[str, Any],
    dims: Dims,
    size: int,
) -> tuple[int | None, ...] | None:
    """Batching dimensions of the results, where the batch of applications is one application to the operands."""
    dims_out: list[int | None] = []

    def alone(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **given)
        return list(out) if primitive.multiple_results else [out]

    def flat(*args: Any) -> list[Any]:
        outs, found = batch_flat(alone, size, args, dims)
        dims_out.extend(found)
        return list(outs)

    avals = [unmapped_aval(size, d, a) for d, a in zip(dims, elements, strict=True)]
    jaxpr = stage_closed(flat, avals).jaxpr
    if len(jaxpr.eqns) != 1 or jaxpr.constvars:
        return None
    (eqn,) = jaxpr.eqns
    same = eqn.primitive is primitive and list(eqn.invars) == list(jaxpr.invars)
    if not same or dict(eqn.params) != dict(wanted) or list(eqn.outvars) != list(jaxpr.outvars):
        return None
    return tuple(dims_out)
