"""Exported programs over several devices: which device has which part, by number, for they are another process's.

Shardings of arguments and results are constraints inside of the program, so that it lies alike wherever it is called.
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
    """How a program is laid out over devices.

    Attributes:
        devices: in the order in which the program numbers them; empty: any.
        count: how many there are.
        ins, outs: a sharding for each argument and each result, None: the compiler chooses; empty: of none.
    """

    devices: tuple[Any, ...] = ()
    count: int = 1
    ins: tuple[Any, ...] = ()
    outs: tuple[Any, ...] = ()

    def tiles(self, avals: Sequence[ShapedArray], *, of_results: bool = False) -> tuple[Tiles | None, ...]:
        """Which device has which part of each argument, or result."""
        given = self.outs if of_results else self.ins
        known = [concrete(s, a.ndim) for s, a in zip(given, avals, strict=True)] if given else [None] * len(avals)
        return tuple(None if s is None else s.tiles(a.ndim) for s, a in zip(known, avals, strict=True))

    def of_pullback(self, active: Sequence[bool], smooth: Sequence[bool]) -> Layout:
        """Of the program `(arguments, cotangents) -> cotangents`, of what has such."""
        if not self.ins or not self.outs:
            return self._replace(ins=(), outs=())
        given = tuple(s for s, flag in zip(self.outs, smooth, strict=True) if flag)
        pulled = tuple(s for s, flag in zip(self.ins, active, strict=True) if flag)
        return self._replace(ins=(*self.ins, *given), outs=pulled)


def layout_of(closed: ClosedJaxpr, options: CompileOptions, consts: int) -> Layout:
    """Return the layout of a program that was lowered with these options; so many constants lead its arguments."""
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
    """The program with its arguments and results laid out."""
    if all(s is None for s in (*layout.ins, *layout.outs)):
        return closed

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(closed, [constrain(x, s) for x, s in zip(args, layout.ins, strict=True)])
        return [constrain(x, s) for x, s in zip(outs, layout.outs, strict=True)]

    return stage_closed(flat, closed.in_avals)


def over_mesh(name: str, mesh: Any, count: int, tiles: Sequence[Tiles | None]) -> tuple[Sharding | None, ...]:
    """Shardings with these tiles over the devices of a mesh; by its axes, where they say it.

    Raises:
        ValueError: it is of another number of devices.
    """
    if mesh.size != count:
        raise ValueError(f"the exported function {name} is for {count} devices, and {mesh} has {mesh.size}")
    like = whole_over(mesh).like
    return tuple(None if t is None else like(t) for t in tiles)


def tiles_text(tiles: Tiles | None) -> list[Any] | None:
    """Of a header: shape and positions."""
    return None if tiles is None else [list(tiles.shape), tiles.reshape(-1).tolist()]


def tiles_of_text(written: Sequence[Any] | None) -> Tiles | None:
    """What `tiles_text` has made so."""
    return None if written is None else np.array(written[1], np.int64).reshape(written[0])
