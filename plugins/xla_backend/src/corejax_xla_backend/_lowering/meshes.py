"""The meshes of a module, and shardings over them, as text of the Shardy dialect (https://openxla.org/shardy).

A mesh is any object with `shape_tuple` (name and size of each axis) and `device_tuple` (the devices, row by row; empty
for any devices). A sharding is any object with a `mesh` and a method `dimension_axes(ndim)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax_xla_backend._lowering.custom_calls import quoted

SYMBOL = "mesh"  # the first mesh; others have a number after a dot, which no function's symbol has


class Meshes:
    """The meshes of one module.

    Args:
        devices: the program's devices, in order; empty for any devices.

    Attributes:
        lines: the declarations of the meshes.
        devices: the program's devices; empty for any devices.
        count: the number of the program's devices.
        like: a function that converts tiles that the compiler chose to a sharding; None for a program on one device.
        manual: whether each device runs the next operations by itself, in a region that is manual over all axes.
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
        """Return the symbol of a mesh, `@mesh`; each mesh is declared once.

        Raises:
            ValueError: the mesh has other devices than the program.
        """
        axes, positions = tuple(mesh.shape_tuple), self._positions(mesh)
        symbol = self._symbols.get((axes, positions))
        if symbol is None:
            listed = ", ".join(f"{quoted(str(name))}={size}" for name, size in axes)
            order = "" if positions is None else f", device_ids=[{', '.join(map(str, positions))}]"
            symbol = self._symbols[axes, positions] = self.declared(f"<[{listed}]{order}>")
        return symbol

    def declared(self, text: str) -> str:
        """Return the symbol of a mesh from its text, over the program's devices; each text is declared once."""
        symbol = self._declared.get(text)
        if symbol is None:
            symbol = f"@{SYMBOL}.{len(self._declared)}" if self._declared else f"@{SYMBOL}"
            self._declared[text] = symbol
            self.lines.append(f"  sdy.mesh {symbol} = {text}")
        return symbol

    def _positions(self, mesh: Any) -> tuple[int, ...] | None:
        """Return the positions of a mesh's devices among the program's, row by row; None for all in their order."""
        size, devices = math.prod(n for _, n in mesh.shape_tuple), tuple(mesh.device_tuple)
        if not self.devices:
            self.count = max(self.count, size)
            return None
        if not devices and size == len(self.devices):
            return None
        place = {device: i for i, device in enumerate(self.devices)}
        if len(devices) != len(place) or any(d not in place for d in devices):
            ids = [d.id for d in self.devices]
            raise ValueError(
                f"all meshes and arguments of a program must have the same devices: {mesh} has "
                f"{[d.id for d in devices] or size}, arguments or other meshes have {ids}"
            )
        positions = tuple(place[d] for d in devices)
        return None if positions == tuple(range(len(place))) else positions

    def numbers(self, mesh: Any) -> np.ndarray[Any, Any]:
        """Return the program's numbers of a mesh's devices, in the order of the mesh."""
        positions = self._positions(mesh)
        return np.arange(mesh.size) if positions is None else np.asarray(positions)

    def sharding(self, sharding: Any, ndim: int, closed: bool = True) -> str:
        """Return the text of a sharding of `ndim` dimensions: `<@mesh, [{"x"}, {}]>`, `<@mesh, [{"x", ?}, {?}]>`."""
        return f"<{self.symbol(sharding.mesh)}, {dimensions_text(sharding.dimension_axes(ndim), closed)}>"

    @property
    def divides(self) -> bool:
        """Whether the compiler divides the next operations among devices."""
        return self.count > 1 and not self.manual

    def replicated_sharding(self, ndim: int, dims: Iterable[int] | None = None) -> str:
        """Return the text of a sharding that replicates some dimensions (by default all) of a value.

        The text is empty if the compiler does not divide the operations.
        """
        replicated = range(ndim) if dims is None else tuple(dims)
        if not self.divides or not replicated:
            return ""
        mesh = next(iter(self._declared.values()), None) or self.declared(f'<["all"={self.count}]>')
        return f"<{mesh}, {dimensions_text([() if i in replicated else None for i in range(ndim)])}>"

    def callback_sharding(self, results: int) -> str:
        """Return the sharding attribute of an operation that calls Python: the first device calls for all.

        In manual regions each device calls, and the attribute is empty.
        """
        if self.manual or (self.count == 1 and not self._symbols):
            return ""
        line = f"  sdy.mesh @{SYMBOL}.first = <[], device_ids=[0]>"
        if line not in self.lines:
            self.lines.append(line)
        each = f"<@{SYMBOL}.first, []>"
        return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join([each] * max(results, 1))}]>"

    def attribute(self, sharding: Any, ndim: int) -> str:
        """Return the attribute of an argument or result with a sharding; empty for None."""
        return "" if sharding is None else f"sdy.sharding = #sdy.sharding{self.sharding(sharding, ndim)}"


def dimensions_text(axes: Sequence[Sequence[Any] | None], closed: bool = True) -> str:
    """Return the text of the axes that each dimension is split over, None for the compiler's choice: `[{"x"}, {?}]`."""
    dims = [[*map(quoted, map(str, names or ()))] + ["?"] * (names is None or not closed) for names in axes]
    return "[" + ", ".join("{" + ", ".join(names) + "}" for names in dims) + "]"
