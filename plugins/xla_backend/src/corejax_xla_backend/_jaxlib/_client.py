"""PJRT clients and their devices, created on first use.

The CPU client is always available. The CUDA client is a PJRT plugin: a shared object inside
``jax_plugins/xla_cuda13`` (or 12). The ``__init__`` of that package imports jax, so ``find_spec`` locates its
folder without running it, and jaxlib loads the library by path.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from corejax.extend import BackendError, config
from corejax_xla_backend._exit import busy, inside, watch_exit
from corejax_xla_backend._live import clear_dispatchers

from ._absent import absent, is_absent
from ._classes import Client, Device
from ._distributed import connection
from ._probe import core, xla_client

CUDA_PACKAGES = ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12")
CUDA_LIBRARY = "xla_cuda_plugin.so"

_lock = threading.RLock()
_clients: dict[str, Client] = {}
# The latest client that compiles for absent devices, keyed by the number of devices.
_ahead: dict[int, Client] = {}
# XLA numbers the devices of one process below this bound; greater numbers belong to other processes.
DEVICES_OF_A_PROCESS = 2048


_FORKED = (
    "this process was forked from one in which XLA was running, and XLA's threads are not in it: it cannot compile, "
    "run compiled programs, nor wait for their results. Start such processes by 'spawn' "
    "(multiprocessing.get_context('spawn')), or fork before the first compilation. Eager operations on computed "
    "values still work."
)
_forked = False


def is_forked() -> bool:
    """Return whether the process was forked after a client was created."""
    return _forked


def check_not_forked() -> None:
    """Raise BackendError if the process was forked after a client was created."""
    if _forked:
        raise BackendError(_FORKED)


def _after_fork() -> None:
    global _forked, _lock
    _lock = threading.RLock()  # a thread of the parent may hold the old lock
    _forked = _forked or bool(_clients or _ahead)
    busy.clear()  # its entries are threads of the parent
    if _forked:
        _first_device.cache_clear()
        # Warm dispatchers would run programs without a check; a cache miss calls `check_not_forked`.
        clear_dispatchers()
        # Destroying a client waits for its threads, which do not exist here, or crashes: so leak the clients.
        for client in (*_clients.values(), *_ahead.values()):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

Sharding = xla_client.SingleDeviceSharding


def _complete_sharding_class() -> None:
    """Add the members that jaxlib's C++ code looks up in Python, unless jax has added them already.

    A subclass would also work, but C++ compares and hashes instances of exactly this class itself and calls Python
    for subclasses: 0.35 us of a call on 0.10.2. If jax is imported later, it replaces these members by its own.
    """
    replicated = xla_client.HloSharding.replicate()
    members = {
        "num_devices": property(lambda self: 1),
        "memory_kind": property(lambda self: self._memory_kind),
        "device_set": property(lambda self: {self._device}),
        "_to_xla_hlo_sharding": lambda self, num_dimensions: replicated,
    }
    for name, member in members.items():
        if not hasattr(Sharding, name):
            setattr(Sharding, name, member)


_complete_sharding_class()


@cache
def device_sharding(device: Device, memory_kind: str | None = None) -> Any:
    """Return the sharding of arrays on a single device; equal arguments give the same object.

    Args:
        device: the device that holds the arrays.
        memory_kind: the kind of memory on the device; by default the device's default memory.

    Raises:
        BackendError: the device belongs to a topology and can hold no arrays.
    """
    if is_absent(device):
        raise absent("arrays are put on devices", device)
    return Sharding(device) if memory_kind is None else Sharding(device, memory_kind=memory_kind)


@cache
def device_list(*devices: Device) -> Any:
    """Return jaxlib's `DeviceList` of the devices, as ``compile_and_load`` takes it."""
    return core.DeviceList(devices)


def check_cpu_devices(count: int) -> None:
    """Raise BackendError if the CPU client already exists with a number of devices other than `count`."""
    existing = _clients.get("cpu")
    if existing is not None and existing.device_count() != count:
        raise BackendError(
            f"cannot set {count} CPU devices: the CPU backend is already in use with {existing.device_count()}. Set "
            "the number before the first array goes to a device."
        )


def _canonical(platform: str) -> str:
    return {"gpu": "cuda", "host": "cpu"}.get(platform, platform)


def cuda_plugin_path() -> Path | None:
    """Return the path of the CUDA PJRT plugin, or None if none is installed.

    Only the namespace package ``jax_plugins`` is imported.
    """
    for name in CUDA_PACKAGES:
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            library = Path(folder) / CUDA_LIBRARY
            if library.exists():
                return library
    return None


