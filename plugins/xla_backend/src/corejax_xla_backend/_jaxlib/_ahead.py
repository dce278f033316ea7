"""Programs for devices that this process does not have: compiled and inspected, never run.

XLA partitions a program for any number of devices and checks only that the devices of this process exist. A client
numbers its devices below 2,048, and greater numbers belong to other processes. So a client of at most that many
devices compiles for any number of devices. It then requires an implementation of collectives, which is never called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from corejax_xla_backend._exit import inside

from ._absent import absent
from ._client import DEVICES_OF_A_PROCESS, ahead_client
from ._executable import Program, name_of
from ._probe import core
from ._quick import QUICK

if TYPE_CHECKING:
    from ._mlir import ir


class AheadProgram(Program):
    """A program compiled for absent devices.

    Attributes:
        in_shardings, out_shardings: the shardings of its inputs and outputs.
        device: the first of the devices.
    """

    def __init__(self, loaded: Any, out_avals: Sequence[Any], partitions: Any, name: str) -> None:
        self.loaded = loaded
        self.out_avals = tuple(out_avals)
        self.name = name
        self.device = partitions.devices[0]
        self.in_shardings, self.out_shardings = partitions.shardings(loaded, out_avals)

    def nbytes(self) -> int:
        """Return 0: the program takes no memory of this machine."""
        return 0

    def __call__(self, *buffers: Any) -> NoReturn:
        raise absent(f"the compiled program {self.name!r} cannot run", self.device)

    def serialize(self) -> NoReturn:
        """Raise BackendError: the program cannot be loaded without its devices."""
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

    Args:
        module: the program, with shardings.
        out_avals: the avals of the results of ``main``.
        partitions: `_partitioned.Partitions` over the topology's devices.
        overrides: XLA flags by name for this program alone.
        callbacks: as for `compile_module`.

    Raises:
        BackendError: this jaxlib cannot compile for so many devices.
        RuntimeError: XLA cannot compile the program.
    """
    count = len(partitions.devices)
    client = ahead_client(min(count, DEVICES_OF_A_PROCESS), others=count > DEVICES_OF_A_PROCESS)
    options = core.CompileOptions()
    options.num_replicas, options.num_partitions = 1, count
    # The machine code never runs, so it need not be fast; the analyses depend on earlier stages of the compiler only.
    options.env_option_overrides = list((QUICK | dict(overrides)).items())
    host_callbacks = {"host_callbacks": list(callbacks)} if callbacks else {}
    own = client.devices()
    # Only the length of the list matters: the default assignment numbers the devices from 0.
    listed = core.DeviceList(tuple(own[i % len(own)] for i in range(count)))
    with inside():
        loaded = client.compile_and_load(module, listed, partitions.complete(options), **host_callbacks)
    return AheadProgram(loaded, out_avals, partitions, name_of(module))
