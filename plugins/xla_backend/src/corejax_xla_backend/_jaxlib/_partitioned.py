"""Programs over several devices."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import ShapedArray

from ._buffers import block_until_ready
from ._classes import Buffer, Device
from ._executable import Executable
from ._probe import xla_client
from ._spread import HloSharding, place_parts, placement, tiles_of_hlo


class Partitions(NamedTuple):
    """How a program is partitioned over devices.

    Attributes:
        devices: the devices, in the order in which the shardings number them.
        inputs: a sharding for each input, or None if the compiler chooses it.
        outputs: a sharding for each output, or None if the compiler chooses it.
        ranks: the number of dimensions of each input.
        like: function from tiles that the compiler chose to a sharding.
        before_runs: called before the first run, and possibly before others.
    """

    devices: tuple[Device, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    ranks: tuple[int, ...]
    like: Callable[[np.ndarray[Any, Any]], Any]
    before_runs: Callable[[], None] | None = None

    def complete(self, options: Any) -> Any:
        """Set the fields of the compile options that concern partitioning, and return the options."""
        build = options.executable_build_options
        build.num_replicas, build.num_partitions = 1, len(self.devices)
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_parameters = [x is None for x in self.inputs] or [False]
        build.allow_spmd_sharding_propagation_to_output = [x is None for x in self.outputs] or [False]
        return options

    def shardings(self, loaded: Any, out_avals: Sequence[ShapedArray]) -> tuple[list[Any], list[Any]]:
        """Return the shardings of a compiled program's inputs and outputs: the given ones, or the compiler's choice."""
        ranks = [len(aval.shape) for aval in out_avals]
        return (
            self._with_chosen(self.inputs, loaded.get_parameter_shardings(), self.ranks),
            self._with_chosen(self.outputs, loaded.get_output_shardings(), ranks),
        )

    def _with_chosen(self, requested: Sequence[Any], compiled: Any, ranks: Sequence[int]) -> list[Any]:
        count = len(requested)
        chosen = [HloSharding.from_proto(x) for x in compiled[:count]] if compiled else [None] * count
        return [
            self.like(tiles_of_hlo(hlo, ndim, len(self.devices))) if sharding is None else sharding
            for sharding, hlo, ndim in zip(requested, chosen, ranks, strict=True)
        ]

    def executable(self, loaded: Any, out_avals: Sequence[ShapedArray], name: str) -> Executable:
        """Return the executable of the program that jaxlib has loaded."""
        return PartitionedExecutable(loaded, out_avals, self, name=name)


_COLLECTIVES = re.compile(
    r" (all-gather|all-reduce|reduce-scatter|all-to-all|ragged-all-to-all|collective-\w+)(-start)?\("
)


class PartitionedExecutable(Executable):
    """A program compiled for several devices and loaded there.

    Attributes:
        in_shardings, out_shardings: the shardings of its inputs and outputs.
        in_places: the inputs' shardings as `Placement`s.
        waits: whether a call waits until the program has run. CPU devices that wait for each other in a collective
            occupy XLA's threads. If 32 more calls are queued, no thread is free for the last device, and XLA aborts
            the process.
    """

    def __init__(
        self, loaded: Any, out_avals: Sequence[ShapedArray], partitions: Partitions, *, name: str = "main"
    ) -> None:
        self._before_runs = partitions.before_runs
        self.in_shardings, self.out_shardings = partitions.shardings(loaded, out_avals)
        self.in_places = [placement(x, ndim) for x, ndim in zip(self.in_shardings, partitions.ranks, strict=True)]
        places = [placement(x, len(a.shape)) for x, a in zip(self.out_shardings, out_avals, strict=True)]
        on_cpus = len(partitions.devices) > 1 and partitions.devices[0].platform == "cpu"
        self.waits = on_cpus and _COLLECTIVES.search(loaded.get_hlo_text()) is not None
        super().__init__(loaded, out_avals, partitions.devices[0], name=name, committed=True, out_places=places)

    def __call__(self, *buffers: Buffer) -> list[Buffer]:
        """Start the program on buffers; if its devices exchange values on CPUs, wait for its end."""
        outputs = super().__call__(*buffers)
        if self.waits:
            block_until_ready(outputs[:1])
        return outputs

    def fastpath_data(
        self, out_tree: Any, kept: Sequence[bool], consts: Sequence[Buffer], committed: bool = False
    ) -> Any:
        """Return the data for a dispatcher, which reshards each argument that is not in place."""
        self._prepare()
        data = super().fastpath_data(out_tree, kept, consts, True)
        return data._replace(in_shardings=list(self.in_places))

    def placed(self, consts: Sequence[Buffer], kept: Sequence[bool]) -> list[Buffer]:
        """Move the leading operands to the program's shardings, so that no call has to move them."""
        places = iter(self.in_places)
        return [place_parts(c, next(places)) if keep else c for c, keep in zip(consts, kept, strict=False)]

    def _prepare(self) -> None:
        if self._before_runs is not None:
            self._before_runs()

    def _here(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        self._prepare()
        return [place_parts(b, place) for b, place in zip(buffers, self.in_places, strict=True)]


# -- callbacks of the partitioner --------------------------------------------------------------------------------------

_inspecting: deque[Any] = deque(maxlen=1024)  # keeps callbacks alive: C++ holds bare pointers while it compiles


def inspecting(function: Callable[[np.ndarray[Any, Any]], None], ndim: int, count: int) -> bytes:
    """Return the `backend_config` of an `InspectSharding` call.

    Args:
        function: called by the partitioner with the tiles of the value.
        ndim: number of dimensions of the value.
        count: number of devices.
    """

    def called(hlo: Any) -> None:
        function(tiles_of_hlo(hlo, ndim, count))

    _inspecting.append(called)
    return bytes(xla_client.encode_inspect_sharding_callback(called))
