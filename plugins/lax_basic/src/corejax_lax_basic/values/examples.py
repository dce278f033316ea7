"""Examples of the primitives of this package, from which checks of their rules start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Example, ShapedArray
from corejax.extend.types import ValueType
from corejax_lax_basic._base.samples import F32, typed
from corejax_lax_basic.values.pack import pack_p, unpack_p

Bind = Callable[..., Any]


class RowAndMatrix(ValueType):
    """A matrix with a row beside it, stored in arrays of two shapes; the type is its own tangent type."""

    def parts(self) -> tuple[ShapedArray, ...]:
        """Return the types of the row and of the matrix."""
        *batch, _, columns = self.shape
        return ShapedArray((*batch, 1, columns), self.dtype), ShapedArray(self.shape, self.dtype)


_TYPE = RowAndMatrix((2, 3), F32)


def _packed(bind: Bind) -> Bind:
    return lambda *parts: unpack_p.bind(*bind(*parts))


def _unpacked(bind: Bind) -> Bind:
    def apply(*parts: Any) -> Any:
        dtype = parts[0].dtype
        return bind(pack_p.bind(*parts, type=_TYPE.update(dtype=dtype)))

    return apply


def _rearranged(bind: Bind) -> Bind:
    return lambda *parts: unpack_p.bind(*bind(pack_p.bind(*parts, type=_TYPE.update(dtype=parts[0].dtype))))


def _chosen(bind: Bind) -> Bind:
    def apply(which: Any, *parts: Any) -> Any:
        value = pack_p.bind(*parts, type=_TYPE.update(dtype=parts[0].dtype))
        twice = pack_p.bind(*(part + part for part in parts), type=_TYPE.update(dtype=parts[0].dtype))
        return unpack_p.bind(*bind(which, value, twice))

    return apply


NAMED: dict[str, Callable[[], list[Example]]] = {
    "pack": lambda: [Example((typed(1, 3), typed(2, 3)), {"type": _TYPE}, within=_packed)],
    "unpack": lambda: [Example((typed(1, 3), typed(2, 3)), within=_unpacked)],
    "rearranged": lambda: [
        *(
            Example((typed(1, 3), typed(2, 3)), {"name": name, "args": args}, within=_rearranged)
            for name, args in (("broadcast_axis", (2, 0)), ("stack", (0,)))
        ),
        Example((typed(dtype=bool), typed(1, 3), typed(2, 3)), {"name": "choose", "args": ()}, within=_chosen),
    ],
}
