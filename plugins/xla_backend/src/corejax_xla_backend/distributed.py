"""`corejax.distributed`: several processes that share their devices.

    corejax.distributed.initialize("host:1234", num_processes=2, process_id=0)    # in each, before devices are used

`corejax.devices()` are then those of all processes, in the same order everywhere, and a program over several of them
runs in each process that has one. All processes have to run the same programs in the same order.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from corejax.extend.types import as_dim

__all__ = ["initialize", "is_initialized", "shutdown", "wait_at_barrier"]


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Any = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
) -> None:
    """Join the processes of one computation: before the first use of a device, in each of them.

    What is not given is asked of the environment: `COREJAX_COORDINATOR_ADDRESS`, `COREJAX_NUM_PROCESSES` and
    `COREJAX_PROCESS_ID`; number and count also of Slurm and Open MPI.

    Args:
        coordinator_address: `host:port`, of the process with number 0, which listens there.
        num_processes: how many processes there are.
        process_id: this one's number, 0 or more.
        local_device_ids: None; a process has the devices that it sees.
        cluster_detection_method: None.
        initialization_timeout: seconds to wait for the others.
        heartbeat_timeout_seconds: a process that gives no sign for so long is dead, and the others end.
        shutdown_timeout_seconds: how long the end waits for the others.
        coordinator_bind_address: where process 0 listens, if that is not the port of the address on all interfaces.

    Raises:
        BackendError: a device was used before, the processes are connected already, or the coordinator is not there.
        TypeError, ValueError: an argument is missing, or does not fit.
    """
    from corejax_xla_backend import _jaxlib

    for name, given in (("local_device_ids", local_device_ids), ("cluster_detection_method", cluster_detection_method)):
        if given is not None:
            raise NotImplementedError(f"distributed.initialize: {name} is None, got {given!r}")
    address = _given("coordinator_address", coordinator_address, ("COREJAX_COORDINATOR_ADDRESS",))
    count = _number("num_processes", num_processes, ("COREJAX_NUM_PROCESSES", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"))
    number = _number("process_id", process_id, ("COREJAX_PROCESS_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"))
    _, colon, port = str(address).rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"distributed.initialize: coordinator_address is host:port, got {address!r}")
    if count < 1 or not 0 <= number < count:
        raise ValueError(f"distributed.initialize: process_id is from 0 to num_processes - 1, got {number} of {count}")
    if _jaxlib.started_clients():
        raise _jaxlib.used_before("distributed.initialize")
    _jaxlib.connect(
        str(address),
        coordinator_bind_address or f"[::]:{port}",
        count,
        number,
        start_seconds=_seconds("initialization_timeout", initialization_timeout),
        heartbeat_seconds=_seconds("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
        shutdown_seconds=_seconds("shutdown_timeout_seconds", shutdown_timeout_seconds),
    )
    atexit.register(shutdown)


def shutdown() -> None:
    """Wait until all processes are here, and end the connection; nothing where there is none. The exit does it.

    Raises:
        BackendError: the others did not come in time.
    """
    from corejax_xla_backend import _jaxlib

    atexit.unregister(shutdown)
    _jaxlib.disconnect()


def is_initialized() -> bool:
    """Whether this process is connected to others."""
    from corejax_xla_backend import _jaxlib

    return _jaxlib.connection() is not None


def wait_at_barrier(name: str, timeout_seconds: float = 300.0) -> None:
    """Wait until all processes are at the barrier of a name; nothing in a process that is alone.

    Raises:
        BackendError: one did not come in time; says which.
    """
    from corejax.extend import BackendError
    from corejax_xla_backend import _jaxlib

    found = _jaxlib.connection()
    if found is None:
        return
    try:
        found.client.wait_at_barrier(name, int(1000 * timeout_seconds))
    except RuntimeError as error:
        raise BackendError(
            f"process {found.process_id} waited {timeout_seconds:g} s at the barrier {name!r}: {error}"
        ) from None


def _given(name: str, value: Any, variables: tuple[str, ...]) -> Any:
    for variable in variables:
        if value is None:
            value = os.environ.get(variable)
    if value is None:
        raise ValueError(f"distributed.initialize: {name} is not given, and {variables[0]} is not set")
    return value


def _number(name: str, value: Any, variables: tuple[str, ...]) -> int:
    found = _given(name, value, variables)
    try:
        return int(found) if isinstance(found, str) else as_dim(found)
    except (TypeError, ValueError):
        raise TypeError(f"distributed.initialize: {name} is an integer, got {found!r}") from None


def _seconds(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 1:
        raise ValueError(f"distributed.initialize: {name} is a number of seconds, 1 or more, got {value!r}")
    return int(value)
