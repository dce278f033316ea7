"""Which results of a program differ from element to element of a named axis."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, JaxprEqn, Primitive, ShapedArray, Var, batch_jaxpr, stage_closed
from corejax.extend.messages import clears_cache
from corejax.extend.programs import subjaxprs
from corejax.extend.transforms import axes_in_scope


def differing(closed: ClosedJaxpr, size: int, name: Any, given: Sequence[bool]) -> list[bool]:
    """Whether each result of a program may differ along an axis.

    What is computed of values that differ does; of collectives over the axis, and of programs in it, their vmap rules
    know: what is not mapped then is the same.

    Args:
        closed: the program.
        size: length of the axis.
        name: the axis's.
        given: whether each argument differs.
    """
    different = {v for v, differs in zip(closed.jaxpr.invars, given, strict=True) if differs}
    for eqn in closed.jaxpr.eqns:
        operands = tuple([type(x) is Var and x in different for x in eqn.invars])
        if name in eqn.axis_names or (any(operands) and any(True for _ in subjaxprs(eqn.params))):
            found = _by_rule(eqn, operands, size, name)
        else:
            found = (any(operands),) * len(eqn.outvars)
        different.update(v for v, differs in zip(eqn.outvars, found, strict=True) if differs)
    return [type(x) is Var and x in different for x in closed.jaxpr.outvars]


def _by_rule(eqn: JaxprEqn, operands: tuple[bool, ...], size: int, name: Any) -> tuple[bool, ...]:
    avals = tuple([x.aval for x in eqn.invars])
    mapped = _mapped if any(True for _ in subjaxprs(eqn.params)) else _mapped_before
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
    """Which results of one operation are mapped, if these operands are; `axes` are those in scope."""

    def alone(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **dict(params))
        return list(out) if primitive.multiple_results else [out]

    _, dims = batch_jaxpr(stage_closed(alone, avals), size, [0 if x else None for x in operands], axis_name=name)
    return tuple([d is not None for d in dims])


_mapped_before = functools.lru_cache(maxsize=1024)(_mapped)  # of a collective it depends on the types alone
clears_cache(_mapped_before.cache_clear)
