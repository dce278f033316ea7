"""jaxlib's runtime across processes: a service in the first one, and a client in each.

The CPU client that is made while there is a connection has the devices of all processes; these exchange values by Gloo.
"""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from corejax.extend import BackendError

from ._probe import core


class Connection(NamedTuple):
    """This process's place among several.

    Attributes:
        client: jaxlib's runtime client.
        service: the service, in the first process; else None.
        process_id: this process's number.
        num_processes: how many there are.
        host: the address that others reach this process at, for what devices exchange.
    """

    client: Any
    service: Any
    process_id: int
    num_processes: int
    host: str

    def cpu_options(self) -> dict[str, Any]:
        """What the CPU client is made with."""
        collectives = core.make_gloo_tcp_collectives(distributed_client=self.client, hostname=self.host, interface=None)
        return {
            "distributed_client": self.client,
            "node_id": self.process_id,
            "num_nodes": self.num_processes,
            "collectives": collectives,
        }


_connection: Connection | None = None
_waiting = ""  # who waits for others to join, or has done so in vain
_lock = threading.Lock()


def connection() -> Connection | None:
    """The connection, if there is one."""
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
    """Join the other processes; the first one has the service.

    Where a process is gone, what devices wait for would never be there: C++ ends the others, and says on stderr who it
    is.

    Args:
        address: of the service, `host:port`.
        bind_address: that it listens at.
        num_processes: how many there are.
        process_id: this one's number.
        start_seconds: how long to wait for the others.
        heartbeat_seconds: after how long without a sign a process counts as dead.
        shutdown_seconds: how long to wait for the others at the end.

    Raises:
        BackendError: there is a connection; the service cannot listen, or does not answer; or others do not come.
    """
    global _connection, _waiting
    with _lock:
        if _connection is not None:
            raise BackendError("the processes are connected already; corejax.distributed.shutdown() ends that")
        if _waiting:
            raise BackendError(f"{_waiting} has waited for the others in vain, and cannot try again; start it anew")
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
    """Wait until all processes have come. C++ ends a process that waits in vain, so a thread does, for longer."""
    failures: list[Exception] = []

    def connect(service: Any) -> None:  # were the service gone, C++ would end the process, too
        try:
            client.connect()
        except Exception as error:
            failures.append(error)

    waiting = threading.Thread(target=connect, args=(service,), name="corejax.distributed.initialize", daemon=True)
    waiting.start()
    waiting.join(seconds)
    if waiting.is_alive():
        raise BackendError(
            f"{who} waited {seconds} s for the others to join at {address}, and not all of them came: each is started "
            "with the same address and number of processes, and a number of its own"
        )
    if failures:
        raise BackendError(f"{who} cannot join the others at {address}: {failures[0]}")


def _wait_for(address: str, who: str, seconds: int) -> None:
    """Wait until the coordinator listens; the client would end the process if it never does."""
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
    """The address of this machine on the way to the coordinator."""
    import socket

    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:  # nothing is sent
        try:
            probe.connect((host, int(port)))
            return str(probe.getsockname()[0])
        except OSError:
            return host


def disconnect() -> None:
    """Wait for the others, and end the connection.

    Raises:
        BackendError: the others did not come.
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
