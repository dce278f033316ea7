"""Programs for devices that this process does not have: compiled and looked at, never run.

XLA partitions a program for as many devices as it is told; it asks only whether those of this process are there. A
client numbers its devices below 2,048, and all greater numbers are other processes': so a client of at most that many
devices compiles for any number of them. It wants to have collectives then, which nobody calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from corejax_xla_backend._exit import inside

from ._absent import absent
from ._client import DEVICES_OF_A_PROCESS, ahead_client
from ._executable import Program, name_of
from ._mlir import ir
from ._probe import core
from ._quick import QUICK


class AheadProgram(Program):
    """A program compiled for devices that are not there.

    Attributes:
        in_shardings, out_shardings: where its inputs would have to be, and its outputs would be.
        device: the first of the devices.
    """

    def __init__(self, loaded: Any, out_avals: Sequence[Any], partitions: Any, name: str) -> None:
        self.loaded = loaded
        self.out_avals = tuple(out_avals)
        self.name = name
        self.device = partitions.devices[0]
        self.in_shardings, self.out_shardings = partitions.shardings(loaded, out_avals)

    def nbytes(self) -> int:
        """Of this machine's memory, none."""
        return 0

    def __call__(self, *buffers: Any) -> NoReturn:
        raise absent(f"the compiled program {self.name!r} cannot run", self.device)

    def serialize(self) -> NoReturn:
        """It is of no use without devices.

        Raises:
            BackendError: always.
        """
        raise absent(f"the compiled program {self.name!r} cannot be loaded", self.device)


def compile_ahead(
    module: ir.Module,
    out_avals: Sequence[Any],
    partitions: Any,
    *,
    overrides: Sequence[tuple[str, Any]] = (),
    callbacks: Sequence[Callable[..., Any]] = (),
) -> AheadProgram:
    """Compile a module for the devices of a topology.

    Raises:
        BackendError: this jaxlib cannot compile for so many.
        RuntimeError: XLA refuses the program.
    """
    count = len(partitions.devices)
    client = ahead_client(min(count, DEVICES_OF_A_PROCESS), others=count > DEVICES_OF_A_PROCESS)
    options = core.CompileOptions()
    options.num_replicas, options.num_partitions = 1, count
    # Machine code that nobody runs need not be good; all that is told of a program is decided before it is made.
    options.env_option_overrides = list((QUICK | dict(overrides)).items())
    more = {"host_callbacks": list(callbacks)} if callbacks else {}
    own = client.devices()
    # The list is only counted: device numbers are those of the default assignment, 0 and on.
    listed = core.DeviceList(tuple(own[i % len(own)] for i in range(count)))
    with inside():
        loaded = client.compile_and_load(module, listed, partitions.complete(options), **more)
    return AheadProgram(loaded, out_avals, partitions, name_of(module))
