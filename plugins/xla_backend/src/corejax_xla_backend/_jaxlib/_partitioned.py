"""Programs over several devices."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import ShapedArray

from ._buffers import Buffer, block_until_ready
from ._client import Device
from ._executable import Executable
from ._probe import xla_client
from ._spread import HloSharding, place_parts, placement, tiles_of_hlo


class Partitions(NamedTuple):
    """How a program is shared out over devices.

    Attributes:
        devices: these, in the order in which its shardings number them.
        inputs: a sharding for each input, None where the compiler chooses.
        outputs: the same of its outputs.
        ranks: how many dimensions each input has.
        like: gives the sharding for tiles that the compiler chose.
        before_runs: called before the first run, at least.
    """

    devices: tuple[Device, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    ranks: tuple[int, ...]
    like: Callable[[np.ndarray[Any, Any]], Any]
    before_runs: Callable[[], None] | None = None

    def complete(self, options: Any) -> Any:
        """Compile options with what the partitioner is told."""
        build = options.executable_build_options
        build.num_replicas, build.num_partitions = 1, len(self.devices)
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_parameters = [x is None for x in self.inputs] or [False]
        build.allow_spmd_sharding_propagation_to_output = [x is None for x in self.outputs] or [False]
        return options

    def shardings(self, loaded: Any, out_avals: Sequence[ShapedArray]) -> tuple[list[Any], list[Any]]:
        """Where the inputs and outputs of a compiled program are: as was said, or as the compiler chose."""
        ranks = [len(aval.shape) for aval in out_avals]
        return (
            self._with_chosen(self.inputs, loaded.get_parameter_shardings(), self.ranks),
            self._with_chosen(self.outputs, loaded.get_output_shardings(), ranks),
        )

    def _with_chosen(self, given: Sequence[Any], found: Any, ranks: Sequence[int]) -> list[Any]:
        chosen = [HloSharding.from_proto(x) for x in found[: len(given)]] if found else [None] * len(given)
        return [
            self.like(tiles_of_hlo(hlo, ndim, len(self.devices))) if sharding is None else sharding
            for sharding, hlo, ndim in zip(given, chosen, ranks, strict=True)
        ]

    def executable(self, loaded: Any, out_avals: Sequence[ShapedArray], name: str) -> Executable:
        """What runs the program that jaxlib has loaded."""
        return PartitionedExecutable(loaded, out_avals, self, name=name)


_COLLECTIVES = re.compile(
    r" (all-gather|all-reduce|reduce-scatter|all-to-all|ragged-all-to-all|collective-\w+)(-start)?\("
)


class PartitionedExecutable(Executable):
    """A program compiled for several devices and loaded there.

    Attributes:
        in_shardings, out_shardings: where its inputs have to be, and its outputs are.
        in_places: the same of its inputs as jaxlib wants it.
        waits: whether a call ends when it has run. CPU devices that wait for each other in it take all of XLA's
            threads; with 32 calls more in the queue there is none left for the last device, which ends the process.
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
        """As of one device; where devices wait for each other, it waits for them."""
        outputs = super().__call__(*buffers)
        if self.waits:
            block_until_ready(outputs[:1])
        return outputs

    def fastpath_data(
        self, out_tree: Any, kept: Sequence[bool], consts: Sequence[Buffer], committed: bool = False
    ) -> Any:
        """As of one device; arguments that are elsewhere are put in place, one by one."""
        self._prepare()
        data = super().fastpath_data(out_tree, kept, consts, True)
        return data._replace(in_shardings=list(self.in_places))

    def placed(self, consts: Sequence[Buffer], kept: Sequence[bool]) -> list[Buffer]:
        """The leading operands where the program wants them, so that no call has to move them."""
        places = iter(self.in_places)
        return [place_parts(c, next(places)) if keep else c for c, keep in zip(consts, kept, strict=False)]

    def _prepare(self) -> None:
        if self._before_runs is not None:
            self._before_runs()

    def _here(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        self._prepare()
        return [place_parts(b, place) for b, place in zip(buffers, self.in_places, strict=True)]


# -- what the partitioner tells ----------------------------------------------------------------------------------------

_inspecting: deque[Any] = deque(maxlen=1024)  # C++ holds bare pointers to these while it compiles


def inspecting(function: Callable[[np.ndarray[Any, Any]], None], ndim: int, count: int) -> bytes:
    """The `backend_config` of a call of `InspectSharding`: the partitioner calls a function with a value's tiles."""

    def called(hlo: Any) -> None:
        function(tiles_of_hlo(hlo, ndim, count))

    _inspecting.append(called)
    return xla_client.encode_inspect_sharding_callback(called)
