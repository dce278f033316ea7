"""PJRT clients and their devices, made when first asked for.

A CPU client is always there. NVIDIA's is a PJRT plugin: a shared object inside ``jax_plugins/xla_cuda13`` (or
12), a package whose ``__init__`` imports jax. ``find_spec`` gives its folder without running it, and jaxlib
loads the library by path.
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
from corejax_xla_backend._exit import busy, watch_exit
from corejax_xla_backend._live import clear_dispatchers

from ._absent import absent, is_absent
from ._distributed import connection
from ._probe import core, xla_client

Client = core.Client
Device = core.Device

CUDA_PACKAGES = ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12")
CUDA_LIBRARY = "xla_cuda_plugin.so"

_lock = threading.RLock()
_clients: dict[str, Client] = {}
_ahead: dict[int, Client] = {}  # the last one that compiled for devices that are not there, by their number
DEVICES_OF_A_PROCESS = 2048  # at most; greater numbers are other processes'


_FORKED = (
    "this process was forked from one in which XLA was running, and XLA's threads are not in it: it cannot compile, "
    "run compiled programs, nor wait for their results. Start processes that do by 'spawn' "
    "(multiprocessing.get_context('spawn')), or fork before the first compilation. Eager operations on values that "
    "are computed go on working."
)
_forked = False


def is_forked() -> bool:
    """Whether the process was forked after a client was made."""
    return _forked


def check_not_forked() -> None:
    """Nothing, unless the process was forked after a client was made.

    Raises:
        BackendError: it was.
    """
    if _forked:
        raise BackendError(_FORKED)


def _after_fork() -> None:
    global _forked, _lock
    _lock = threading.RLock()  # another thread of the parent's may have held it
    _forked = _forked or bool(_clients or _ahead)
    busy.clear()  # those are the parent's threads
    if _forked:
        _first_device.cache_clear()
        clear_dispatchers()  # they would go on to run programs; what they call instead asks here
        for client in (*_clients.values(), *_ahead.values()):  # its end would wait for its threads, or crash
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

Sharding = xla_client.SingleDeviceSharding


def _complete_sharding_class() -> None:
    """Give jaxlib's class the members that its own C++ code looks up in Python, where importing jax has not.

    A subclass would do, but C++ compares and hashes instances of exactly this class itself and calls Python
    for others: 0.35 us of a call on 0.10.2. jax, imported later, sets the same names to its own.
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
    """The one sharding object of arrays that live on ``device`` whole, in its default memory unless told.

    Raises:
        BackendError: it is a device of a topology, on which no array can be.
    """
    if is_absent(device):
        raise absent("arrays are put on devices", device)
    return Sharding(device) if memory_kind is None else Sharding(device, memory_kind=memory_kind)


@cache
def device_list(*devices: Device) -> Any:
    """jaxlib's list of devices, as ``compile_and_load`` wants it."""
    return core.DeviceList(devices)


def check_cpu_devices(count: int) -> None:
    """Refuse another number of CPU devices than there are.

    Raises:
        BackendError: the CPU client exists already with another number.
    """
    existing = _clients.get("cpu")
    if existing is not None and existing.device_count() != count:
        raise BackendError(
            f"cannot set {count} CPU devices: the CPU backend is already in use with {existing.device_count()}. Set "
            "the number before the first array goes to a device."
        )


def _canonical(platform: str) -> str:
    return {"gpu": "cuda", "host": "cpu"}.get(platform, platform)