def _make_cuda_client() -> Client:
    library = cuda_plugin_path()
    if library is None:
        raise BackendError(
            "the CUDA backend failed to initialize: none of "
            + ", ".join(CUDA_PACKAGES)
            + " is installed. Install jax-cuda13-pjrt or jax-cuda12-pjrt, in jaxlib's own version."
        )
    # Loading and initialising a plugin is global to the process, and jax may have done both already.
    if not xla_client.pjrt_plugin_loaded("cuda"):
        xla_client.load_pjrt_plugin_dynamically("cuda", str(library))
    if not xla_client.pjrt_plugin_initialized("cuda"):
        xla_client.initialize_pjrt_plugin("cuda")
    made: Client = xla_client.make_c_api_client("cuda", xla_client.generate_pjrt_gpu_plugin_options())
    return made


def _make_client(platform: str) -> Client:
    if platform == "cpu":
        joined = connection()
        made: Client = xla_client.make_cpu_client(
            asynchronous=config.cpu_enable_async_dispatch,
            num_devices=config.num_cpu_devices,
            **({} if joined is None else joined.cpu_options()),
        )
        return made
    if platform == "cuda":
        return _make_cuda_client()
    raise BackendError(f"unknown platform {platform!r}; there are 'cpu' and 'cuda'.")


def client(platform: str | None = None) -> Client:
    """Return the client of a platform, created on first use and cached.

    Args:
        platform: ``"cpu"``, ``"cuda"`` or an alias of one; the default platform if None.

    Raises:
        BackendError: the platform is unknown, its plugin is missing or fails to start, or the process was forked.
    """
    check_not_forked()
    name = default_backend() if platform is None else _canonical(platform)
    started = _clients.get(name)
    if started is not None:
        return started
    with inside(), _lock:
        if name not in _clients:
            try:
                _clients[name] = _make_client(name)
                watch_exit()
            except BackendError:
                raise
            except Exception as error:
                raise BackendError(f"the {name} backend failed to start: {error}") from error
        return _clients[name]


def ahead_client(count: int, *, others: bool) -> Client:
    """Return a CPU client that only compiles for absent devices; the latest one is cached.

    Args:
        count: number of the client's devices.
        others: whether programs also span devices of other processes.

    Raises:
        BackendError: `others` is set and this jaxlib cannot compile for devices of other processes.
    """
    check_not_forked()
    with inside(), _lock:
        made = _ahead.get(count)
        if made is None:
            options = {}
            if others:
                if not hasattr(core, "make_mpi_collectives"):
                    raise BackendError(f"this jaxlib compiles for {DEVICES_OF_A_PROCESS} devices at most")
                # MPI is loaded when the collectives are initialised, which never happens here.
                options["collectives"] = core.make_mpi_collectives()
            _ahead.clear()
            made = _ahead[count] = xla_client.make_cpu_client(num_devices=count, **options)
            watch_exit()
        return made


def started_clients() -> list[Client]:
    """Return the clients that were created so far, without creating one."""
    return list(_clients.values())


@cache
def default_backend() -> str:
    """Return the default platform: ``"cuda"`` if its client starts, else ``"cpu"``."""
    return "cpu" if cuda_plugin_path() is None or not _cuda_starts() else "cuda"


def _cuda_starts() -> bool:
    try:
        return bool(client("cuda").local_devices())
    except BackendError:
        return False


def devices(platform: str | None = None) -> list[Device]:
    """Return the devices of all processes on a platform, ordered by id."""
    return list(client(platform).devices())


def local_devices(platform: str | None = None) -> list[Device]:
    """Return the devices of this process on a platform."""
    return list(client(platform).local_devices())


def used_before(what: str) -> BackendError:
    """Return the error for a call that has to precede the first use of a device."""
    names = ", ".join(_clients)
    return BackendError(f"{what} comes before the first use of a device; {names} is in use already")


def default_device() -> Device:
    """Return the first local device of the default platform."""
    return _first_device(default_backend())


@cache
def _first_device(platform: str) -> Device:
    return client(platform).local_devices()[0]


# These options are fields of XLA's build options, not flags; their levels are numbers.
_EFFORTS = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")
_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}


def compile_options(device: Device, *, overrides: Sequence[tuple[str, Any]] = (), partitions: Any = None) -> Any:
    """Return XLA's compile options.

    Args:
        device: the device that the program is compiled for, unless `partitions` names several.
        overrides: pairs of name and value: XLA flags, for example ``("xla_cpu_enable_fast_math", True)``, and
            the options of ``_EFFORTS``.
        partitions: `_partitioned.Partitions` of a program over several devices.
    """
    devices = [device] if partitions is None else partitions.devices
    options = core.CompileOptions()
    options.num_replicas, options.num_partitions = 1, len(devices)
    options.device_assignment = core.DeviceAssignment.create(np.array([[d.id for d in devices]], np.int64))
    for name, value in overrides:
        if name in _EFFORTS and hasattr(options.executable_build_options, name):  # 0.12 has only the levels
            setattr(options.executable_build_options, name, _LEVELS.get(value, value))
    options.env_option_overrides = [each for each in overrides if each[0] not in _EFFORTS]
    return options if partitions is None else partitions.complete(options)
