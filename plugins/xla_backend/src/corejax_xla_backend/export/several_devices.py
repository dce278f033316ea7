"""Exported programs over several devices.

Artifacts identify devices by number, because the loading process has other devices. The shardings of arguments and
results become constraints inside the program, so that every call has the same shardings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, inline_closed, stage_closed
from corejax.extend.devices import CompileOptions
from corejax_xla_backend._several_devices import concrete, named_places, whole_over
from corejax_xla_backend.sharding import Sharding
from corejax_xla_backend.sharding_constraint import constrain

Tiles = np.ndarray[Any, Any]


class Layout(NamedTuple):
    """How a program is sharded over devices.

    Attributes:
        devices: the devices, in the order in which the program numbers them; empty for any devices.
        count: number of devices.
        ins, outs: a sharding for each argument and each result, or None if the compiler chooses it; empty if all are
            None.
    """

    devices: tuple[Any, ...] = ()
    count: int = 1  # type: ignore[assignment]  # hides the method of tuples
    ins: tuple[Any, ...] = ()
    outs: tuple[Any, ...] = ()

    def tiles(self, avals: Sequence[ShapedArray], *, of_results: bool = False) -> tuple[Tiles | None, ...]:
        """Return the tiles of each argument's sharding, or of each result's."""
        places = self.outs if of_results else self.ins
        known = [concrete(s, a.ndim) for s, a in zip(places, avals, strict=True)] if places else [None] * len(avals)
        return tuple(None if s is None else s.tiles(a.ndim) for s, a in zip(known, avals, strict=True))

    def of_pullback(self, active: Sequence[bool], smooth: Sequence[bool]) -> Layout:
        """Return the layout of the pullback `(*arguments, *result cotangents) -> argument cotangents`.

        Args:
            active: whether each argument has a cotangent.
            smooth: whether each result has a cotangent.
        """
        if not self.ins or not self.outs:
            return self._replace(ins=(), outs=())
        cts = tuple(s for s, flag in zip(self.outs, smooth, strict=True) if flag)
        cts_in = tuple(s for s, flag in zip(self.ins, active, strict=True) if flag)
        return self._replace(ins=(*self.ins, *cts), outs=cts_in)


def layout_of(closed: ClosedJaxpr, options: CompileOptions, consts: int) -> Layout:
    """Return the layout of a program lowered with these options, without its leading `consts` constants."""
    named = named_places(closed, options)
    sizes = [getattr(x, "mesh", x).size for x in named if not isinstance(x, Sharding) or hasattr(x.mesh, "size")]
    count = len(options.devices) or max(sizes, default=1)
    if count == 1:
        return Layout()
    ins, outs = options.in_shardings[consts:], options.out_shardings
    return Layout(
        options.devices,
        count,
        ins or (None,) * (len(closed.in_avals) - consts),
        outs or (None,) * len(closed.out_avals),
    )


def constrained(closed: ClosedJaxpr, layout: Layout) -> ClosedJaxpr:
    """Return the program with the layout's shardings as constraints on its arguments and results."""
    if all(s is None for s in (*layout.ins, *layout.outs)):
        return closed

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(closed, [constrain(x, s) for x, s in zip(args, layout.ins, strict=True)])
        return [constrain(x, s) for x, s in zip(outs, layout.outs, strict=True)]

    return stage_closed(flat, closed.in_avals)


def over_mesh(name: str, mesh: Any, count: int, tiles: Sequence[Tiles | None]) -> tuple[Sharding | None, ...]:
    """Return shardings with these tiles over the devices of a mesh, by the mesh's axes if they can express the tiles.

    Raises:
        ValueError: the mesh does not have `count` devices.
    """
    if mesh.size != count:
        raise ValueError(f"the exported function {name} is for {count} devices, but {mesh} has {mesh.size}")
    like = whole_over(mesh).like
    return tuple(None if t is None else like(t) for t in tiles)


def tiles_text(tiles: Tiles | None) -> list[Any] | None:
    """Convert tiles to JSON for an artifact's header: a list of the shape and the positions."""
    return None if tiles is None else [list(tiles.shape), tiles.reshape(-1).tolist()]


def tiles_of_text(written: Sequence[Any] | None) -> Tiles | None:
    """Convert the JSON of `tiles_text` back to tiles."""
    return None if written is None else np.array(written[1], np.int64).reshape(written[0])
