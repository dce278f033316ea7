"""jaxlib's distributed runtime: a coordination service in the first process, and a client in each process.

A CPU client that is created while a connection exists has the devices of all processes, which exchange values by Gloo.
"""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from corejax.extend import BackendError

from ._probe import core


class Connection(NamedTuple):
    """The connection of this process to the others.

    Attributes:
        client: jaxlib's runtime client.
        service: the coordination service in the first process, None in the others.
        process_id: this process's number.
        num_processes: number of processes.
        host: the address of this process, at which the others' devices reach its devices.
    """

    client: Any
    service: Any
    process_id: int
    num_processes: int
    host: str

    def cpu_options(self) -> dict[str, Any]:
        """Return the keyword arguments with which the CPU client is created."""
        collectives = core.make_gloo_tcp_collectives(distributed_client=self.client, hostname=self.host, interface=None)
        return {
            "distributed_client": self.client,
            "node_id": self.process_id,
            "num_nodes": self.num_processes,
            "collectives": collectives,
        }


_connection: Connection | None = None
_waiting = ""  # the name of this process while it waits for the others to join, or after it has waited in vain
_lock = threading.Lock()


def connection() -> Connection | None:
    """Return the current connection, or None."""
    return _connection


def connect(
    address: str,
    bind_address: str,
    num_processes: int,
    process_id: int,
    *,
    start_seconds: int,
    heartbeat_seconds: int,
    shutdown_seconds: int,
) -> Connection:
    """Connect to the other processes; the first process also starts the service.

    If a process dies, devices of the others would wait for it forever. So C++ aborts the other processes and names the
    dead one on stderr.

    Args:
        address: `host:port` of the service.
        bind_address: the address at which the service listens.
        num_processes: number of processes.
        process_id: this process's number.
        start_seconds: timeout for the other processes to join.
        heartbeat_seconds: a process without a heartbeat for this long counts as dead.
        shutdown_seconds: timeout for the other processes at shutdown.

    Raises:
        BackendError: a connection exists; the service cannot listen or does not answer; or processes are missing.
    """
    global _connection, _waiting
    with _lock:
        if _connection is not None:
            raise BackendError("the processes are connected already; corejax.distributed.shutdown() ends that")
        if _waiting:
            raise BackendError(f"{_waiting} has waited for the others in vain and cannot try again; restart it")
        service, who = None, f"process {process_id} of {num_processes}"
        if process_id:
            _wait_for(address, who, start_seconds)
        try:
            if process_id == 0:
                service = core.get_distributed_runtime_service(
                    bind_address,
                    num_processes,
                    heartbeat_timeout=heartbeat_seconds,
                    shutdown_timeout=shutdown_seconds,
                )
        except RuntimeError as error:
            raise BackendError(f"the coordinator cannot listen at {bind_address}: {error}") from None
        client = core.get_distributed_runtime_client(
            address,
            process_id,
            init_timeout=start_seconds + _A_DAY,
            shutdown_timeout=shutdown_seconds,
            heartbeat_timeout=heartbeat_seconds,
            shutdown_on_destruction=False,
            use_compression=True,
        )
        _waiting = who
        _join(client, service, who, address, start_seconds)
        _waiting = ""
        _connection = Connection(client, service, process_id, num_processes, _host_of(address))
        return _connection


_A_DAY = 86400


def _join(client: Any, service: Any, who: str, address: str, seconds: int) -> None:
    """Wait until all processes have joined.

    C++ aborts the process when its own timeout expires. So a thread calls it with a much longer timeout, and this
    function raises an error in time.
    """
    failures: list[Exception] = []

    def connect(service: Any) -> None:  # the argument keeps the service alive: without it C++ aborts the process
        try:
            client.connect()
        except Exception as error:
            failures.append(error)

    waiting = threading.Thread(target=connect, args=(service,), name="corejax.distributed.initialize", daemon=True)
    waiting.start()
    waiting.join(seconds)
    if waiting.is_alive():
        raise BackendError(
            f"{who} waited {seconds} s for the others to join at {address}, and not all of them came: start each one "
            "with the same address and number of processes, and a number of its own"
        )
    if failures:
        raise BackendError(f"{who} cannot join the others at {address}: {failures[0]}")


def _wait_for(address: str, who: str, seconds: int) -> None:
    """Wait until the coordinator listens, because jaxlib's client aborts the process if it never does."""
    import socket

    host, _, port = address.rpartition(":")
    until = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > until:
                raise BackendError(
                    f"{who} waited {seconds} s for the coordinator, process 0, at {address}: {error}"
                ) from None
            time.sleep(0.1)


def _host_of(address: str) -> str:
    """Return the address of the network interface through which this machine reaches the coordinator."""
    import socket

    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:  # connecting UDP sends nothing
        try:
            probe.connect((host, int(port)))
            return str(probe.getsockname()[0])
        except OSError:
            return host


def disconnect() -> None:
    """Wait for the other processes and close the connection.

    Raises:
        BackendError: the other processes did not shut down in time.
    """
    global _connection
    with _lock:
        ending, _connection = _connection, None
    if ending is None:
        return
    try:
        ending.client.shutdown()
    except RuntimeError as error:
        raise BackendError(f"process {ending.process_id} waited for the others to end in vain: {error}") from None
    finally:
        if ending.service is not None:
            ending.service.shutdown()
