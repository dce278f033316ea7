"""Scans over values of value types, and with such values as stacked results: scans over the arrays that store them.

Carries and constants stay whole, because no operation divides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, Primitive, ShapedArray, get_aval, inline_closed, split_list, stage_closed
from corejax.extend.transforms import structural
from corejax.extend.types import ValueType


def divides_values(jaxpr: ClosedJaxpr, num_carry: int, num_consts: int) -> bool:
    """Return whether a scan is over values of value types, or stacks such values."""
    elements = (*jaxpr.in_avals[num_consts + num_carry :], *jaxpr.out_avals[num_carry:])
    return any(isinstance(aval, ValueType) for aval in elements)


def scan_of_parts(
    scan_p: Primitive, args: Sequence[Any], *, jaxpr: ClosedJaxpr, num_carry: int, num_consts: int, **params: Any
) -> list[Any]:
    """Return the results of a scan, computed by a scan over the parts of values."""
    from corejax_lax_basic.lax import pack, unpack

    whole = num_consts + num_carry
    x_avals, y_avals = jaxpr.in_avals[whole:], jaxpr.out_avals[num_carry:]

    def parts(values: Sequence[Any]) -> list[Any]:
        return [p for x in values for p in (unpack(x) if isinstance(get_aval(x), ValueType) else (x,))]

    def packed(avals: Sequence[ShapedArray], arrays: Sequence[Any]) -> list[Any]:
        each = iter(arrays)
        return [pack(a, *(next(each) for _ in a.parts())) if isinstance(a, ValueType) else next(each) for a in avals]

    def body(*operands: Any) -> list[Any]:
        outs = inline_closed(jaxpr, [*operands[:whole], *packed(x_avals, operands[whole:])])
        return [*outs[:num_carry], *parts(outs[num_carry:])]

    flat = [p for a in x_avals for p in (a.parts() if isinstance(a, ValueType) else (a,))]
    of_parts = stage_closed(body, [*jaxpr.in_avals[:whole], *flat])
    values, xs = split_list(args, [whole])
    xs = [_moved(p, axis, 0) for x in xs for p, axis in zip(parts([x]), _axes(get_aval(x)), strict=True)]
    params["linear"] = (False,) * (whole + len(xs))
    outs = scan_p.bind(*values, *xs, jaxpr=of_parts, num_carry=num_carry, num_consts=num_consts, **params)
    carry, ys = split_list(outs, [num_carry])
    stacked = [a.update(shape=(params["length"], *a.shape)) for a in y_avals]
    axes = [axis for aval in stacked for axis in _axes(aval)]
    return [*carry, *packed(stacked, [_moved(y, 0, axis) for y, axis in zip(ys, axes, strict=True)])]


def _axes(aval: ShapedArray) -> Sequence[int]:
    """Return the axis of each part that the first axis of a value is stored in."""
    return aval.part_axes(0) if isinstance(aval, ValueType) else (0,)


def _moved(x: Any, source: int, destination: int) -> Any:
    return x if source == destination else structural.move_axis(x, source, destination)
