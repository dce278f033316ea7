"""`corejax.distributed`: several processes that share their devices.

    corejax.distributed.initialize("host:1234", num_processes=2, process_id=0)    # in each, before devices are used

`corejax.devices()` then returns the devices of all processes, in the same order everywhere. A program over several
devices runs in each process that has one of them. All processes must run the same programs in the same order.
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
    """Connect the processes of one computation; each process calls this before it first uses a device.

    Missing arguments are read from the environment: `COREJAX_COORDINATOR_ADDRESS`, `COREJAX_NUM_PROCESSES` and
    `COREJAX_PROCESS_ID`. The number and the count of processes are also read from the variables of Slurm and Open MPI.

    Args:
        coordinator_address: `host:port` of process 0, which listens there.
        num_processes: the number of processes.
        process_id: the number of this process, from 0.
        local_device_ids: must be None; a process has the devices that it sees.
        cluster_detection_method: must be None.
        initialization_timeout: seconds to wait for the other processes.
        heartbeat_timeout_seconds: seconds without a heartbeat after which a process counts as dead and the others end.
        shutdown_timeout_seconds: seconds that the shutdown waits for the other processes.
        coordinator_bind_address: the address that process 0 listens on; by default the port on all interfaces.

    Raises:
        BackendError: a device was used before, the processes are connected already, or the coordinator does not answer.
        TypeError, ValueError: an argument is missing or invalid.
        NotImplementedError: `local_device_ids` or `cluster_detection_method` is not None.
    """
    from corejax_xla_backend import _jaxlib

    for name, value in (("local_device_ids", local_device_ids), ("cluster_detection_method", cluster_detection_method)):
        if value is not None:
            raise NotImplementedError(f"distributed.initialize: {name} must be None, got {value!r}")
    address = _required("coordinator_address", coordinator_address, ("COREJAX_COORDINATOR_ADDRESS",))
    count = _number("num_processes", num_processes, ("COREJAX_NUM_PROCESSES", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"))
    number = _number("process_id", process_id, ("COREJAX_PROCESS_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"))
    _, colon, port = str(address).rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"distributed.initialize: coordinator_address must be host:port, got {address!r}")
    if count < 1 or not 0 <= number < count:
        raise ValueError(
            f"distributed.initialize: process_id must be from 0 to num_processes - 1, got {number} of {count}"
        )
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
    """Wait until all processes call this, and end the connection, if there is one; the exit of a process calls this.

    Raises:
        BackendError: the other processes did not arrive in time.
    """
    from corejax_xla_backend import _jaxlib

    atexit.unregister(shutdown)
    _jaxlib.disconnect()


def is_initialized() -> bool:
    """Return whether this process is connected to others."""
    from corejax_xla_backend import _jaxlib

    return _jaxlib.connection() is not None


def wait_at_barrier(name: str, timeout_seconds: float = 300.0) -> None:
    """Wait until all processes are at the barrier of a name; return at once in a process that is not connected.

    Raises:
        BackendError: a process did not arrive in time; the message names it.
    """
    from corejax.extend import BackendError
    from corejax_xla_backend import _jaxlib

    connection = _jaxlib.connection()
    if connection is None:
        return
    try:
        connection.client.wait_at_barrier(name, int(1000 * timeout_seconds))
    except RuntimeError as error:
        raise BackendError(
            f"process {connection.process_id} waited {timeout_seconds:g} s at the barrier {name!r}: {error}"
        ) from None


def _required(name: str, value: Any, variables: tuple[str, ...]) -> Any:
    """Return an argument, else the first environment variable that is set; raise ValueError if there is neither."""
    for variable in variables:
        if value is None:
            value = os.environ.get(variable)
    if value is None:
        raise ValueError(f"distributed.initialize: {name} is not given, and {variables[0]} is not set")
    return value


def _number(name: str, value: Any, variables: tuple[str, ...]) -> int:
    """Return an integer argument, from an argument or an environment variable."""
    number = _required(name, value, variables)
    try:
        return int(number) if isinstance(number, str) else as_dim(number)
    except (TypeError, ValueError):
        raise TypeError(f"distributed.initialize: {name} must be an integer, got {number!r}") from None


def _seconds(name: str, value: Any) -> int:
    """Return a time in whole seconds; raise ValueError if it is not a number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 1:
        raise ValueError(f"distributed.initialize: {name} must be a number of seconds, 1 or more, got {value!r}")
    return int(value)
