"""rearranged: an operation that moves, repeats or chooses elements, on values of value types.

rearranged[name, args] : (type, ...) -> type

The result is made by the same operation on the parts. It is a primitive because its tangent is the operation on the
tangents, which may be of another type than the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Primitive, get_aval, jvp_rules, zeros_like
from corejax.extend.transforms import structural
from corejax.extend.types import ValueType
from corejax_lax_basic.values.pack import pack_p, unpack_p

__all__ = ["choose", "rearranged_p"]


def _type(x: Any) -> ValueType:
    return get_aval(x)  # type: ignore[return-value]  # of a value of a value type


def _by_parts(operation: Callable[..., Any], type: ValueType, *values: Any) -> Any:
    """Return the value of a type with the parts `operation(i, *the i-th parts of the values)`."""
    columns = zip(*map(unpack_p.bind, values), strict=True)
    return pack_p.bind(*(operation(i, *parts) for i, parts in enumerate(columns)), type=type)


def _move_axis(x: Any, source: int, destination: int) -> Any:
    type, shape = _type(x), list(x.shape)
    shape.insert(destination, shape.pop(source))
    moved = type.update(shape=shape)
    old, new = type.part_axes(source), moved.part_axes(destination)
    return _by_parts(lambda i, part: structural.move_axis(part, old[i], new[i]), moved, x)


def _broadcast_axis(x: Any, size: int, axis: int) -> Any:
    batched = _type(x).update(shape=(*x.shape[:axis], size, *x.shape[axis:]))
    axes = batched.part_axes(axis)
    return _by_parts(lambda i, part: structural.broadcast_axis(part, size, axes[i]), batched, x)


def _index_axis(x: Any, index: int, axis: int) -> Any:
    type = _type(x)
    axes, element = type.part_axes(axis), type.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :]))
    return _by_parts(lambda i, part: structural.index_axis(part, index, axes[i]), element, x)


def _stack(*args: Any) -> Any:
    *xs, axis = args
    type = _type(xs[0])
    stacked = type.update(shape=(*type.shape[:axis], len(xs), *type.shape[axis:]))
    axes = stacked.part_axes(axis)
    return _by_parts(lambda i, *parts: structural.stack(parts, axes[i]), stacked, *xs)


def _choose(which: Any, *cases: Any) -> Any:
    type = _type(cases[0])
    axes = type.part_axes(0) if get_aval(which).ndim else (0,) * len(type.parts())

    def chosen(i: int, *parts: Any) -> Any:
        if axes[i] == 0:
            return choose(which, *parts)
        out = choose(which, *(structural.move_axis(part, axes[i], 0) for part in parts))
        return structural.move_axis(out, 0, axes[i])

    return _by_parts(chosen, type, *cases)


def choose(which: Any, *cases: Any) -> Any:
    """Return for each element along the leading axes the case that `which` selects.

    Args:
        which: booleans, for two cases, or indices of cases; shape (), or (n,) for batches.
        *cases: arrays or values of one type. Their first axis is that of `which`, unless they are scalars.
    """
    from corejax_lax_basic.elementwise.select import select_n
    from corejax_lax_basic.shape.broadcasting import broadcast_in_dim

    aval, ndim = get_aval(cases[0]), get_aval(which).ndim
    if isinstance(aval, ValueType):
        return rearranged_p.bind(which, *cases, name="choose", args=())
    if aval.ndim > ndim:
        which = broadcast_in_dim(which, aval.shape, range(ndim))
    return select_n(which, *cases)


_ON_VALUES: dict[str, Callable[..., Any]] = {
    "move_axis": _move_axis,
    "broadcast_axis": _broadcast_axis,
    "index_axis": _index_axis,
    "stack": _stack,
    "choose": _choose,
}


def _on_tangents(name: str, xs: Sequence[Any], args: tuple[int, ...]) -> Any:
    if name == "choose":
        return choose(*xs)
    return structural.stack(xs, *args) if name == "stack" else getattr(structural, name)(*xs, *args)


rearranged_p = Primitive(
    "rearranged",
    decomposition=lambda *xs, name, args: _ON_VALUES[name](*xs, *args),
    doc="Move, repeat or choose elements of values of value types.",
)


@jvp_rules.register(rearranged_p, symbolic_zeros=True)
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str, args: tuple[int, ...]) -> tuple[Any, Any]:
    indices = 1 if name == "choose" else 0
    moved = [zeros_like(x) if t is None else t for x, t in zip(primals[indices:], tangents[indices:], strict=True)]
    out = rearranged_p.bind(*primals, name=name, args=args)
    return out, _on_tangents(name, [*primals[:indices], *moved], args)
