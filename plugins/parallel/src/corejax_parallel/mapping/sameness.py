"""Analyse which results of a program may differ from element to element of a named axis."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, JaxprEqn, Primitive, ShapedArray, Var, batch_jaxpr, stage_closed
from corejax.extend.messages import clears_cache
from corejax.extend.programs import subjaxprs
from corejax.extend.transforms import axes_in_scope


def differing(closed: ClosedJaxpr, size: int, name: Any, args_differ: Sequence[bool]) -> list[bool]:
    """Return whether each result of a program may differ along an axis.

    A result of an operation differs if an operand does. For collectives over the axis, and for operations with
    programs, the vmap rule decides: results that it does not map are the same.

    Args:
        closed: the program.
        size: size of the axis.
        name: name of the axis.
        args_differ: whether each argument differs along the axis.
    """
    different = {v for v, differs in zip(closed.jaxpr.invars, args_differ, strict=True) if differs}
    for eqn in closed.jaxpr.eqns:
        operands = tuple([type(x) is Var and x in different for x in eqn.invars])
        if name in eqn.axis_names or (any(operands) and any(True for _ in subjaxprs(eqn.params))):
            results = _by_rule(eqn, operands, size, name)
        else:
            results = (any(operands),) * len(eqn.outvars)
        different.update(v for v, differs in zip(eqn.outvars, results, strict=True) if differs)
    return [type(x) is Var and x in different for x in closed.jaxpr.outvars]


def _by_rule(eqn: JaxprEqn, operands: tuple[bool, ...], size: int, name: Any) -> tuple[bool, ...]:
    avals = tuple([x.aval for x in eqn.invars])
    mapped = _mapped if any(True for _ in subjaxprs(eqn.params)) else _mapped_cached
    return mapped(eqn.primitive, tuple(eqn.params.items()), avals, operands, size, name, axes_in_scope())


def _mapped(
    primitive: Primitive,
    params: tuple[tuple[str, Any], ...],
    avals: Sequence[ShapedArray],
    operands: tuple[bool, ...],
    size: int,
    name: Any,
    axes: Any,
) -> tuple[bool, ...]:
    """Return which results of an operation are mapped if these operands are; `axes` in scope is part of the key."""

    def alone(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **dict(params))
        return list(out) if primitive.multiple_results else [out]

    _, dims = batch_jaxpr(stage_closed(alone, avals), size, [0 if x else None for x in operands], axis_name=name)
    return tuple([d is not None for d in dims])


_mapped_cached = functools.lru_cache(maxsize=1024)(_mapped)  # for collectives, which depend on the types only
clears_cache(_mapped_cached.cache_clear)