def cuda_plugin_path() -> Path | None:
    """Where NVIDIA's PJRT plugin lies, or ``None``; imports nothing but the namespace package
    ``jax_plugins``.
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
            "no CUDA backend: none of "
            + ", ".join(CUDA_PACKAGES)
            + " is installed. Install jax-cuda13-pjrt or jax-cuda12-pjrt, in jaxlib's own version."
        )
    # jax, imported in the same process, may have loaded and initialised the plugin: that is global to the
    # process.
    if not xla_client.pjrt_plugin_loaded("cuda"):
        xla_client.load_pjrt_plugin_dynamically("cuda", str(library))
    if not xla_client.pjrt_plugin_initialized("cuda"):
        xla_client.initialize_pjrt_plugin("cuda")
    return xla_client.make_c_api_client("cuda", xla_client.generate_pjrt_gpu_plugin_options())


def _make_client(platform: str) -> Client:
    if platform == "cpu":
        joined = connection()
        return xla_client.make_cpu_client(
            asynchronous=config.cpu_enable_async_dispatch,
            num_devices=config.num_cpu_devices,
            **({} if joined is None else joined.cpu_options()),
        )
    if platform == "cuda":
        return _make_cuda_client()
    raise BackendError(f"unknown platform {platform!r}; there are 'cpu' and 'cuda'.")


def client(platform: str | None = None) -> Client:
    """The client of a platform (the default one unless named), made on first use and kept.

    Raises:
        BackendError: the platform is unknown or its plugin is missing or fails.
    """
    check_not_forked()
    name = default_backend() if platform is None else _canonical(platform)
    found = _clients.get(name)
    if found is not None:
        return found
    with _lock:
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
    """A CPU client that compiles for devices that are not there; it is of no other use, and kept until the next one.

    Args:
        count: how many devices it numbers.
        others: whether programs have devices of other processes, too.

    Raises:
        BackendError: this jaxlib compiles for no other processes' devices.
    """
    check_not_forked()
    with _lock:
        found = _ahead.get(count)
        if found is None:
            more = {}
            if others:
                if not hasattr(core, "make_mpi_collectives"):
                    raise BackendError(f"this jaxlib compiles for {DEVICES_OF_A_PROCESS} devices at most")
                more["collectives"] = core.make_mpi_collectives()  # loads nothing before it is begun, which it is not
            _ahead.clear()
            found = _ahead[count] = xla_client.make_cpu_client(num_devices=count, **more)
            watch_exit()
        return found


def started_clients() -> list[Client]:
    """The clients that there are, without making one."""
    return list(_clients.values())


@cache
def default_backend() -> str:
    """The platform where none is named: CUDA if it starts, else ``"cpu"``."""
    return "cpu" if cuda_plugin_path() is None or not _cuda_starts() else "cuda"


def _cuda_starts() -> bool:
    try:
        return bool(client("cuda").local_devices())
    except BackendError:
        return False


def devices(platform: str | None = None) -> list[Device]:
    """The devices of all processes on a platform, in order of their id."""
    return list(client(platform).devices())


def local_devices(platform: str | None = None) -> list[Device]:
    """Those of this process."""
    return list(client(platform).local_devices())


def used_before(what: str) -> BackendError:
    """The error for what comes after the first use of a device."""
    names = ", ".join(_clients)
    return BackendError(f"{what} comes before the first use of a device; {names} is in use already")


def default_device() -> Device:
    """The first device of the default platform."""
    return _first_device(default_backend())


@cache
def _first_device(platform: str) -> Device:
    return client(platform).local_devices()[0]


# What XLA's options have under a name of their own, beside its flags; levels are numbers there.
_EFFORTS = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")
_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}


def compile_options(device: Device, *, overrides: Sequence[tuple[str, Any]] = (), partitions: Any = None) -> Any:
    """XLA's compile options.

    Args:
        device: that the program is for.
        overrides: XLA's own flags by name, for example ``("xla_cpu_enable_fast_math", True)``, and ``_EFFORTS``.
        partitions: `_partitioned.Partitions` of a program over several devices.
    """
    devices = [device] if partitions is None else partitions.devices
    options = core.CompileOptions()
    options.num_replicas, options.num_partitions = 1, len(devices)
    options.device_assignment = core.DeviceAssignment.create(np.array([[d.id for d in devices]], np.int64))
    for name, value in overrides:
        if name in _EFFORTS and hasattr(options.executable_build_options, name):  # 0.12 has levels alone
            setattr(options.executable_build_options, name, _LEVELS.get(value, value))
    options.env_option_overrides = [each for each in overrides if each[0] not in _EFFORTS]
    return options if partitions is None else partitions.complete(options)
