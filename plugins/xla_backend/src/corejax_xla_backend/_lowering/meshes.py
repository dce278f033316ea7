"""The meshes that a module names, and shardings over them, as text of the Shardy dialect.

A mesh is what has `shape_tuple` (name and size of each axis) and `device_tuple` (the devices, row by row; empty: any),
a sharding what has a `mesh` and `dimension_axes(ndim)`. See https://openxla.org/shardy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax_xla_backend._lowering.custom_calls import quoted

SYMBOL = "mesh"  # of the first; others have a number after a dot, which no function has


class Meshes:
    """The meshes of one module.

    Args:
        devices: of the program, in order; empty: any.

    Attributes:
        lines: their declarations.
        devices: of the program; empty: any.
        count: how many devices the program is for.
        like: gives the sharding for tiles that the compiler chose, of a program over several devices.
        manual: whether operations that are written now are each device's own: in a part that is manual over all axes.
    """

    like: Callable[[Any], Any] | None = None
    manual = False

    def __init__(self, devices: tuple[Any, ...]) -> None:
        self.lines: list[str] = []
        self.count = max(len(devices), 1)
        self.devices = devices
        self._symbols: dict[tuple[Any, ...], str] = {}
        self._declared: dict[str, str] = {}

    def symbol(self, mesh: Any) -> str:
        """The symbol of a mesh, declared once: `@mesh`.

        Raises:
            ValueError: it is of other devices than the program.
        """
        axes, positions = tuple(mesh.shape_tuple), self._positions(mesh)
        found = self._symbols.get((axes, positions))
        if found is None:
            listed = ", ".join(f"{quoted(str(name))}={size}" for name, size in axes)
            order = "" if positions is None else f", device_ids=[{', '.join(map(str, positions))}]"
            found = self._symbols[axes, positions] = self.declared(f"<[{listed}]{order}>")
        return found

    def declared(self, text: str) -> str:
        """The symbol of a mesh that is text already, over the program's devices; declared once for each text."""
        found = self._declared.get(text)
        if found is None:
            found = f"@{SYMBOL}.{len(self._declared)}" if self._declared else f"@{SYMBOL}"
            self._declared[text] = found
            self.lines.append(f"  sdy.mesh {found} = {text}")
        return found

    def _positions(self, mesh: Any) -> tuple[int, ...] | None:
        """Which devices of the program it is of, row by row; None for all, in their order."""
        size, given = math.prod(n for _, n in mesh.shape_tuple), tuple(mesh.device_tuple)
        if not self.devices:
            self.count = max(self.count, size)
            return None
        if not given and size == len(self.devices):
            return None
        place = {device: i for i, device in enumerate(self.devices)}
        if len(given) != len(place) or any(d not in place for d in given):
            ids = [d.id for d in self.devices]
            raise ValueError(
                f"a program runs on the devices of all meshes in it: {mesh} is of {[d.id for d in given] or size}, and "
                f"arguments or other meshes are of {ids}"
            )
        positions = tuple(place[d] for d in given)
        return None if positions == tuple(range(len(place))) else positions

    def numbers(self, mesh: Any) -> np.ndarray[Any, Any]:
        """The numbers that the program's devices have in it, in the order of the mesh."""
        positions = self._positions(mesh)
        return np.arange(mesh.size) if positions is None else np.asarray(positions)

    def sharding(self, sharding: Any, ndim: int, closed: bool = True) -> str:
        """Text of a sharding of values of `ndim` dimensions: `<@mesh, [{"x"}, {}]>`, `<@mesh, [{"x", ?}, {?}]>`."""
        return f"<{self.symbol(sharding.mesh)}, {dimensions_text(sharding.dimension_axes(ndim), closed)}>"

    @property
    def divides(self) -> bool:
        """Whether the compiler divides operations that are written now among devices."""
        return self.count > 1 and not self.manual

    def whole(self, ndim: int, dims: Iterable[int] | None = None) -> str:
        """Text of the sharding of values that every device has whole, or whole along some dimensions.

        Empty where there are no other devices to have them.
        """
        together = range(ndim) if dims is None else tuple(dims)
        if not self.divides or not together:
            return ""
        mesh = next(iter(self._declared.values()), None) or self.declared(f'<["all"={self.count}]>')
        return f"<{mesh}, {dimensions_text([() if i in together else None for i in range(ndim)])}>"

    def of_call_back(self, results: int) -> str:
        """What is said of an operation that calls Python: the first device calls for all, in manual parts each does."""
        if self.manual or (self.count == 1 and not self._symbols):
            return ""
        line = f"  sdy.mesh @{SYMBOL}.first = <[], device_ids=[0]>"
        if line not in self.lines:
            self.lines.append(line)
        each = f"<@{SYMBOL}.first, []>"
        return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join([each] * max(results, 1))}]>"

    def attribute(self, sharding: Any, ndim: int) -> str:
        """What is said of an argument or a result that lies as a sharding says; nothing for None."""
        return "" if sharding is None else f"sdy.sharding = #sdy.sharding{self.sharding(sharding, ndim)}"


def dimensions_text(axes: Sequence[Sequence[Any] | None], closed: bool = True) -> str:
    """The axes that each dimension is split over, None where the compiler may choose: `[{"x"}, {?}]`."""
    dims = [[*map(quoted, map(str, names or ()))] + ["?"] * (names is None or not closed) for names in axes]
    return "[" + ", ".join("{" + ", ".join(names) + "}" for names in dims) + "]"
